//! An agent in two sandboxes: the line for server and client.

use super::attendance::{Attendance, Outcome, Unconfined};
use super::mediation::{Mediation, inlets, published};
use super::pair::{Pair, SessionWish, client_order, server_order};
use super::readiness::wait_until_ready;
use super::run::RunError;
use super::subject::{handed_out, subject};
use super::watch::{Round, Watch};
use super::{Setting, changed};
use crate::agent::Ready;
use crate::base::{AbsPath, Fault, ProcessRecord, Timestamp};
use crate::policy::Policy;
use crate::sandbox::terminal::{Pane, Relay};
use crate::sandbox::{Exit, Facts, Jailed, Running, spawn};
use crate::state::{Claim, Lifecycle, Record, Side, Store};
use crate::verify::{Listen, NetSubject, Report, Stage, Subject, held};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

/// How a session ended, for its record.
#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    /// Protected paths that were absent before and stand there now.
    pub changed: Vec<AbsPath>,
}

/// Server first, then client; both verified before anything of theirs runs.
pub fn line(
    claim: &Claim,
    store: &Store,
    record: &Record,
    wish: &SessionWish,
    setting: &Setting,
) -> Result<Ended, Fault> {
    let pane = Pane::find().ok_or(super::pair::PairError::NoTerminal)?;
    let pair = Pair::resolve(wish, record, setting)?;
    let logs = Logs::open(store, record)?;
    let outside = published(&pair.server)?;
    let before = changed::absent(&pair.server);
    let mut server = spawn(&pair.server, server_order(&pair, &logs.server, inlets(&pair.server))?)?;
    let mut client = spawn(&pair.client, client_order(&pair, inlets(&pair.client)))?;
    claim.update(|record| started(record, &pair, &logs, &server.facts, &client.facts))?;
    let door = Arc::new(server.door.take().ok_or(super::pair::PairError::NoDoor)?);
    let mut mediation = Mediation::new();
    mediation.add(
        &mut server,
        &pair.server,
        Some((&record.launch_id, &logs.network)),
        None,
    )?;
    mediation.add(&mut client, &pair.client, None, Some((pair.port, Arc::clone(&door))))?;
    mediation.publish(outside, &door);
    let _traffic = mediation.start()?;
    let mut expected = server_subject(&server, &pair)?;
    let passed = held(&expected).map_err(|report| RunError::NotVerified(Unconfined::of(&report).0))?;
    let server = server.release(passed)?;
    let ready = wait_until_ready(&pair, &door, &server, &setting.signals, &logs.server_path)?;
    expected.network.listens = Some(Listen {
        port: pair.port,
        stage: Stage::Ready,
    });
    let subjects = vec![expected, client_subject(&client, &pair)?];
    let passed = client_passed(&subjects)?;
    let verification = passed.report().clone();
    let watch = Watch::start(subjects).map_err(RunError::NoWatch)?;
    let mut client = client.release(passed)?;
    claim.update(|record| running(record, &ready, &verification))?;
    let relay = client.terminal.take().and_then(|inner| Relay::new(pane, inner).ok());
    let both = [&server, &client];
    let outcome = Attendance::new(&both, relay, &setting.signals, &watch, wish.on_failure())
        .wait(|round| note_round(claim, round));
    end(server, client);
    finish(outcome, changed::appeared(&before))
}

/// The held client's proof, and the server once more now that it serves.
fn client_passed(subjects: &[Subject]) -> Result<crate::verify::Passed, Fault> {
    let [server, client] = subjects else {
        return Err(RunError::NotVerified("a sandbox is missing".into()).into());
    };
    let report = crate::verify::running(server);
    if !report.ok() {
        return Err(RunError::NotVerified(Unconfined::of(&report).0).into());
    }
    Ok(held(client).map_err(|report| RunError::NotVerified(Unconfined::of(&report).0))?)
}

