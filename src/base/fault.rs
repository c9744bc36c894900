//! Errors that say what happened, where, and what to do.

use std::fmt;

/// The kinds of failure that scripts may rely on (the words stand in `--json` and in the result line).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    NotFound,
    /// The program itself that was to run; scripts see the same word as for any other path.
    NoProgram,
    Permission,
    Conflict,
    Config,
    /// The command line itself is wrong; scripts see the same word as for a configuration.
    Usage,
    Target,
    Startup,
    Unconfined,
    Unknown,
}

impl Kind {
    /// The word used in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Kind::NotFound | Kind::NoProgram => "not-found",
            Kind::Permission => "permission",
            Kind::Conflict => "conflict",
            Kind::Config | Kind::Usage => "config",
            Kind::Target => "target",
            Kind::Startup => "startup",
            Kind::Unconfined => "unconfined",
            Kind::Unknown => "unknown",
        }
    }
}

/// What every module's error type implements beside `Display` (one lower-case clause, no full stop).
pub trait Explain: std::error::Error + Send + Sync {
    /// The kind that scripts see.
    fn kind(&self) -> Kind;
    /// One line that says what to do, or nothing.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// Any module's error on its way to the person.
#[derive(Debug)]
pub struct Fault(Box<dyn Explain>);

impl Fault {
    /// The kind that scripts see.
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        self.0.hint()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: Explain + 'static> From<E> for Fault {
    fn from(error: E) -> Self {
        Fault(Box::new(error))
    }
}
