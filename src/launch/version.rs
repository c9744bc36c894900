//! Asking an agent's program for its version: untrusted like any other command, so in a sandbox of its own.

use super::attendance::{Attendance, OnFailure, Outcome};
use super::run::RunError;
use super::session::expectation;
use super::watch::Watch;
use super::{Additions, Setting, Wish};
use crate::agent::{Agent, Candidate, Version};
use crate::base::{Explain, Fault, Kind};
use crate::sandbox::{Doors, Order, Stream, spawn};
use crate::verify::{NetSubject, held};
use nix::fcntl::OFlag;
use std::io::Read as _;

/// The profile under which it is asked: what the client has, which sees no project and no network.
const PROFILE: &str = "opencode-client";
/// Bytes of its answer that are read.
const LONGEST: u64 = 4096;

/// The program did not tell its version.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error("{0} did not tell its version")]
    Silent(String),
    #[error("the program's answer cannot be read ({0})")]
    Pipe(nix::errno::Errno),
}

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
    let (reader, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(VersionError::Pipe)?;
    let null = || {
        nix::fcntl::open(
            "/dev/null",
            OFlag::O_RDWR | OFlag::O_CLOEXEC,
            nix::sys::stat::Mode::empty(),
        )
    };
    let stream = || null().map(Stream::File).map_err(VersionError::Pipe);
    let streams = [stream()?, Stream::File(writer), stream()?];
    let order = Order {
        argv: agent.version_argv(candidate),
        streams,
        inlets: Vec::new(),
        door: Doors::None,
    };
    let jailed = spawn(&policy, order)?;
    let subject = expectation(&jailed, &policy, NetSubject::default())?;
    let passed =
        held(&subject).map_err(|report| RunError::NotVerified(super::attendance::Unconfined::of(&report).0))?;
    let running = jailed.release(passed)?;
    let watch = Watch::start(vec![subject]).map_err(RunError::NoWatch)?;
    let outcome = Attendance::new(&[&running], None, &setting.signals, &watch, OnFailure::Stop).wait(|_| {});
    running.end();
    if !matches!(outcome, Outcome::Ended(..)) {
        return Err(VersionError::Silent(candidate.path.to_string()).into());
    }
    let mut answer = Vec::new();
    let _ = std::fs::File::from(reader).take(LONGEST).read_to_end(&mut answer);
    Ok(agent.parse_version(&answer)?)
}
