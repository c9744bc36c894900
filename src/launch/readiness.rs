//! Between server and client: until the server answers as it should, is gone, or somebody does not want to wait.

use super::attendance::Unconfined;
use super::interrupted::{Interrupted, end_if_asked};
use super::pair::Pair;
use super::session::describe;
use super::traffic::connect_inside;
use super::watch::Watch;
use crate::agent::{NotReady, Patience, Ready, wait_ready};
use crate::base::{AbsPath, Explain, Fault, Kind};
use crate::sandbox::attend::Signals;
use crate::sandbox::door::{Door, DoorGone};
use crate::sandbox::{Running, Told};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::cell::RefCell;
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

/// What is looked at while the server gets ready.
pub struct Waiting<'a> {
    pub server: &'a Running,
    pub watch: &'a Watch,
    pub signals: &'a Signals,
}

/// Asks through the door, for `limit` in all; a signal to this process ends the wait, and so does a failed verification.
pub fn wait_until_ready(
    pair: &Pair,
    door: &Door,
    waiting: &Waiting<'_>,
    limit: Duration,
    log: &AbsPath,
) -> Result<Ready, Fault> {
    let unconfined = RefCell::new(None);
    let exited = || match waiting.signals.ending() {
        Some(signal) => Some(Interrupted(signal).to_string()),
        None if door.is_gone() => Some(DoorGone.to_string()),
        None => ended(waiting.server).or_else(|| {
            let found = failed(waiting.watch)?;
            let text = found.to_string();
            unconfined.replace(Some(found));
            Some(text)
        }),
    };
    let probe = pair.agent.probe(&pair.program, pair.port, &pair.password);
    let patience = Patience {
        total: limit,
        ..Patience::default()
    };
    let outcome = wait_ready(
        &probe,
        patience,
        || connect_inside(door, pair.port, patience.each),
        exited,
    );
    end_if_asked(waiting.signals)?;
    if door.is_gone() {
        return Err(DoorGone.into());
    }
    if let Some(unconfined) = unconfined.into_inner() {
        return Err(unconfined.into());
    }
    Ok(outcome.map_err(|cause| ReadinessError {
        cause,
        log: log.clone(),
    })?)
}

/// A verification that failed meanwhile, or that nobody makes any more.
fn failed(watch: &Watch) -> Option<Unconfined> {
    let rounds = match watch.rounds() {
        Ok(rounds) => rounds,
        Err(errno) => return Some(Unconfined(format!("nobody verifies any more ({errno})"))),
    };
    let reports = rounds.into_iter().flat_map(|round| round.reports);
    let failed = reports.into_iter().find(|report| !report.ok() && !report.ended)?;
    Some(Unconfined::of(&failed))
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
