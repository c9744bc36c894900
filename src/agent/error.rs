//! Why an agent cannot be used.

use crate::base::{Explain, Kind};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why an agent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("no agent is called {name:?} (known: {})", known.join(", "))]
    Unknown { name: OsString, known: Vec<&'static str> },
    #[error("{agent} is not installed: neither on PATH nor at {own:?}")]
    Missing {
        agent: &'static str,
        package: &'static str,
        own: PathBuf,
    },
    #[error("{path:?} is not an absolute path")]
    Relative { path: PathBuf },
    #[error("{path:?} cannot be read: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path:?} is not executable")]
    NotExecutable { path: PathBuf },
    #[error("{path:?} is not a program for this machine: {reason}")]
    WrongMachine { path: PathBuf, reason: String },
    #[error("{path:?} is no program but a script, and the program that it stands for is not installed beside it")]
    OnlyScript { path: PathBuf, package: &'static str },
    #[error("{path:?} lies inside the workspace, where a sandboxed agent could replace it")]
    InWorkspace { path: PathBuf },
    #[error("{agent} says version {said:?}, which Pinfold does not know")]
    UnknownVersion { agent: &'static str, said: String },
    #[error("the argument {argument:?} is not for a sandboxed {agent}: {reason}")]
    Argument {
        agent: &'static str,
        argument: OsString,
        reason: &'static str,
    },
}

impl Explain for AgentError {
    fn kind(&self) -> Kind {
        match self {
            AgentError::Unknown { .. } | AgentError::Relative { .. } | AgentError::Argument { .. } => Kind::Config,
            AgentError::Missing { .. } => Kind::NoProgram,
            AgentError::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => Kind::NoProgram,
            AgentError::Unreadable { .. } | AgentError::NotExecutable { .. } => Kind::Permission,
            AgentError::WrongMachine { .. } | AgentError::OnlyScript { .. } => Kind::Target,
            AgentError::InWorkspace { .. } => Kind::Permission,
            AgentError::UnknownVersion { .. } => Kind::Target,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            AgentError::Unknown { .. } => "correct the name of the agent in the configuration".to_owned(),
            AgentError::Missing { package, .. } | AgentError::OnlyScript { package, .. } => {
                format!(
                    "`pinfold demo` installs one for Pinfold alone, or install it yourself: npm install -g {package}"
                )
            }
            AgentError::Relative { .. } => "write the whole path in the configuration, from `/` on".to_owned(),
            AgentError::Unreadable { .. } => "correct the path in the configuration, or its permissions".to_owned(),
            AgentError::NotExecutable { path } => format!("chmod +x {path:?}"),
            AgentError::WrongMachine { .. } => {
                "install the package for this processor and C library, or let `pinfold demo` choose it".to_owned()
            }
            AgentError::InWorkspace { .. } => "install it outside the workspace".to_owned(),
            AgentError::UnknownVersion { .. } => {
                "versions 1.x and 2.x are known; development builds that name neither are refused".to_owned()
            }
            AgentError::Argument { .. } => "leave it out; Pinfold decides how the two sides meet".to_owned(),
        })
    }
}
