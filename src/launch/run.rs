//! One command in one sandbox: the line, and what it prints instead with `--dry-run`.

use super::Setting;
use super::attendance::{Attendance, OnFailure, Outcome, Unconfined};
use super::changes::{Changes, Haste, keep};
use super::enclose::{Enclosed, enclose};
use super::mediation::{Mediation, MediationError, inlets, published};
use super::protection::Protection;
use super::session::expectation;
use super::subject::handed_out;
use super::watch::Watch;
use super::wish::{Additions, Wish};
use crate::base::{AbsPath, Explain, Fault, Kind, LaunchId};
use crate::policy::Policy;
use crate::sandbox::door::DoorGone;
use crate::sandbox::given::Given;
use crate::sandbox::guard::Trouble;
use crate::sandbox::plan::Op;
use crate::sandbox::terminal::{Pane, Relay};
use crate::sandbox::{Doors, Exit, Order, Stream, planned};
use crate::state::{KEPT, Store};
use crate::verify::{NetSubject, Report, held};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The profile of a command that names none.
pub const DEFAULT_PROFILE: &str = "default";

/// What happens on the way, for `--status-fd`.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The policy is frozen; the sandbox is made next.
    Resolved(&'a Policy),
    Held {
        launch: &'a LaunchId,
        first: i32,
        command: i32,
        /// What the kernel gave.
        given: &'a Given,
        /// What is in force.
        policy: &'a Policy,
    },
    Verified(&'a Report),
    Released,
    Ended(Exit),
    /// What a person should look at, and the name by which it is kept.
    Changed(&'a Changes, &'a str),
}

/// A command that was ended by something else than its own exit.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the command was not released, because verification failed: {0}")]
    NotVerified(String),
    #[error("the supervisor cannot watch the command any more ({0}), so it was ended")]
    Broken(nix::errno::Errno),
    #[error("the terminal cannot be joined to the sandbox's ({0}), so the command was not released")]
    NoPane(nix::errno::Errno),
    #[error("covers of protected files could not be put back ({0}), so the command was not released")]
    NoHealer(nix::errno::Errno),
    #[error("verification cannot be repeated ({0}), so the command was not released")]
    NoWatch(std::io::Error),
}

impl Explain for RunError {
    fn kind(&self) -> Kind {
        match self {
            RunError::NotVerified(_) => Kind::Unconfined,
            _ => Kind::Startup,
        }
    }
    fn hint(&self) -> Option<String> {
        Some("run `pinfold doctor` to see which layer does not hold here".into())
    }
}

