//! The attempts that an enclosed process makes, and the same outside as their control. Each is harmless where it
//! succeeds: what it makes it removes, what it changes it changes back.

mod batch;
mod files;
mod kernel;
mod outcome;
mod own;
mod plan;
mod processes;
mod sockets;
mod table;
#[cfg(test)]
mod tests;

pub use batch::{Argument, Try, attempt_all};
pub use outcome::{Outcome, Tried, Verdict};
pub use plan::{Planned, Shares, Targets, escape_set};

use std::ffi::OsString;
use table::ATTEMPTS;

/// Why an attempt could not even be made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UsageError {
    #[error("there is no attempt {0:?}")]
    Unknown(String),
    #[error("{attempt} takes {usage}")]
    Arguments { attempt: &'static str, usage: &'static str },
    #[error("the batch is no JSON array of attempts: {0}")]
    Batch(String),
}

impl crate::base::Explain for UsageError {
    fn kind(&self) -> crate::base::Kind {
        crate::base::Kind::Config
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            UsageError::Batch(_) => r#"write [{"attempt": "read", "args": ["/etc/shadow"]}]"#.to_owned(),
            _ => {
                let names: Vec<_> = ATTEMPTS.iter().map(|attempt| attempt.name).collect();
                format!("the attempts are {}", names.join(", "))
            }
        })
    }
}

/// What an attempt met, before it is named.
type Met = Result<Tried, nix::errno::Errno>;

/// The same with the kernel's words.
fn plain(met: Met) -> (Tried, String) {
    match met {
        Ok(tried) => (tried, String::new()),
        Err(errno) => (Tried::from_errno(errno), errno.desc().to_owned()),
    }
}

/// The names of all attempts.
pub fn names() -> impl Iterator<Item = &'static str> {
    ATTEMPTS.iter().map(|attempt| attempt.name)
}

/// The layers of the sandbox that each stop this attempt; none for what must work inside, or where there is no such
/// attempt.
pub fn layers_of(name: &str) -> &'static [&'static str] {
    let found = ATTEMPTS.iter().find(|attempt| attempt.name == name);
    found.map_or(&[], |attempt| attempt.layers)
}

/// The attempt of that name, if it takes these arguments.
fn find(name: &str, args: &[OsString]) -> Result<&'static table::Attempt, UsageError> {
    let attempt = ATTEMPTS
        .iter()
        .find(|attempt| attempt.name == name)
        .ok_or_else(|| UsageError::Unknown(name.to_owned()))?;
    if attempt.count.contains(&args.len()) {
        return Ok(attempt);
    }
    Err(UsageError::Arguments {
        attempt: attempt.name,
        usage: attempt.usage,
    })
}

/// Makes one attempt in this process. It takes at most a few seconds; silence is `TimedOut`, never a denial.
pub fn attempt_by_name(name: &str, args: &[OsString]) -> Result<Outcome, UsageError> {
    let attempt = find(name, args)?;
    let (result, detail) = (attempt.run)(args);
    Ok(Outcome {
        attempt: attempt.name.to_owned(),
        result,
        detail,
    })
}
