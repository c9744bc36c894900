//! What can go wrong between Pinfold and the place where panes live.

use crate::base::program::ProgramError;
use crate::base::text::{visible, visible_bytes};
use crate::base::{AbsPath, Explain, Kind, PaneId};
use std::io;
use std::time::Duration;

/// Why a host did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("this is a Herdr pane, and the Herdr host arrives with the Herdr plugin")]
    Herdr,
    #[error("there is no host called {}", visible(name))]
    Unknown { name: String, known: Vec<&'static str> },
    #[error("there is no terminal here to run an agent in")]
    NoTerminal,
    #[error("a pane needs a program to run")]
    NoProgram,
    #[error("{} is not a pane of {host}", visible(pane.as_str()))]
    Foreign { host: &'static str, pane: PaneId },
    #[error("{host} cannot {verb} a pane")]
    Unsupported { host: &'static str, verb: &'static str },
    #[error("{0} is not a folder that a pane can start in")]
    Folder(AbsPath),
    #[error("an environment variable for a pane has a name that cannot be passed on: {}", visible(.0))]
    Variable(std::ffi::OsString),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("cannot run {program}: {source}")]
    Spawn { program: AbsPath, source: io::Error },
    #[error("{program} did not end within {} seconds and was stopped", limit.as_secs())]
    Timeout { program: AbsPath, limit: Duration },
    #[error("{program} refused: {}", visible_bytes(said.trim_ascii()))]
    Refused { program: AbsPath, said: Vec<u8> },
    #[error("{program} answered something else than a pane: {}", visible_bytes(said))]
    Answer { program: AbsPath, said: Vec<u8> },
    #[error("there is no tmux server at {0}")]
    NoServer(AbsPath),
}

impl Explain for HostError {
    fn kind(&self) -> Kind {
        match self {
            HostError::Herdr | HostError::Unknown { .. } | HostError::NoTerminal => Kind::Config,
            HostError::Foreign { .. } | HostError::Unsupported { .. } | HostError::Folder(_) => Kind::Target,
            HostError::Program(error) => error.kind(),
            HostError::NoServer(_) => Kind::NotFound,
            HostError::Spawn { .. } | HostError::Timeout { .. } | HostError::Refused { .. } => Kind::Startup,
            HostError::NoProgram | HostError::Variable(_) | HostError::Answer { .. } => Kind::Unknown,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            HostError::Herdr => {
                Some("run it in this terminal with `--host terminal`, or in tmux with `--host tmux`".to_owned())
            }
            HostError::Unknown { known, .. } => Some(format!("the hosts are {}", known.join(", "))),
            HostError::NoTerminal => Some(
                "start it in a terminal or in tmux, or use `pinfold run` for a command without a terminal".to_owned(),
            ),
            HostError::Program(error) => error.hint(),
            HostError::NoServer(_) => Some("start tmux first, or use `--host terminal`".to_owned()),
            HostError::Timeout { .. } => Some("see whether the multiplexer still answers, then try again".to_owned()),
            HostError::Folder(_) => Some("name a folder that exists and that you may enter".to_owned()),
            _ => None,
        }
    }
}