/// One command, enclosed, verified, released, waited for.
pub fn line(
    wish: &Wish,
    argv: Vec<OsString>,
    setting: &Setting,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Exit, Fault> {
    wish.check_variables(setting)?;
    let launch = LaunchId::fresh();
    let policy = wish.policy(DEFAULT_PROFILE, Additions::default(), setting)?;
    enclosed(&launch, &policy, argv, setting, tell)
}

/// The line from a frozen policy on.
pub fn enclosed(
    launch: &LaunchId,
    policy: &Policy,
    argv: Vec<OsString>,
    setting: &Setting,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Exit, Fault> {
    let log = network_log(launch, policy, setting)?;
    let outside = published(policy)?;
    tell(Progress::Resolved(policy));
    let order = |policy: &Policy| Ok::<_, Fault>(order(policy, argv.clone()));
    let Enclosed {
        mut jailed,
        policy: enforced,
        room: _room,
    } = enclose(launch.as_str(), policy, order, setting)?;
    tell(Progress::Held {
        launch,
        first: jailed.facts.first.get(),
        command: jailed.facts.command.get(),
        given: &jailed.facts.given,
        policy: &enforced,
    });
    let protection = Protection::of(policy, enforced.mode(), &jailed)?;
    let mut mediation = Mediation::new(setting.refused(&run_name(launch)));
    mediation.add(&mut jailed, &enforced, log.as_ref().map(|log| (launch, log)), None)?;
    let door = jailed.door.take().map(Arc::new);
    if let Some(door) = &door {
        mediation.publish(outside, door);
    }
    let _traffic = mediation.start()?;
    let network = NetSubject {
        handed_out: handed_out(&jailed.facts),
        ..NetSubject::default()
    };
    let subject = expectation(&jailed, &enforced, network)?;
    let passed = held(&subject).map_err(|report| RunError::NotVerified(Unconfined::of(&report).0))?;
    tell(Progress::Verified(passed.report()));
    let guard = protection.guard(policy)?;
    let watch = Watch::start(vec![subject], protection.healer()).map_err(RunError::NoWatch)?;
    let relay = jailed.terminal.take().map(relay).transpose()?;
    let running = jailed.release(passed)?;
    tell(Progress::Released);
    let alone = [&running];
    let attendance = Attendance::new(&alone, relay, &setting.signals, &watch, OnFailure::Stop).through(door.as_deref());
    let (outcome, relay) = attendance.guarded(&guard).wait(|_| {});
    running.end();
    relay.into_iter().for_each(Relay::finish);
    if let Some(log) = &log {
        tidy(log, setting);
    }
    let (changes, trouble) = protection.after(guard, Haste::of(setting.signals.ending()));
    let name = run_name(launch);
    keep(&changes, &name, setting);
    tell(Progress::Changed(&changes, &name));
    let exit = finish(outcome, trouble)?;
    tell(Progress::Ended(exit));
    Ok(exit)
}

/// How the command ended, unless that does not count: nothing is a good end where what is protected could not be kept.
fn finish(outcome: Outcome, trouble: Option<Trouble>) -> Result<Exit, Fault> {
    match (outcome, trouble) {
        (Outcome::Ended(..), Some(trouble)) | (Outcome::Unguarded(trouble), _) => Err(trouble.into()),
        (Outcome::Ended(_, exit), None) => Ok(exit),
        (Outcome::Unconfined(report), _) => Err(Unconfined::of(&report).into()),
        (Outcome::DoorGone, _) => Err(DoorGone.into()),
        (Outcome::Broken(errno), _) => Err(RunError::Broken(errno).into()),
    }
}

/// Joins the sandbox's terminal to the pane, before anything can write to it.
pub fn relay(inner: OwnedFd) -> Result<Relay, RunError> {
    let pane = Pane::find().ok_or(RunError::NoPane(nix::errno::Errno::ENOTTY))?;
    Relay::new(pane, inner).map_err(RunError::NoPane)
}

/// The plan that `line` would carry out.
pub fn dry_run(wish: &Wish, argv: Vec<OsString>, setting: &Setting) -> Result<(Policy, Vec<Op>), Fault> {
    wish.check_variables(setting)?;
    let policy = wish.policy(DEFAULT_PROFILE, Additions::default(), setting)?;
    let ops = planned(&policy, &order(&policy, argv));
    Ok((policy, ops))
}

/// Every stream that is a terminal becomes the sandbox's own; the others are passed as they are.
fn order(policy: &Policy, argv: Vec<OsString>) -> Order {
    let stream = |is_terminal: bool| {
        if is_terminal {
            Stream::Terminal
        } else {
            Stream::Inherited
        }
    };
    let streams = [
        stream(std::io::stdin().is_terminal()),
        stream(std::io::stdout().is_terminal()),
        stream(std::io::stderr().is_terminal()),
    ];
    let door = if policy.network.listen_ports.is_empty() {
        Doors::None
    } else {
        Doors::One
    };
    Order {
        argv,
        streams,
        inlets: inlets(policy),
        door,
    }
}

/// A launch that asked for nothing leaves no log, and the logs of many launches do not grow without end.
fn tidy(log: &AbsPath, setting: &Setting) {
    let is_empty = std::fs::metadata(log).is_ok_and(|meta| meta.len() == 0);
    // What cannot be tidied now is tidied by a later launch.
    if is_empty {
        let _ = std::fs::remove_file(log);
    }
    if let Ok(store) = Store::open(&setting.dirs) {
        let records = store.list().map(|listing| listing.records).unwrap_or_default();
        let live = records.iter().filter(|record| record.lifecycle_state.is_active());
        let live: Vec<&str> = live.map(|record| record.session_name.as_str()).collect();
        let _ = store.logs().rotate(KEPT, &live);
    }
}

/// What the files of one command's launch are called by.
pub fn run_name(launch: &LaunchId) -> String {
    format!("run-{launch}")
}

fn network_log(launch: &LaunchId, policy: &Policy, setting: &Setting) -> Result<Option<AbsPath>, Fault> {
    if inlets(policy).is_empty() {
        return Ok(None);
    }
    let store = Store::open(&setting.dirs)?;
    let path = store.logs().network(&run_name(launch));
    path.map(Some).map_err(|source| MediationError::Name(source).into())
}
