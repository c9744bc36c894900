//! `start`: what is asked for is checked and recorded, a pane is opened, and the bridge runs the line in it.

use super::Setting;
use super::pair::SessionWish;
use super::record::record_end;
use super::session::{Ended, Progress, line};
use crate::agent::Side;
use crate::base::{AbsPath, Explain, Fault, Kind, LaunchId, PaneId, ProcessRecord};
use crate::host::{self, Focus, HostError, Opened, Place, Request as PaneRequest, Surroundings};
use crate::policy::{Host as _, Policy};
use crate::state::prune::Which;
use crate::state::{KEPT, Record, Request, Store, Taken, session_name};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// The record's key under which the wish waits for the bridge.
const WISH: &str = "request";
/// The host that is this very terminal.
const TERMINAL: &str = "terminal";
/// What sessions are called when the host has no name of its own for them.
const PREFIX: &str = "pinfold";
/// Variables that decide where Pinfold finds its files: the pane's bridge must find the same ones.
const CARRIED: [&str; 8] = [
    "HOME",
    "PATH",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "HERDR_PLUGIN_STATE_DIR",
    "HERDR_PLUGIN_CONFIG_DIR",
];

/// A start that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error("the record of launch {0} does not say what was asked for")]
    NoWish(LaunchId),
    #[error("this pane cannot be told from others: it is no pane of a known host")]
    NoPane,
    #[error("the values that were handed over to the pane cannot be read ({0})")]
    Unreadable(serde_json::Error),
    #[error("what was asked for cannot be written down ({0})")]
    Unwritable(serde_json::Error),
}

impl Explain for BeginError {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
    fn hint(&self) -> Option<String> {
        matches!(self, BeginError::NoWish(_)).then(|| "start again; the pane can be closed".into())
    }
}

