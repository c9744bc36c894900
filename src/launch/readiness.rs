//! Between server and client: until the server answers as it should, is gone, or somebody does not want to wait.

use super::interrupted::{Interrupted, end_if_asked};
use super::pair::Pair;
use super::session::describe;
use super::traffic::connect_inside;
use crate::agent::{NotReady, Patience, Ready, wait_ready};
use crate::base::{AbsPath, Explain, Fault, Kind};
use crate::sandbox::attend::Signals;
use crate::sandbox::door::Door;
use crate::sandbox::{Running, Told};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::time::Duration;

/// The server did not become ready.
#[derive(Debug, thiserror::Error)]
#[error("{cause} (its log is {log})")]
pub struct ReadinessError {
    cause: NotReady,
    log: AbsPath,
}

impl Explain for ReadinessError {
    fn kind(&self) -> Kind {
        self.cause.kind()
    }
    fn hint(&self) -> Option<String> {
        self.cause.hint()
    }
}

/// Asks through the door, for `limit` in all; a signal to this process ends the wait.
pub fn wait_until_ready(
    pair: &Pair,
    door: &Door,
    server: &Running,
    signals: &Signals,
    limit: Duration,
    log: &AbsPath,
) -> Result<Ready, Fault> {
    let exited = || match signals.ending() {
        Some(signal) => Some(Interrupted(signal).to_string()),
        None => ended(server),
    };
    let probe = pair.agent.probe(&pair.program, pair.port, &pair.password);
    let patience = Patience {
        total: limit,
        ..Patience::default()
    };
    let outcome = wait_ready(&probe, patience, || connect_inside(door, pair.port), exited);
    end_if_asked(signals)?;
    Ok(outcome.map_err(|cause| ReadinessError {
        cause,
        log: log.clone(),
    })?)
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
