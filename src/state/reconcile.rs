//! Putting a record right whose owner died without a word. Pure: it looks at nothing and touches nothing.

use super::record::{LastError, Lifecycle, Record};
use crate::base::{Kind, ProcessRecord, Timestamp};
use std::time::Duration;

/// How long a launch may wait for a bridge to take it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The record as it should read, if it claims to be active and is not: its bridge is gone, or none took it within
/// [`PATIENCE`] of its last save, by the wall clock in either direction (a clock that was set back must not keep it).
pub fn reconcile(record: &Record, alive: impl Fn(&ProcessRecord) -> bool, now: Timestamp) -> Option<Record> {
    if !record.lifecycle_state.is_active() {
        return None;
    }
    let message = match &record.bridge {
        Some(bridge) if alive(bridge) => return None,
        Some(_) => "the bridge ended without recording its exit",
        None if record.lifecycle_state != Lifecycle::Provisional => "the bridge ended without recording its exit",
        None if now.distance(record.updated_at) <= PATIENCE => return None,
        None => "the pane did not start the bridge in time",
    };
    let mut settled = record.clone();
    settled.lifecycle_state = Lifecycle::Failed;
    settled.last_error = Some(LastError {
        kind: Kind::Startup.word().to_owned(),
        message: message.to_owned(),
        at: now,
    });
    settled.exited_at = Some(now);
    settled.handover = None;
    Some(settled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::{process, record};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    fn with(state: Lifecycle, bridge: Option<ProcessRecord>) -> Record {
        let mut record = record("p");
        record.lifecycle_state = state;
        record.bridge = bridge;
        record.updated_at = at(1_000_000);
        record
    }

    const ACTIVE: [Lifecycle; 3] = [Lifecycle::Provisional, Lifecycle::Starting, Lifecycle::Running];

    #[test]
    fn leaves_a_launch_alone_whose_bridge_lives() {
        for state in ACTIVE {
            assert_eq!(reconcile(&with(state, Some(process(7))), |_| true, at(9_000_000)), None);
        }
    }

    #[test]
    fn fails_a_launch_whose_bridge_is_gone_and_asks_only_about_the_bridge() {
        for state in ACTIVE {
            let mut record = with(state, Some(process(7)));
            record.server = Some(crate::state::Side {
                init: process(8),
                pid_namespace: None,
                given: None,
                other: serde_json::Map::new(),
            });
            let asked = std::cell::RefCell::new(Vec::new());
            let alive = |p: &ProcessRecord| {
                asked.borrow_mut().push(p.clone());
                false
            };
            let settled = reconcile(&record, alive, at(1_000_001)).unwrap();
            assert_eq!(asked.take(), [process(7)]);
            assert_eq!(settled.lifecycle_state, Lifecycle::Failed);
            let error = settled.last_error.clone().unwrap();
            assert_eq!(
                (error.kind.as_str(), error.message.as_str(), error.at),
                ("startup", "the bridge ended without recording its exit", at(1_000_001))
            );
            assert_eq!(settled.exited_at, Some(at(1_000_001)));
            assert_eq!(settled.server, record.server);
        }
    }

    #[test]
    fn a_request_waits_a_minute_for_its_bridge_by_any_clock() {
        let record = with(Lifecycle::Provisional, None);
        for (now, failed) in [
            (1_060_000, false),
            (1_060_001, true),
            (940_000, false),
            (939_999, true),
            (0, true),
        ] {
            assert_eq!(reconcile(&record, |_| true, at(now)).is_some(), failed, "{now}");
        }
    }

    #[test]
    fn a_started_launch_without_a_bridge_has_failed() {
        assert!(reconcile(&with(Lifecycle::Running, None), |_| true, at(1_000_000)).is_some());
    }

    #[test]
    fn what_has_ended_stays_as_it_was() {
        for state in [Lifecycle::Exited, Lifecycle::Failed] {
            assert_eq!(
                reconcile(&with(state, Some(process(7))), |_| false, at(9_000_000)),
                None
            );
        }
    }
}
