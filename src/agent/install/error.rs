//! Why an installation failed.

use crate::agent::AgentError;
use crate::base::{Explain, Kind, PathError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

/// Why nothing was installed. What was installed before is untouched.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("npm is not on PATH")]
    NoNpm,
    #[error("npm cannot install {package}: {code} {summary:?}")]
    Registry {
        package: String,
        code: String,
        summary: String,
    },
    #[error("npm did not install {package} ({status}): {said:?}")]
    Npm {
        package: String,
        status: ExitStatus,
        said: String,
    },
    #[error("the disk is full at {place:?}")]
    DiskFull { place: PathBuf },
    #[error("OpenCode was not installed within {} seconds while {doing}", limit.as_secs())]
    TooSlow { limit: Duration, doing: &'static str },
    #[error("the installation of OpenCode was broken off")]
    BrokenOff,
    #[error("{package} holds no program for this machine")]
    NoProgram { package: String, source: AgentError },
    #[error("{package} holds a script instead of a program")]
    Script { package: String },
    #[error("cannot {step} {place:?}: {source}")]
    Files {
        step: &'static str,
        place: PathBuf,
        source: io::Error,
    },
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Explain for InstallError {
    fn kind(&self) -> Kind {
        match self {
            InstallError::NoNpm | InstallError::Registry { .. } => Kind::NotFound,
            InstallError::NoProgram { .. } | InstallError::Script { .. } => Kind::Target,
            InstallError::Files { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Kind::Permission,
            InstallError::Path(_) => Kind::Config,
            _ => Kind::Startup,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            InstallError::NoNpm => {
                "install it (Debian, Ubuntu: apt install npm), or install OpenCode yourself so that it is on PATH"
            }
            InstallError::Registry { .. } => {
                "npm needs its registry: check the network, the proxy variables and npm's `registry` setting"
            }
            InstallError::DiskFull { .. } => "about 200 MB are needed there, and as much in npm's cache",
            InstallError::TooSlow { .. } | InstallError::BrokenOff => "try again: npm's cache keeps what has arrived",
            InstallError::Npm { .. } => "npm's own log says more",
            InstallError::NoProgram { .. } | InstallError::Script { .. } => {
                "install OpenCode yourself so that it is on PATH"
            }
            InstallError::Files { .. } | InstallError::Path(_) => "check the data folder and its owner",
        };
        Some(hint.to_owned())
    }
}

/// npm names its error by a code in JSON on its standard output; the codes of the system are among them.
pub(super) fn npm_error(package: &str, place: &Path, status: ExitStatus, json: &[u8], text: &[u8]) -> InstallError {
    let json: serde_json::Value = serde_json::from_slice(json).unwrap_or_default();
    let field = |name: &str| {
        json["error"][name]
            .as_str()
            .unwrap_or_default()
            .chars()
            .take(400)
            .collect::<String>()
    };
    let (package, code, summary) = (package.to_owned(), field("code"), field("summary"));
    match code.as_str() {
        "ENOSPC" | "EDQUOT" => InstallError::DiskFull {
            place: place.to_owned(),
        },
        "" => {
            let said = String::from_utf8_lossy(text);
            let said = said.trim().chars().take(400).collect();
            InstallError::Npm { package, status, said }
        }
        _ => InstallError::Registry { package, code, summary },
    }
}

/// What to do with an error of the file system.
pub(super) fn files(step: &'static str, place: &Path) -> impl FnOnce(io::Error) -> InstallError {
    let place = place.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => InstallError::DiskFull { place },
        _ => InstallError::Files { step, place, source },
    }
}
