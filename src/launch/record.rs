//! The step record: what a session's record says of each stage.

use super::attendance::OnFailure;
use super::pair::Pair;
use super::session::{Ended, Logs};
use super::watch::Round;
use crate::agent::Ready;
use crate::base::{Fault, ProcessRecord, Timestamp};
use crate::sandbox::Facts;
use crate::state::{Claim, Lifecycle, Record, Side, StateError, Timings};
use crate::verify::{Namespaces, Report};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// The two sandboxes of a session, in the order of their subjects.
const SANDBOXES: [&str; 2] = ["server", "client"];
/// How old the recorded verification of a session that holds may become before the record is written again. Every
/// round would be a write a second.
const AGE: Duration = Duration::from_secs(10);

/// Promises that the person gave up by name: with `--on-failure warn`, that a launch ends with a failed verification.
pub fn weakened(on_failure: OnFailure) -> Vec<String> {
    match on_failure {
        OnFailure::Stop => Vec::new(),
        OnFailure::Warn => vec!["P8 verified first".into()],
    }
}

/// Both sandboxes are held.
pub fn record_start(record: &mut Record, pair: &Pair, logs: &Logs, [server, client]: [&Facts; 2], begun: Instant) {
    record.agent_version = Some(pair.program.version.to_string());
    record.port = Some(pair.port);
    record.server = side(server);
    record.client = side(client);
    record.server_log = Some(logs.server_path.clone());
    record.network_log = Some(logs.network.clone());
    record.mode = Some("full".into());
    let missing = pair
        .server
        .weakened
        .iter()
        .map(|promise| promise.full_name().to_owned());
    record.allow_missing = missing.collect();
    record.last_error = None;
    record.verification = None;
    record.last_exit_code = None;
    record.exited_at = None;
    record.timings = Some(Timings {
        held_ms: millis(begun.elapsed()),
        ready_ms: None,
        verified_ms: None,
    });
}

fn side(facts: &Facts) -> Option<Side> {
    let init = ProcessRecord::of(facts.first).ok()?;
    let pid_namespace = Namespaces::of(facts.first).ok().map(|namespaces| namespaces.pid);
    Some(Side {
        init,
        pid_namespace,
        given: serde_json::to_value(&facts.given).ok(),
        other: Map::new(),
    })
}

/// Both are verified and released.
pub fn record_running(record: &mut Record, ready: &Ready, verification: Option<Value>, begun: Instant) {
    record.lifecycle_state = Lifecycle::Running;
    record.agent_version = Some(ready.version.to_string());
    record.verification = verification;
    if let Some(timings) = record.timings.as_mut() {
        timings.ready_ms = Some(millis(ready.after));
        timings.verified_ms = Some(millis(begun.elapsed()));
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Reports as the record keeps them: each with the name of its sandbox.
pub fn reports(reports: &[Report]) -> Option<Value> {
    let named = SANDBOXES.iter().zip(reports).map(|(sandbox, report)| {
        let mut whole = Map::from_iter([("sandbox".to_owned(), Value::from(*sandbox))]);
        match serde_json::to_value(report) {
            Ok(Value::Object(report)) => whole.extend(report),
            _ => return None,
        }
        Some(Value::Object(whole))
    });
    named.collect::<Option<Vec<_>>>().map(Value::Array)
}

/// Keeps what later rounds of verification found.
pub struct Rounds<'a> {
    claim: &'a Claim,
    kept: Instant,
}

impl Rounds<'_> {
    /// The verification before the release was recorded a moment ago.
    pub fn new(claim: &Claim) -> Rounds<'_> {
        Rounds {
            claim,
            kept: Instant::now(),
        }
    }

    /// Records what somebody asked for and whatever is not as it should be; of quiet rounds only some.
    pub fn note(&mut self, round: &Round) {
        let bad = round.reports.iter().any(|report| !report.ok() && !report.ended);
        if round.asked || bad || self.kept.elapsed() >= AGE {
            self.kept = Instant::now();
            // A record that cannot be written must not end a launch that holds.
            let _ = self
                .claim
                .update(|record| record.verification = reports(&round.reports));
        }
    }
}

/// Writes how a session ended into its record; the lifecycle is final after this.
pub fn record_end(claim: &Claim, ended: &Result<Ended, Fault>) -> Result<Record, StateError> {
    claim.update(|record| {
        record.bridge = None;
        record.exited_at = Some(Timestamp::now());
        match ended {
            Ok(ended) => {
                record.lifecycle_state = Lifecycle::Exited;
                record.last_exit_code = Some(i32::from(ended.exit.status()));
                record.changed = ended.changed.clone();
            }
            Err(fault) => {
                record.lifecycle_state = Lifecycle::Failed;
                let kind = fault.kind().word().to_owned();
                record.last_error = Some(crate::state::LastError {
                    kind,
                    message: fault.to_string(),
                    at: Timestamp::now(),
                });
            }
        }
    })
}
