//! Readers of /proc. Names, environments and paths are bytes; a reader never fails on what they contain.

pub mod descriptors;
mod entry;
pub mod mountinfo;
pub mod namespaces;
pub mod net;
pub mod status;
#[cfg(test)]
mod tests;

pub use entry::{Entry, pids};

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The process has ended, or is past the point where it could do anything.
    #[error("the process has ended")]
    Ended,
    #[error("cannot read {what}: {errno}")]
    Unreadable {
        what: &'static str,
        errno: nix::errno::Errno,
    },
    #[error("cannot understand {0}")]
    Malformed(&'static str),
}

/// What was read, or why not.
pub type Reading<T> = Result<T, ReadError>;