fn finish(outcome: Outcome, changed: Vec<AbsPath>) -> Result<Ended, Fault> {
    match outcome {
        Outcome::Ended(1, exit) => Ok(Ended { exit, changed }),
        Outcome::Ended(_, exit) => Err(super::pair::PairError::ServerEnded(describe(exit)).into()),
        Outcome::Unconfined(report) => Err(Unconfined::of(&report).into()),
        Outcome::Broken(errno) => Err(RunError::Broken(errno).into()),
    }
}

/// An exit in words.
pub fn describe(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit status {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::NotExecuted(errno) => format!("it could not be executed: {}", errno.desc()),
        Exit::Lost => "its sandbox was ended from outside".into(),
    }
}

/// The server ends with everything that its tools left; the client has ended or ends now.
fn end(server: Running, client: Running) {
    client.end();
    server.end();
}

/// The files that a session writes.
struct Logs {
    server_path: AbsPath,
    server: OwnedFd,
    network: AbsPath,
}

impl Logs {
    fn open(store: &Store, record: &Record) -> Result<Logs, Fault> {
        let logs = store.logs();
        let place = |path: Result<AbsPath, _>| path.map_err(super::mediation::MediationError::Name);
        let server_path = place(logs.server(&record.session_name))?;
        let network = place(logs.network(&record.session_name))?;
        let server = OwnedFd::from(logs.append(&server_path)?);
        Ok(Logs {
            server_path,
            server,
            network,
        })
    }
}

fn started(record: &mut Record, pair: &Pair, logs: &Logs, server: &Facts, client: &Facts) {
    record.agent_version = Some(pair.program.version.to_string());
    record.port = Some(pair.port);
    record.server = side(server);
    record.client = side(client);
    record.server_log = Some(logs.server_path.clone());
    record.network_log = Some(logs.network.clone());
    record.mode = Some("full".into());
    record.last_error = None;
    record.verification = None;
    record.last_exit_code = None;
    record.exited_at = None;
}

fn side(facts: &Facts) -> Option<Side> {
    let init = ProcessRecord::of(facts.first).ok()?;
    let pid_namespace = crate::verify::Namespaces::of(facts.first)
        .ok()
        .map(|namespaces| namespaces.pid);
    Some(Side {
        init,
        pid_namespace,
        other: serde_json::Map::new(),
    })
}

fn running(record: &mut Record, ready: &Ready, verification: &Report) {
    record.lifecycle_state = Lifecycle::Running;
    record.agent_version = Some(ready.version.to_string());
    record.verification = serde_json::to_value([verification]).ok();
}

/// Keeps what a person asked to see, and whatever is not as it should be; a quiet round leaves only its time.
fn note_round(claim: &Claim, round: &Round) {
    let bad = round.reports.iter().any(|report| !report.ok() && !report.ended);
    if round.asked || bad {
        // A record that cannot be written must not end a launch that holds.
        let _ = claim.update(|record| record.verification = serde_json::to_value(&round.reports).ok());
    }
}

fn server_subject(server: &Jailed, pair: &Pair) -> Result<Subject, Fault> {
    let network = NetSubject {
        listens: Some(Listen {
            port: pair.port,
            stage: Stage::Starting,
        }),
        handed_out: handed_out(&server.facts),
        ..NetSubject::default()
    };
    expectation(server, &pair.server, network)
}

fn client_subject(client: &Jailed, pair: &Pair) -> Result<Subject, Fault> {
    let network = NetSubject {
        connects_only: Some(pair.port),
        handed_out: handed_out(&client.facts),
        ..NetSubject::default()
    };
    expectation(client, &pair.client, network)
}

/// What the checker holds a held sandbox against.
pub fn expectation(jailed: &Jailed, policy: &Policy, network: NetSubject) -> Result<Subject, Fault> {
    let terminal = jailed
        .terminal
        .as_ref()
        .and_then(|inner| nix::sys::stat::fstat(inner.as_fd()).ok());
    Ok(subject(
        &jailed.facts,
        policy,
        network,
        terminal.map(|stat| stat.st_dev),
    )?)
}

/// Writes how a session ended into its record; the lifecycle is final after this.
pub fn record_end(claim: &Claim, ended: &Result<Ended, Fault>) -> Result<Record, crate::state::StateError> {
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
