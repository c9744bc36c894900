//! What can be wrong with the state, and what to do about it.

use crate::base::atomic::SaveError;
use crate::base::dirs::DirsError;
use crate::base::text::visible;
use crate::base::{AbsPath, Explain, Holder, Kind, LaunchId, LockError, PaneId};
use std::fmt;
use std::io;

/// A pane's file that could not be used. Nothing of it is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: AbsPath,
    /// What is wrong with it.
    pub reason: Reason,
    /// Where it was moved to, or nothing if it was left in place.
    pub aside: Option<AbsPath>,
}

/// What is wrong with a pane's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A newer build wrote it, in this version; it is left alone.
    Newer(u64),
    /// It is no record, for this reason.
    Damaged(String),
    /// It could not be read or put right, for this reason.
    Failed(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the record {} cannot be used: ", self.file)?;
        match &self.reason {
            Reason::Newer(version) => write!(f, "a newer pinfold wrote it (version {version})")?,
            Reason::Damaged(reason) | Reason::Failed(reason) => f.write_str(&visible(reason))?,
        }
        match &self.aside {
            Some(aside) => write!(f, "; it was set aside as {aside}"),
            None => f.write_str("; it was left in place"),
        }
    }
}

/// Why the state could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(transparent)]
    Dirs(#[from] DirsError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error("cannot write the record of pane {}: {source}", visible(pane.as_str()))]
    Json { pane: PaneId, source: serde_json::Error },
    #[error("cannot work in {path}: {source}")]
    Folder { path: AbsPath, source: io::Error },
    #[error("pane {} is in use by {}", visible(pane.as_str()), holder.as_ref().map_or_else(|| "another process".to_owned(), Holder::to_string))]
    Claimed { pane: PaneId, holder: Option<Holder> },
    #[error("pane {} is taken by the launch {}", visible(pane.as_str()), visible(session))]
    Busy { pane: PaneId, session: String },
    #[error("no launch is called {}", visible(.0))]
    NotFound(String),
    #[error("{} could be {}", visible(key), names.iter().map(visible).collect::<Vec<_>>().join(" or "))]
    Ambiguous { key: String, names: Vec<String> },
    #[error("there is no launch {0} to take: it was taken, has ended, or waited too long")]
    NotWaiting(LaunchId),
    #[error("{0}")]
    Unusable(Problem),
}

impl Explain for StateError {
    fn kind(&self) -> Kind {
        match self {
            StateError::Dirs(error) => error.kind(),
            StateError::Lock(error) => error.kind(),
            StateError::Save(error) => error.kind(),
            StateError::Claimed { .. } | StateError::Busy { .. } | StateError::NotWaiting(_) => Kind::Conflict,
            StateError::NotFound(_) => Kind::NotFound,
            StateError::Ambiguous { .. } => Kind::Target,
            StateError::Folder { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Kind::Permission,
            StateError::Json { .. } | StateError::Folder { .. } | StateError::Unusable(_) => Kind::Unknown,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            StateError::Dirs(error) => error.hint(),
            StateError::Lock(error) => error.hint(),
            StateError::Save(error) => error.hint(),
            StateError::Claimed { .. } | StateError::Busy { .. } => {
                Some("use another pane, or end that launch with `pinfold stop`".to_owned())
            }
            StateError::NotFound(_) => Some("`pinfold list` shows the launches".to_owned()),
            StateError::Ambiguous { .. } => Some("give more of the name".to_owned()),
            StateError::NotWaiting(_) => Some("start it again with `pinfold start`".to_owned()),
            StateError::Unusable(Problem {
                reason: Reason::Newer(_),
                ..
            }) => Some("use the newer pinfold for this pane".to_owned()),
            StateError::Json { .. } | StateError::Folder { .. } | StateError::Unusable(_) => None,
        }
    }
}
