//! Asking an agent's program for its version: untrusted like any other command, so in a sandbox of its own.

use super::attendance::Unconfined;
use super::interrupted::end_if_asked;
use super::run::RunError;
use super::session::{describe, expectation};
use super::{Additions, Setting, Wish};
use crate::agent::{Agent, Candidate, Version};
use crate::base::{AbsPath, Explain, Fault, Kind};
use crate::policy::Policy;
use crate::sandbox::attend::{Event, Wakes, next};
use crate::sandbox::{Doors, Exit, Order, Running, Stream, Told, spawn};
use crate::verify::{NetSubject, Subject, held, running};
use nix::fcntl::OFlag;
use std::io::Read as _;
use std::time::{Duration, Instant};

/// The profile under which it is asked: what the client has, which sees no project and no network.
const PROFILE: &str = "opencode-client";
/// Bytes of its answer that are read.
const LONGEST: u64 = 4096;
/// How often it is verified while it runs.
const INTERVAL: Duration = Duration::from_secs(1);

/// The program did not tell its version.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error("{program} did not tell its version: {how}")]
    Ended { program: AbsPath, how: String },
    #[error("{program} did not tell its version within {} seconds", limit.as_secs())]
    Slow { program: AbsPath, limit: Duration },
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

/// Runs the program's version command, verified like every other, and reads its answer. No thread is started: the
/// sandboxes that come next are made by forks.
pub fn version_of(
    agent: &dyn Agent,
    candidate: &Candidate,
    limit: Duration,
    setting: &Setting,
) -> Result<Version, Fault> {
    let policy = policy(agent, candidate, setting)?;
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
    let passed = held(&subject).map_err(|report| RunError::NotVerified(Unconfined::of(&report).0))?;
    let command = jailed.release(passed)?;
    let program = || candidate.path.clone();
    let exit = wait(&command, &subject, Instant::now() + limit, setting)?.ok_or_else(|| VersionError::Slow {
        program: program(),
        limit,
    })?;
    command.end();
    let mut answer = Vec::new();
    let _ = std::fs::File::from(reader).take(LONGEST).read_to_end(&mut answer);
    if exit != Exit::Code(0) && answer.is_empty() {
        let how = describe(exit);
        return Err(VersionError::Ended {
            program: program(),
            how,
        }
        .into());
    }
    Ok(agent.parse_version(&answer)?)
}

fn policy(agent: &dyn Agent, candidate: &Candidate, setting: &Setting) -> Result<Policy, Fault> {
    let program = candidate.clone().with_version(Version {
        major: 0,
        minor: 0,
        patch: 0,
    });
    let variables = agent.variables(&program, &setting.dirs.data).into_iter();
    let additions = Additions {
        variables: variables.map(|(name, value)| (name.to_owned(), value.into())).collect(),
        ..Additions::default()
    };
    let wish = Wish {
        block_net: true,
        ..Wish::default()
    };
    wish.policy(PROFILE, additions, setting)
}

/// Until it has ended; nothing at the deadline.
fn wait(command: &Running, subject: &Subject, deadline: Instant, setting: &Setting) -> Result<Option<Exit>, Fault> {
    // Nobody writes to it: there is no other thread to wake this one.
    let (wake, _quiet) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(VersionError::Pipe)?;
    loop {
        let until = deadline.min(Instant::now() + INTERVAL);
        let event = next(
            &[command],
            &mut None,
            &setting.signals,
            Wakes {
                watch: std::os::fd::AsFd::as_fd(&wake),
                door: None,
            },
            Some(until),
        );
        match event.map_err(RunError::Broken)? {
            Event::Told(_, Told::Ended(exit)) => return Ok(Some(exit)),
            Event::Signal(_) => end_if_asked(&setting.signals)?,
            Event::Late if Instant::now() >= deadline => return Ok(None),
            Event::Late => {
                let report = running(subject);
                if !report.ok() && !report.ended {
                    return Err(Unconfined::of(&report).into());
                }
            }
            Event::Told(..) | Event::Woken | Event::DoorGone => {}
        }
    }
}
