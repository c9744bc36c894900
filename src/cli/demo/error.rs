//! Why the demonstration could not be given.

use crate::base::text::visible;
use crate::base::{Explain, Kind};
use crate::state::StateError;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use std::io;
use std::path::PathBuf;

/// Something that the demonstration itself needs went wrong.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("git is not installed")]
    NoGit,
    #[error("`git {arguments}` failed: {}", visible(said))]
    Git { arguments: String, said: String },
    #[error("{}: {source}", visible(path))]
    Files { path: PathBuf, source: io::Error },
    #[error("{} cannot be used as a folder", visible(.0))]
    Place(PathBuf),
    #[error("nothing can listen on this machine's loopback or sockets: {source}")]
    Listen { source: io::Error },
    #[error("no pseudo-terminal can be used ({0})")]
    Pty(Errno),
    #[error("a process that stands in for others cannot be identified")]
    StandIn,
    #[error("interrupted ({0})")]
    Interrupted(Signal),
    #[error("the launch cannot be waited for: {0}")]
    Wait(io::Error),
    #[error("the launch ended early ({status}): {said}")]
    Ended { status: String, said: String },
    #[error("waited in vain for {0}")]
    Late(&'static str),
    #[error("the client did not end when it was asked to")]
    NoEnd,
    #[error("the launch left no record")]
    NoRecord,
    #[error(transparent)]
    State(StateError),
}

impl Explain for DemoError {
    fn kind(&self) -> Kind {
        match self {
            DemoError::NoGit => Kind::NotFound,
            DemoError::State(error) => error.kind(),
            _ => Kind::Startup,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            DemoError::NoGit => {
                Some("install it (Debian, Ubuntu: apt install git); the demonstration commits to a project".into())
            }
            DemoError::Ended { .. } => Some("`pinfold doctor` tries the same sandbox and says more".into()),
            DemoError::Late(_) => Some("the logs say more; a slow machine may do better when it is less busy".into()),
            DemoError::Files { .. } => Some("TMPDIR says where the demonstration has its folder".into()),
            DemoError::State(error) => error.hint(),
            _ => None,
        }
    }
}
