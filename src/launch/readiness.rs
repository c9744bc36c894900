//! Between server and client: until the server answers as it should, is gone, or somebody does not want to wait.

use super::pair::Pair;
use super::session::describe;
use super::traffic::connect_inside;
use crate::agent::{NotReady, Patience, Ready, wait_ready};
use crate::base::{AbsPath, Explain, Fault, Kind};
use crate::sandbox::attend::Signals;
use crate::sandbox::door::Door;
use crate::sandbox::{Running, Told};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use std::cell::Cell;

/// The server did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum ReadinessError {
    #[error("the start was interrupted ({0})")]
    Interrupted(Signal),
    #[error("{cause} (its log is {log})")]
    NotReady { cause: NotReady, log: AbsPath },
}

impl Explain for ReadinessError {
    fn kind(&self) -> Kind {
        match self {
            ReadinessError::Interrupted(_) => Kind::Startup,
            ReadinessError::NotReady { cause, .. } => cause.kind(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            ReadinessError::Interrupted(_) => None,
            ReadinessError::NotReady { cause, .. } => cause.hint(),
        }
    }
}

/// Asks through the door; a signal to this process ends the wait.
pub fn wait_until_ready(
    pair: &Pair,
    door: &Door,
    server: &Running,
    signals: &Signals,
    log: &AbsPath,
) -> Result<Ready, Fault> {
    let interrupted = Cell::new(None);
    let exited = || {
        if let Some(signal) = signals.next().filter(|signal| ends(*signal)) {
            interrupted.set(Some(signal));
            return Some("interrupted".into());
        }
        ended(server)
    };
    let probe = pair.agent.probe(&pair.program, pair.port, &pair.password);
    let outcome = wait_ready(&probe, Patience::default(), || connect_inside(door, pair.port), exited);
    match (outcome, interrupted.get()) {
        (_, Some(signal)) => Err(ReadinessError::Interrupted(signal).into()),
        (Ok(ready), None) => Ok(ready),
        (Err(cause), None) => Err(ReadinessError::NotReady {
            cause,
            log: log.clone(),
        }
        .into()),
    }
}

fn ends(signal: Signal) -> bool {
    matches!(
        signal,
        Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT
    )
}

/// How the server ended, if it has.
fn ended(server: &Running) -> Option<String> {
    let mut polled = [PollFd::new(server.messages(), PollFlags::POLLIN)];
    let ready = poll(&mut polled, PollTimeout::ZERO).is_ok_and(|count| count > 0);
    match ready.then(|| server.told()) {
        Some(Told::Ended(exit)) => Some(describe(exit)),
        _ => None,
    }
}
