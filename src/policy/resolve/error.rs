//! Why a profile and a request do not make a policy.

use crate::base::{Explain, Kind};
use crate::policy::frozen::Origin;
use crate::policy::net::RuleError;
use crate::policy::walk::WalkError;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a profile and a request do not make a policy. Paths are shown with their control characters escaped.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("refusing {path:?} as the workspace: {reason}")]
    Root { path: PathBuf, reason: String },
    #[error("the workspace {0:?} does not exist")]
    RootMissing(PathBuf),
    #[error("the workspace {0:?} is not a folder")]
    RootNotAFolder(PathBuf),
    #[error("the workspace {path:?} cannot be read: {source}")]
    RootUnreadable { path: PathBuf, source: io::Error },
    #[error("{path:?} is not an absolute path ({})", place(.origin))]
    Relative { path: PathBuf, origin: Origin },
    #[error("{path:?} does not exist ({})", place(.origin))]
    Missing { path: PathBuf, origin: Origin },
    #[error("{path:?} is {found}, not {wanted} ({})", place(.origin))]
    Shape {
        path: PathBuf,
        found: &'static str,
        wanted: &'static str,
        origin: Box<Origin>,
    },
    #[error("refusing to grant {path:?}: {reason} ({})", place(.origin))]
    TooBroad {
        path: PathBuf,
        reason: String,
        origin: Origin,
    },
    #[error("{path:?} is denied by {} ({})", place(.denied_by), place(.origin))]
    Denied {
        path: PathBuf,
        denied_by: Box<Origin>,
        origin: Origin,
    },
    #[error("{path:?} is private in every sandbox of this profile ({})", place(.origin))]
    Private { path: PathBuf, origin: Origin },
    #[error("two things would stand at {path:?}: {} and {}", place(.first), place(.second))]
    Occupied {
        path: PathBuf,
        first: Box<Origin>,
        second: Box<Origin>,
    },
    #[error("{path:?} would have to be made on the host, inside a granted folder ({})", place(.origin))]
    Ghost { path: PathBuf, origin: Origin },
    #[error("cannot follow {path:?}: {text} ({})", place(.origin))]
    Walk {
        path: PathBuf,
        text: String,
        permission: bool,
        origin: Box<Origin>,
    },
    #[error("{text:?} uses `${name}`, which has no value ({})", place(.origin))]
    Variable {
        text: String,
        name: String,
        known: Vec<String>,
        origin: Box<Origin>,
    },
    #[error("{pattern:?} cannot be expanded: {reason} ({})", place(.origin))]
    Pattern {
        pattern: PathBuf,
        reason: String,
        origin: Box<Origin>,
    },
    #[error("{pattern:?} cannot be denied: what fits `**` would have to be looked for in the whole tree, and what appears later would not be covered ({})", place(.origin))]
    DeepDeny { pattern: PathBuf, origin: Box<Origin> },
    #[error("there is no home folder")]
    NoHome,
    #[error("{source} ({})", place(.origin))]
    Rule { source: RuleError, origin: Box<Origin> },
    #[error("{} cannot be had without a network", .0)]
    NoNetwork(&'static str),
    #[error("{0:?} is not a name for a variable")]
    VariableName(OsString),
    #[error("the data of {0} is damaged: {1}")]
    Data(&'static str, String),
}

/// `profile default, filesystem.read[2]` or `--allow`.
fn place(origin: &Origin) -> String {
    match origin.source.as_str() {
        "command line" => origin.key.clone(),
        source => format!("{} in {}", origin.key.escape_debug(), source.escape_debug()),
    }
}

impl ResolveError {
    pub(super) fn walk(path: PathBuf, error: WalkError, origin: Origin) -> ResolveError {
        match error {
            WalkError::Relative(path) => ResolveError::Relative { path, origin },
            WalkError::Io { path, source } => ResolveError::Walk {
                permission: source.kind() == io::ErrorKind::PermissionDenied,
                text: source.to_string(),
                path,
                origin: Box::new(origin),
            },
            other => ResolveError::Walk {
                path,
                text: other.to_string(),
                permission: false,
                origin: Box::new(origin),
            },
        }
    }
}

impl Explain for ResolveError {
    fn kind(&self) -> Kind {
        match self {
            ResolveError::Root { .. } | ResolveError::RootMissing(_) | ResolveError::RootNotAFolder(_) => Kind::Target,
            ResolveError::RootUnreadable { .. } | ResolveError::Walk { permission: true, .. } => Kind::Permission,
            ResolveError::Missing { .. } => Kind::NotFound,
            ResolveError::Occupied { .. } | ResolveError::Denied { .. } => Kind::Conflict,
            ResolveError::NoHome => Kind::Startup,
            ResolveError::Data(..) => Kind::Unknown,
            _ => Kind::Config,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            ResolveError::Root { .. } => "start in a project folder",
            ResolveError::RootMissing(_) | ResolveError::RootNotAFolder(_) => "name an existing project folder",
            ResolveError::RootUnreadable { .. } => "start in a folder that you may list",
            ResolveError::Relative { .. } => "write the whole path, or begin it with `~/` or `$WORKDIR/`",
            ResolveError::Missing { .. } => "check the spelling, or make it first",
            ResolveError::TooBroad { .. } => "grant only the folder below it that is needed",
            ResolveError::Denied { .. } => "a deny wins over every grant: use a profile without it",
            ResolveError::Private { .. } => "grant something below it, or another folder",
            ResolveError::Occupied { .. } => "give one of them another `at`",
            ResolveError::Ghost { .. } => "make it yourself first, or choose a place outside the granted folder",
            ResolveError::Variable { known, .. } => return Some(format!("known here: {}", known.join(", "))),
            ResolveError::Pattern { .. } => "name the paths, or write more of the path before the first star",
            ResolveError::DeepDeny { .. } => {
                "name the files or the folder that holds them, or grant only what may be read"
            }
            ResolveError::NoHome => "set HOME to your home folder",
            ResolveError::Rule { source, .. } => return source.hint(),
            ResolveError::NoNetwork(_) => "leave --block-net out, or use a profile that does not block the network",
            ResolveError::VariableName(_) => "write --env NAME or --env NAME=VALUE",
            ResolveError::Shape { .. } | ResolveError::Walk { .. } | ResolveError::Data(..) => return None,
        };
        Some(hint.to_owned())
    }
}
