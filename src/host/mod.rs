//! Where panes live: the multiplexers, and this terminal. See design.md §7.
#![forbid(unsafe_code)]

mod command;
mod error;
mod terminal;
mod tmux;

pub use error::HostError;
pub use terminal::Terminal;
pub use tmux::Tmux;

use crate::base::{AbsPath, Environ, PaneId};
use std::ffi::{OsStr, OsString};

/// Every host, in the order in which they are detected. A new one is one file and one line here.
const HOSTS: &[Maker] = &[
    |around| Box::new(Tmux::new(around)),
    |around| Box::new(Terminal::new(around)),
];

/// Looks around and makes a host, whether Pinfold is inside it or not.
type Maker = fn(&Surroundings<'_>) -> Box<dyn Host>;

/// What a host may know of where Pinfold was started.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The environment of the start.
    pub env: &'a Environ,
    /// The user, for default socket paths.
    pub uid: nix::unistd::Uid,
    /// The workspace root: no program is taken from there.
    pub workspace: Option<&'a AbsPath>,
}

/// A pane to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The program and its arguments, passed on byte for byte; no shell sees them.
    pub argv: Vec<OsString>,
    /// Where it starts.
    pub folder: AbsPath,
    /// Variables on top of the host's own.
    pub env: Vec<(OsString, OsString)>,
    /// Where the pane goes.
    pub place: Place,
    /// Which pane the person is in afterwards.
    pub focus: Focus,
}

/// Where a new pane goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Beside the current pane.
    Right,
    /// Below it.
    Below,
    /// In a window (tab) of its own.
    Window,
}

/// Which pane has the keyboard after a pane was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// The new one.
    New,
    /// The one that had it before.
    Unchanged,
}

/// What came of a request for a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// A new pane, in which the host has started the program.
    There(PaneId),
    /// This very terminal: the host has started nothing, the caller does.
    Here(PaneId),
}

/// A place where panes live.
pub trait Host: std::fmt::Debug {
    /// Its word in options and records.
    fn name(&self) -> &'static str;
    /// Whether Pinfold was started inside it.
    fn is_around(&self) -> bool;
    /// The pane in which Pinfold was started.
    fn here(&self) -> Option<PaneId>;
    /// Opens a pane that runs a program.
    fn open_pane(&self, request: &Request) -> Result<Opened, HostError>;
    /// Whether a pane still exists.
    fn pane_exists(&self, pane: &PaneId) -> Result<bool, HostError>;
    /// Closes a pane and ends what runs in it. A pane that is gone is no error.
    fn close(&self, pane: &PaneId) -> Result<(), HostError>;
    /// Moves the person to a pane.
    fn focus(&self, pane: &PaneId) -> Result<(), HostError>;
}

/// The host that was asked for by name, else the first that Pinfold was started in.
///
/// Inside Herdr and without a name it is an error: its host comes with the Herdr plugin, and opening the pane anywhere
/// else without being asked would be a surprise.
pub fn choose(around: &Surroundings<'_>, wanted: Option<&str>) -> Result<Box<dyn Host>, HostError> {
    let mut hosts = HOSTS.iter().map(|host| host(around));
    let in_herdr = around
        .env
        .get(OsStr::new("HERDR_ENV"))
        .is_some_and(|value| value == "1");
    match wanted {
        Some("herdr") => Err(HostError::Herdr),
        Some(name) => hosts.find(|h| h.name() == name).ok_or_else(|| HostError::Unknown {
            name: name.to_owned(),
            known: names(around),
        }),
        None if in_herdr => Err(HostError::Herdr),
        None => hosts.find(|host| host.is_around()).ok_or(HostError::NoTerminal),
    }
}

/// The names of all hosts, in the order of detection.
pub fn names(around: &Surroundings<'_>) -> Vec<&'static str> {
    HOSTS.iter().map(|host| host(around).name()).collect()
}

#[cfg(test)]
mod tests;
