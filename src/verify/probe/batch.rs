//! Many attempts in one process, so that a whole set needs one sandbox only.

use super::{Outcome, UsageError, attempt_by_name, find};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// One attempt as a batch writes it: `{"attempt": "read", "args": ["/etc/shadow"]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Try {
    pub attempt: String,
    #[serde(default)]
    pub args: Vec<Argument>,
}

/// An argument: text, or an array of bytes where it is no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    Text(String),
    Bytes(Vec<u8>),
}

impl Argument {
    fn to_os(&self) -> OsString {
        match self {
            Argument::Text(text) => text.into(),
            Argument::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        }
    }
}

impl From<&OsStr> for Argument {
    fn from(argument: &OsStr) -> Argument {
        match argument.to_str() {
            Some(text) => Argument::Text(text.to_owned()),
            None => Argument::Bytes(argument.as_bytes().to_vec()),
        }
    }
}

impl Try {
    /// An attempt with its arguments.
    pub fn new(attempt: &str, args: &[OsString]) -> Try {
        Try {
            attempt: attempt.to_owned(),
            args: args.iter().map(|arg| arg.as_os_str().into()).collect(),
        }
    }

    fn words(&self) -> Vec<OsString> {
        self.args.iter().map(Argument::to_os).collect()
    }
}

/// Makes all attempts in order; none if one of them is not known or lacks an argument.
pub fn attempt_all(tries: &[Try]) -> Result<Vec<Outcome>, UsageError> {
    for one in tries {
        find(&one.attempt, &one.words())?;
    }
    tries
        .iter()
        .map(|one| attempt_by_name(&one.attempt, &one.words()))
        .collect()
}