/// Who is told how far a start has come.
pub type Tell<'a> = &'a mut dyn FnMut(Progress<'_>);

/// What a start came to.
#[derive(Debug)]
pub enum Begun {
    /// The host has opened a pane; the session runs there.
    Elsewhere(Box<Record>, PaneId),
    /// The session ran in this terminal and has ended.
    Here(Box<Record>, Ended),
}

/// Checks, records, opens a pane or runs right here.
pub fn begin(wish: SessionWish, wanted_host: Option<&str>, setting: &Setting, tell: Tell<'_>) -> Result<Begun, Fault> {
    let mut wish = wish;
    wish.wish.check_variables(setting)?;
    let root = wish.wish.checked_root(setting)?;
    fix_places(&mut wish, setting);
    let around = Surroundings {
        env: &setting.environ,
        uid: nix::unistd::geteuid(),
        workspace: Some(&root),
    };
    let host = host::choose(&around, wanted_host)?;
    if host.name() == TERMINAL && !host.is_around() {
        return Err(HostError::NoTerminal.into());
    }
    let policy = checked(&wish, &root, setting)?;
    let store = Store::open(&setting.dirs)?;
    tidy(&store)?;
    let launch = LaunchId::fresh();
    let here = (host.name() == TERMINAL)
        .then(|| host.here().ok_or(BeginError::NoPane))
        .transpose()?;
    let record = store
        .begin(request(&wish, &policy, &root, launch.clone(), host.name(), here)?)?
        .record;
    let kept = serde_json::to_value(&wish).map_err(BeginError::Unwritable)?;
    let handover = serde_json::to_value(passed_on(&wish, setting)).map_err(BeginError::Unwritable)?;
    store.update(&record.pane_id, |record| {
        record.handover = Some(handover);
        record.other.insert(WISH.into(), kept);
    })?;
    let opened = host.open_pane(&pane_request(&launch, &wish, &root, setting));
    match opened.inspect_err(|_| drop(store.remove(&record.pane_id)))? {
        Opened::There(pane) => Ok(Begun::Elsewhere(Box::new(record), pane)),
        Opened::Here(pane) => {
            bridge_in(&pane, &launch, setting, tell).map(|(record, ended)| Begun::Here(Box::new(record), ended))
        }
    }
}

/// Whatever is written relative to this process's folder is made absolute: the pane may start in another one.
fn fix_places(wish: &mut SessionWish, setting: &Setting) {
    let whole = |path: &OsString| setting.here.join(path).into_os_string();
    let from = wish.wish.start(setting).into_os_string();
    match &mut wish.wish.workdir {
        Some(workdir) => *workdir = from,
        None => wish.wish.from = Some(from),
    }
    wish.binary = wish.binary.as_ref().map(whole);
    // Without a slash it is a name.
    let is_file = |profile: &&OsString| profile.as_bytes().contains(&b'/');
    if let Some(file) = wish.wish.profile.as_ref().filter(is_file).map(whole) {
        wish.wish.profile = Some(file);
    }
}

/// Records of dead bridges are put right, and logs do not grow without end.
fn tidy(store: &Store) -> Result<(), Fault> {
    let listing = store.reconcile_all()?;
    let live = listing
        .records
        .iter()
        .filter(|record| record.lifecycle_state.is_active());
    let live: Vec<&str> = live.map(|record| record.session_name.as_str()).collect();
    store.logs().rotate(KEPT, &live)?;
    store.prune(Which::Old, None)?;
    Ok(())
}

/// The variables that are to be passed on by name, with the values that they have here: a pane has its multiplexer's.
fn passed_on(wish: &SessionWish, setting: &Setting) -> Vec<(OsString, OsString)> {
    let value = |name: &OsString| Some((name.clone(), setting.environ.get(name)?.clone()));
    wish.wish.env.iter().filter_map(value).collect()
}

/// The pane's half: finds its pane, takes the launch, runs the line, records the end.
pub fn bridge(launch: &LaunchId, setting: &Setting, tell: Tell<'_>) -> Result<(Record, Ended), Fault> {
    let around = Surroundings {
        env: &setting.environ,
        uid: nix::unistd::geteuid(),
        workspace: None,
    };
    // A multiplexer inside another one has the outer one's variables too; the start has decided.
    let records = Store::open(&setting.dirs)?.list()?.records;
    let record = records.iter().find(|record| record.launch_id == *launch);
    let host = host::choose(&around, record.map(|record| record.host.as_str()))?;
    let pane = host.here().ok_or(BeginError::NoPane)?;
    bridge_in(&pane, launch, setting, tell)
}

fn bridge_in(pane: &PaneId, launch: &LaunchId, setting: &Setting, tell: Tell<'_>) -> Result<(Record, Ended), Fault> {
    let store = Store::open(&setting.dirs)?;
    let claim = store.claim(pane)?;
    let own = ProcessRecord::current()?;
    let Taken { record, handover, .. } = claim.take(launch, own)?;
    let wish = wish_of(&record).and_then(|wish| with_values(wish, handover));
    let ended = wish.and_then(|wish| line(&claim, &store, &record, &wish, setting, tell));
    let recorded = record_end(&claim, &ended);
    let ended = ended?;
    Ok((recorded?, ended))
}

/// The wish with the values that `start` saw.
fn with_values(mut wish: SessionWish, handover: Option<Value>) -> Result<SessionWish, Fault> {
    let values = handover
        .map(serde_json::from_value::<Vec<(OsString, OsString)>>)
        .transpose();
    let values = values.map_err(BeginError::Unreadable)?.unwrap_or_default();
    for (name, value) in values {
        let named = wish.wish.env.iter_mut().filter(|wanted| **wanted == name);
        named.for_each(|wanted| {
            wanted.push("=");
            wanted.push(&value);
        });
    }
    Ok(wish)
}

/// The wish that a record keeps.
pub fn wish_of(record: &Record) -> Result<SessionWish, Fault> {
    let kept = record
        .other
        .get(WISH)
        .cloned()
        .and_then(|value| serde_json::from_value(value).ok());
    Ok(kept.ok_or_else(|| BeginError::NoWish(record.launch_id.clone()))?)
}

/// Resolves what would be granted, so that a refusal comes before any pane is opened.
fn checked(wish: &SessionWish, root: &AbsPath, setting: &Setting) -> Result<Policy, Fault> {
    let candidate = wish.find(root, setting)?;
    let version = candidate.hint.unwrap_or(crate::agent::Version {
        major: 1,
        minor: 0,
        patch: 0,
    });
    super::server_policy(wish, &candidate.with_version(version), setting)
}

fn request(
    wish: &SessionWish,
    policy: &Policy,
    root: &AbsPath,
    launch: LaunchId,
    host: &str,
    pane: Option<PaneId>,
) -> Result<Request, Fault> {
    let agent = wish.agent()?;
    Ok(Request {
        pane,
        session_name: session_name(PREFIX, agent.name(), &launch),
        launch,
        host: host.to_owned(),
        agent: agent.name().to_owned(),
        root: root.clone(),
        workdir: policy.workdir.clone(),
        profile: policy.profile.clone(),
        client_profile: Some(agent.profile(Side::Client).to_owned()),
    })
}

fn pane_request(launch: &LaunchId, wish: &SessionWish, root: &AbsPath, setting: &Setting) -> PaneRequest {
    let words = ["bridge", "start", launch.as_str()].map(OsString::from);
    let argv = std::iter::once(setting.program.clone().into_os_string())
        .chain(words)
        .collect();
    // One that is not set here must not be found there either: empty counts as not set.
    let mut carried: BTreeMap<OsString, OsString> = CARRIED
        .iter()
        .map(|name| (OsString::from(name), setting.environ.get(OsStr::new(name)).cloned()))
        .map(|(name, value)| (name, value.unwrap_or_default()))
        .collect();
    if let Some(home) = setting.host.home() {
        carried.insert("HOME".into(), home.into_os_string());
    }
    let folder = wish
        .wish
        .workdir
        .as_ref()
        .or(wish.wish.from.as_ref())
        .and_then(|dir| AbsPath::new(dir).ok())
        .unwrap_or_else(|| root.clone());
    PaneRequest {
        argv,
        folder,
        env: carried.into_iter().collect(),
        place: Place::Right,
        focus: Focus::New,
    }
}

/// The policy of a recorded session's server, resolved anew.
pub fn recorded_policy(record: &Record, setting: &Setting) -> Result<Policy, Fault> {
    checked(&wish_of(record)?, &record.local_path, setting)
}
