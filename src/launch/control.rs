//! Acting on a session from another process: `stop` and `verify`. A process is only ever signalled by a descriptor that
//! was checked to be the recorded one: a number alone may be another's by now.

use crate::base::{Explain, Fault, Kind, ProcessRecord, Timestamp};
use crate::state::{Lifecycle, Record, Store};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// How long a session may take to end in good order.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a verification may take to be recorded.
const ANSWER: Duration = Duration::from_secs(10);

/// A session that cannot be acted on.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("{0} is not running")]
    NotRunning(String),
    #[error("{0} is still starting: nothing of its client has run")]
    Starting(String),
    #[error("no session is recorded")]
    None,
    #[error("no session is running")]
    NoneRunning,
    #[error("several sessions are running: {}", .0.join(", "))]
    Several(Vec<String>),
    #[error("{session} belongs to a process that cannot be signalled ({errno})")]
    Signal { session: String, errno: Errno },
    #[error("{0} could not be ended: the kernel does not let its process go")]
    StillAlive(String),
    #[error("{0} was asked to verify itself and did not record an answer")]
    Silent(String),
}

impl Explain for ControlError {
    fn kind(&self) -> Kind {
        match self {
            ControlError::NotRunning(_) | ControlError::NoneRunning | ControlError::None => Kind::NotFound,
            ControlError::Several(_) | ControlError::Starting(_) => Kind::Target,
            ControlError::Signal { .. } => Kind::Permission,
            ControlError::Silent(_) | ControlError::StillAlive(_) => Kind::Unknown,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            ControlError::None | ControlError::NoneRunning => Some("start one with `pinfold start`".into()),
            ControlError::Several(_) => Some("name one; the beginning of its name will do".into()),
            ControlError::Starting(_) => Some("try again when `pinfold list` says that it runs".into()),
            ControlError::NotRunning(_) => Some("`pinfold list` shows what is".into()),
            _ => None,
        }
    }
}

/// Which sessions are meant when none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// The running one, and nothing else.
    Running,
    /// The running one, else the one that was changed last.
    All,
}

/// The record that `key` names; without one, the only running session or, among all, the last one.
pub fn select(store: &Store, key: Option<&str>, among: Among) -> Result<Record, Fault> {
    let records = store.reconcile_all()?.records;
    if let Some(key) = key {
        let by_launch = records.iter().find(|record| record.launch_id.as_str() == key);
        return Ok(by_launch.cloned().map_or_else(|| store.find(key), Ok)?);
    }
    Ok(unnamed(&records, among)?.clone())
}

/// The session that is meant without a name.
fn unnamed(records: &[Record], among: Among) -> Result<&Record, ControlError> {
    let running: Vec<&Record> = records
        .iter()
        .filter(|record| record.lifecycle_state.is_active())
        .collect();
    match (running.as_slice(), among) {
        ([only], _) => Ok(only),
        ([], Among::Running) => Err(ControlError::NoneRunning),
        ([], Among::All) => records
            .iter()
            .max_by_key(|record| record.ended_at())
            .ok_or(ControlError::None),
        (several, _) => Err(ControlError::Several(
            several.iter().map(|record| record.session_name.clone()).collect(),
        )),
    }
}

/// Ends a session: asks its bridge, waits, and where that does not help kills it; everything of it ends with it.
pub fn stop(store: &Store, record: &Record) -> Result<Record, Fault> {
    let bridge = bridge(record)?;
    signal(record, &bridge, Signal::SIGTERM)?;
    if !gone_within(&bridge, PATIENCE) {
        signal(record, &bridge, Signal::SIGKILL)?;
        if !gone_within(&bridge, PATIENCE) {
            return Err(ControlError::StillAlive(record.session_name.clone()).into());
        }
    }
    let listing = store.reconcile_all()?;
    let after = listing
        .records
        .into_iter()
        .find(|after| after.pane_id == record.pane_id);
    Ok(after.unwrap_or_else(|| record.clone()))
}

/// Has a running session verified now, by its bridge, and returns the record with the reports.
pub fn verify(store: &Store, record: &Record) -> Result<Record, Fault> {
    let bridge = bridge(record)?;
    if record.lifecycle_state != Lifecycle::Running {
        return Err(ControlError::Starting(record.session_name.clone()).into());
    }
    let asked = Timestamp::now().millis() / 1000;
    signal(record, &bridge, Signal::SIGUSR1)?;
    let end = Instant::now() + ANSWER;
    while Instant::now() < end {
        let gone = gone_within(&bridge, Duration::from_millis(50));
        let now = store.find(record.pane_id.as_str())?;
        // Other changes of the record are no answer.
        if now.revision != record.revision && checked_since(&now, asked) {
            return Ok(now);
        }
        if gone {
            break;
        }
    }
    Err(ControlError::Silent(record.session_name.clone()).into())
}

/// Whether both sandboxes were looked at in or after that second.
fn checked_since(record: &Record, second: i64) -> bool {
    let reports = record.reports();
    let at = |report: &serde_json::Value| report.get("checked_at").and_then(serde_json::Value::as_i64);
    reports.len() == 2 && reports.iter().all(|report| at(report).is_some_and(|at| at >= second))
}

/// The bridge by descriptor; the record's identity was compared while the descriptor was held.
fn bridge(record: &Record) -> Result<OwnedFd, Fault> {
    let gone = || ControlError::NotRunning(record.session_name.clone());
    let owner: &ProcessRecord = record.bridge.as_ref().ok_or_else(gone)?;
    let descriptor = crate::sys::pidfd::open(owner.pid.get()).map_err(|_| gone())?;
    if owner.is_alive() {
        Ok(descriptor)
    } else {
        Err(gone().into())
    }
}

fn signal(record: &Record, bridge: &OwnedFd, signal: Signal) -> Result<(), Fault> {
    match crate::sys::pidfd::signal(bridge, signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(ControlError::Signal {
            session: record.session_name.clone(),
            errno,
        }
        .into()),
    }
}

/// Whether the process ends within the time (a pidfd becomes readable then).
fn gone_within(process: &OwnedFd, limit: Duration) -> bool {
    let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    let mut polled = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, limit).is_ok_and(|count| count > 0)
}
