//! Words that every layer uses: newtypes, errors that explain themselves, atomic files, locks, process identity, folders.
#![forbid(unsafe_code)]

pub mod atomic;
pub mod dirs;
mod fault;
mod ids;
mod lock;
mod path;
mod process;
pub mod program;
pub mod regular;
#[cfg(test)]
pub mod small_disk;
pub mod text;
mod time;

use std::collections::BTreeMap;
use std::ffi::OsString;

pub use dirs::Dirs;
pub use fault::{Explain, Fault, Kind};
pub use ids::{LaunchId, PaneId, Pid, Port, Secret, hex};
pub use lock::{FileLock, Holder, LockError};
pub use path::{AbsPath, PathError};
pub use process::{Liveness, ProcessError, ProcessRecord};
pub use time::Timestamp;

/// An environment, read once at the start and passed on as a value; names and values are bytes.
pub type Environ = BTreeMap<OsString, OsString>;
