//! Words that every layer uses: newtypes, errors that explain themselves, atomic files, locks, process identity.
#![forbid(unsafe_code)]

mod fault;
mod ids;
mod path;
mod text;

pub use fault::{Explain, Fault, Kind};
pub use ids::{LaunchId, PaneId, Pid, Port, Secret};
pub use path::{AbsPath, PathError};
pub use text::visible;
