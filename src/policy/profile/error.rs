//! Why a profile is not taken.

use crate::base::{Explain, Kind};
use std::io;
use std::path::PathBuf;

/// Why a profile is not taken. Files are named as they were opened; a shipped one as `shipped:NAME`.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("there is no profile {name:?}{}", wanted_by(.by))]
    Missing {
        name: String,
        by: Option<String>,
        looked: Vec<PathBuf>,
    },
    #[error("cannot read the profile {file:?}: {source}")]
    Read { file: PathBuf, source: io::Error },
    #[error("the profile {file:?} is not JSON: line {line}, column {column}: {text}")]
    NotJson {
        file: PathBuf,
        line: usize,
        column: usize,
        text: String,
    },
    #[error("the profile {file:?} has an unknown key `{}`", key.escape_debug())]
    UnknownKey {
        file: PathBuf,
        key: String,
        nearest: Option<String>,
    },
    #[error("the profile {file:?} has the key `{}` twice: line {line}, column {column}", key.escape_debug())]
    Twice {
        file: PathBuf,
        key: String,
        line: usize,
        column: usize,
    },
    #[error("the profile {file:?} asks for `{}`, which is not enforced here: {reason}", key.escape_debug())]
    Refused { file: PathBuf, key: String, reason: String },
    #[error("there is no group {name:?} (`{}` in the profile {source_name:?})", key.escape_debug())]
    Group {
        name: String,
        key: String,
        source_name: String,
        nearest: Option<String>,
    },
    #[error("in the profile {file:?}, `{}` must be {expected}", key.escape_debug())]
    Wrong {
        file: PathBuf,
        key: String,
        expected: &'static str,
    },
    #[error("profiles extend each other in a circle: {}", .chain.join(" > ").escape_debug())]
    Loop { chain: Vec<String> },
    #[error("profiles extend each other more than {0} deep")]
    Deep(usize),
    #[error("the table of profile keys or groups is damaged: {0}")]
    Keys(String),
}

fn wanted_by(by: &Option<String>) -> String {
    by.as_ref()
        .map(|by| format!(", which {by:?} extends"))
        .unwrap_or_default()
}

impl Explain for ProfileError {
    fn kind(&self) -> Kind {
        match self {
            ProfileError::Missing { .. } => Kind::NotFound,
            ProfileError::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Kind::Permission,
            ProfileError::Keys(_) => Kind::Unknown,
            _ => Kind::Config,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ProfileError::Missing { looked, .. } => {
                let places: Vec<String> = looked.iter().map(|place| format!("{place:?}")).collect();
                Some(format!(
                    "looked at {} and among the shipped profiles: {}",
                    places.join(", "),
                    super::shipped_names().join(", ")
                ))
            }
            ProfileError::UnknownKey {
                nearest: Some(nearest), ..
            } => Some(format!("the nearest known key is `{nearest}`")),
            ProfileError::UnknownKey { nearest: None, .. } => {
                Some("`pinfold profile schema` has every known key".to_owned())
            }
            ProfileError::Twice { .. } => Some("keep one of them".to_owned()),
            ProfileError::Refused { .. } => {
                Some("take it out of the profile, and the sandbox will be wider than it asks for".to_owned())
            }
            ProfileError::Group { nearest, .. } => nearest
                .as_ref()
                .map(|name| format!("the nearest known one is {name:?}")),
            ProfileError::Loop { .. } => Some("take one `extends` out of the circle".to_owned()),
            _ => None,
        }
    }
}
