//! A start that somebody ended before anything ran in the pane: with ctrl-C, with `stop`, or by closing the pane.

use crate::base::{Explain, Kind};
use crate::sandbox::attend::Signals;
use nix::sys::signal::Signal;

/// The signal that ended it.
#[derive(Debug, thiserror::Error)]
#[error("the start was interrupted ({0})")]
pub struct Interrupted(pub Signal);

impl Explain for Interrupted {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
}

/// Between two steps of a start: whether to go on.
pub fn end_if_asked(signals: &Signals) -> Result<(), Interrupted> {
    signals.ending().map_or(Ok(()), |signal| Err(Interrupted(signal)))
}
