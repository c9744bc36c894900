//! Asking an agent's program for its version: untrusted like any other command, so in a sandbox of its own.

use super::captured::{Capture, Errors, captured};
use super::{Additions, Setting, Wish};
use crate::agent::{Agent, Candidate, Version};
use crate::base::{Explain, Fault, Kind};
use std::time::Duration;

/// The profile under which it is asked: what the client has, which sees no project and no network.
const PROFILE: &str = "opencode-client";
/// Bytes of its answer that are read.
const LONGEST: u64 = 4096;
/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program did not tell its version.
#[derive(Debug, thiserror::Error)]
#[error("{0} did not tell its version")]
pub struct VersionError(String);

impl Explain for VersionError {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
    fn hint(&self) -> Option<String> {
        Some("run it with --version yourself; if that works, name another program with --binary".into())
    }
}

/// Runs the program's version command, verified like every other, and reads its answer.
pub fn version_of(agent: &dyn Agent, candidate: &Candidate, setting: &Setting) -> Result<Version, Fault> {
    let program = candidate.clone().with_version(Version {
        major: 0,
        minor: 0,
        patch: 0,
    });
    let variables = agent.variables(&program, &setting.dirs.data).into_iter();
    let variables = variables.map(|(name, value)| (name.to_owned(), value.into())).collect();
    let wish = Wish {
        block_net: true,
        ..Wish::default()
    };
    let policy = wish.policy(
        PROFILE,
        Additions {
            variables,
            ..Additions::default()
        },
        setting,
    )?;
    let capture = Capture {
        argv: agent.version_argv(candidate),
        input: Vec::new(),
        errors: Errors::Nowhere,
        network_log: None,
        most: LONGEST,
        limit: PATIENCE,
    };
    let captured = captured(&policy, capture, setting)?;
    if captured.output.is_empty() {
        return Err(VersionError(candidate.path.to_string()).into());
    }
    Ok(agent.parse_version(&captured.output)?)
}
