//! An agent in two sandboxes: the line for server and client.

use super::Setting;
use super::attendance::{Attendance, Outcome, Unconfined};
use super::changes::{Changes, Haste};
use super::enclose::enclose;
use super::interrupted::end_if_asked;
use super::mediation::{Mediation, inlets, published};
use super::pair::{Pair, SessionWish, client_order, server_order};
use super::protection::Protection;
use super::readiness::{Waiting, wait_until_ready};
use super::record::{Rounds, record_changes, record_mode, record_running, record_start, reports};
use super::room::Room;
use super::run::{RunError, relay};
use super::subject::{Terminal, handed_out, subject};
use super::watch::Watch;
use crate::agent::Ready;
use crate::base::{AbsPath, Fault, Port};
use crate::policy::Policy;
use crate::sandbox::door::DoorGone;
use crate::sandbox::terminal::{Pane, Relay};
use crate::sandbox::{Exit, Jailed, Running};
use crate::state::{Claim, Record, Store};
use crate::verify::{Listen, NetSubject, Passed, Report, Stage, Subject, held};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

/// How a session ended, for its record.
#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    /// What to look at before it is used.
    pub changed: Vec<AbsPath>,
}

/// How far a start has come, for the person who waits in the pane.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Both sandboxes are made, and nothing of the agent has run; the server's policy.
    Held(&'a Policy),
    /// The server's sandbox has passed; the server starts now, which takes it some seconds.
    ServerPassed(&'a Report),
    /// The server has answered as it should.
    Ready(&'a Ready),
    /// Nothing runs any more; what a person should look at, and the session's name.
    Changed(&'a Changes, &'a str),
}

/// Server first, then client; both verified before anything of theirs runs.
pub fn line(
    claim: &Claim,
    store: &Store,
    record: &Record,
    wish: &SessionWish,
    setting: &Setting,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Ended, Fault> {
    let begun = Instant::now();
    Pane::find().ok_or(super::pair::PairError::NoTerminal)?;
    let pair = Pair::resolve(wish, record, setting)?;
    end_if_asked(&setting.signals)?;
    let logs = Logs::open(store, record)?;
    let outside = published(&pair.server)?;
    let sides = sides(record, &pair, &logs, setting)?;
    let (mut server, serving, protection) = (sides.server, sides.serving, sides.protection);
    let (mut client, showing, _rooms) = (sides.client, sides.showing, sides.rooms);
    claim.update(|record| {
        record_start(record, &pair, &logs, [&server.facts, &client.facts], begun);
        record_mode(record, &serving, wish.on_failure());
    })?;
    tell(Progress::Held(&serving));
    let door = Arc::new(server.door.take().ok_or(super::pair::PairError::NoDoor)?);
    let mut mediation = Mediation::new(setting.refused(&record.session_name));
    mediation.add(&mut server, &serving, Some((&record.launch_id, &logs.network)), None)?;
    mediation.add(&mut client, &showing, None, Some((pair.port, Arc::clone(&door))))?;
    mediation.publish(outside, &door);
    let _traffic = mediation.start()?;
    let mut expected = server_subject(&server, pair.port, &serving)?;
    let passed = held(&expected).map_err(|report| RunError::NotVerified(Unconfined::of(&report).0))?;
    tell(Progress::ServerPassed(passed.report()));
    let young = Watch::start(vec![expected.clone()], protection.healer()).map_err(RunError::NoWatch)?;
    let guard = protection.guard(&pair.server)?;
    let server = server.release(passed)?;
    let waiting = Waiting {
        server: &server,
        watch: &young,
        signals: &setting.signals,
        guard: &guard,
    };
    let ready = wait_until_ready(&pair, &door, &waiting, wish.patience(), &logs.server_path)?;
    drop(young);
    tell(Progress::Ready(&ready));
    expected.network.listens = Some(Listen {
        port: pair.port,
        stage: Stage::Ready,
    });
    let subjects = vec![expected, client_subject(&client, pair.port, &showing)?];
    let (passed, verification) = both_passed(&subjects)?;
    let watch = Watch::start(subjects, protection.healer()).map_err(RunError::NoWatch)?;
    let relay = client.terminal.take().map(relay).transpose()?;
    let client = client.release(passed)?;
    claim.update(|record| record_running(record, &ready, verification, begun))?;
    let both = [&server, &client];
    let mut rounds = Rounds::new(claim);
    let attendance = Attendance::new(&both, relay, &setting.signals, &watch, wish.on_failure()).through(Some(&door));
    let (outcome, relay) = attendance.guarded(&guard).wait(|round| rounds.note(round));
    end(server, client);
    relay.into_iter().for_each(Relay::finish);
    let (changes, trouble) = protection.after(guard, Haste::of(setting.signals.ending()));
    tell(Progress::Changed(&changes, &record.session_name));
    claim.update(|record| record_changes(record, &changes))?;
    trouble.map_or_else(|| finish(outcome, changes.paths()), |trouble| Err(trouble.into()))
}

/// Both sandboxes, held, each with the policy that is in force, and what keeps the protected paths of the server's.
struct Sides {
    server: Jailed,
    serving: Policy,
    client: Jailed,
    showing: Policy,
    protection: Protection,
    /// They go with the session.
    rooms: [Option<Room>; 2],
}

/// Makes them while there is one thread.
fn sides(record: &Record, pair: &Pair, logs: &Logs, setting: &Setting) -> Result<Sides, Fault> {
    let name = |side: &str| format!("{}-{side}", record.launch_id);
    let order = |policy: &Policy| server_order(pair, &logs.server, inlets(policy));
    let server = enclose(&name("server"), &pair.server, order, setting)?;
    let protection = Protection::of(&pair.server, server.policy.mode(), &server.jailed)?;
    let order = |policy: &Policy| Ok::<_, Fault>(client_order(pair, inlets(policy)));
    let client = enclose(&name("client"), &pair.client, order, setting)?;
    Ok(Sides {
        server: server.jailed,
        serving: server.policy,
        client: client.jailed,
        showing: client.policy,
        protection,
        rooms: [server.room, client.room],
    })
}

/// The held client's proof, and the server once more now that it serves; with both reports for the record.
fn both_passed(subjects: &[Subject]) -> Result<(Passed, Option<Value>), Fault> {
    let [server, client] = subjects else {
        return Err(RunError::NotVerified("a sandbox is missing".into()).into());
    };
    let failed = |report| RunError::NotVerified(Unconfined::of(&report).0);
    let served = crate::verify::running(server);
    if !served.ok() {
        return Err(failed(served).into());
    }
    let passed = held(client).map_err(failed)?;
    let verification = reports(&[served, passed.report().clone()]);
    Ok((passed, verification))
}

fn finish(outcome: Outcome, changed: Vec<AbsPath>) -> Result<Ended, Fault> {
    match outcome {
        Outcome::Ended(1, exit @ (Exit::NotExecuted(_) | Exit::Lost)) => {
            Err(super::pair::PairError::ClientLost(describe(exit)).into())
        }
        Outcome::Ended(1, exit) => Ok(Ended { exit, changed }),
        Outcome::Ended(_, exit) => Err(super::pair::PairError::ServerEnded(describe(exit)).into()),
        Outcome::Unconfined(report) => Err(Unconfined::of(&report).into()),
        Outcome::Unguarded(trouble) => Err(trouble.into()),
        Outcome::DoorGone => Err(DoorGone.into()),
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
pub struct Logs {
    pub server_path: AbsPath,
    server: OwnedFd,
    pub network: AbsPath,
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

fn server_subject(server: &Jailed, port: Port, policy: &Policy) -> Result<Subject, Fault> {
    let network = NetSubject {
        listens: Some(Listen {
            port,
            stage: Stage::Starting,
        }),
        handed_out: handed_out(&server.facts),
        ..NetSubject::default()
    };
    expectation(server, policy, network)
}

fn client_subject(client: &Jailed, port: Port, policy: &Policy) -> Result<Subject, Fault> {
    let network = NetSubject {
        connects_only: Some(port),
        handed_out: handed_out(&client.facts),
        ..NetSubject::default()
    };
    expectation(client, policy, network)
}

/// What the checker holds a held sandbox against.
pub fn expectation(jailed: &Jailed, policy: &Policy, network: NetSubject) -> Result<Subject, Fault> {
    let terminal = jailed.terminal.as_ref().and_then(|inner| Terminal::of(inner).ok());
    Ok(subject(&jailed.facts, policy, network, terminal)?)
}
