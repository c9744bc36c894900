//! `start`: what is asked for is checked and recorded, a pane is opened, and the bridge runs the line in it.

use super::Setting;
use super::pair::SessionWish;
use super::session::{Ended, line, record_end};
use crate::agent::Side;
use crate::base::{AbsPath, Explain, Fault, Kind, LaunchId, PaneId, ProcessRecord};
use crate::host::{self, Focus, Opened, Place, Request as PaneRequest, Surroundings};
use crate::policy::Policy;
use crate::state::{Record, Request, Store, session_name};
use std::ffi::{OsStr, OsString};

/// The record's key under which the wish waits for the bridge.
const WISH: &str = "request";
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

/// What a start came to.
#[derive(Debug)]
pub enum Begun {
    /// The host has opened a pane; the session runs there.
    Elsewhere(Box<Record>, PaneId),
    /// The session ran in this terminal and has ended.
    Here(Box<Record>, Ended),
}

/// Checks, records, opens a pane or runs right here.
pub fn begin(wish: SessionWish, wanted_host: Option<&str>, setting: &Setting) -> Result<Begun, Fault> {
    let mut wish = wish;
    let root = wish.wish.root(setting)?;
    wish.wish.workdir = Some(wish.wish.start(setting).into_os_string());
    wish.binary = wish.binary.map(|binary| setting.here.join(binary).into_os_string());
    let around = Surroundings {
        env: &setting.environ,
        uid: nix::unistd::geteuid(),
        workspace: Some(&root),
    };
    let host = host::choose(&around, wanted_host)?;
    let policy = checked(&wish, &root, setting)?;
    let store = Store::open(&setting.dirs)?;
    store.reconcile_all()?;
    let launch = LaunchId::fresh();
    let here = (host.name() == "terminal")
        .then(|| host.here().ok_or(BeginError::NoPane))
        .transpose()?;
    let record = store
        .begin(request(&wish, &policy, &root, launch.clone(), host.name(), here)?)?
        .record;
    let kept = serde_json::to_value(&wish).map_err(BeginError::Unwritable)?;
    store.update(&record.pane_id, |record| drop(record.other.insert(WISH.into(), kept)))?;
    let opened = host.open_pane(&pane_request(&launch, &wish, &root, setting));
    match opened.inspect_err(|_| drop(store.remove(&record.pane_id)))? {
        Opened::There(pane) => Ok(Begun::Elsewhere(Box::new(record), pane)),
        Opened::Here(pane) => {
            bridge_in(&pane, &launch, setting).map(|(record, ended)| Begun::Here(Box::new(record), ended))
        }
    }
}

/// The pane's half: finds its pane, takes the launch, runs the line, records the end.
pub fn bridge(launch: &LaunchId, setting: &Setting) -> Result<(Record, Ended), Fault> {
    let around = Surroundings {
        env: &setting.environ,
        uid: nix::unistd::geteuid(),
        workspace: None,
    };
    let host = host::choose(&around, None)?;
    let pane = host.here().ok_or(BeginError::NoPane)?;
    bridge_in(&pane, launch, setting)
}

fn bridge_in(pane: &PaneId, launch: &LaunchId, setting: &Setting) -> Result<(Record, Ended), Fault> {
    let store = Store::open(&setting.dirs)?;
    let claim = store.claim(pane)?;
    let own = ProcessRecord::current()?;
    let record = claim.take(launch, own)?.record;
    let wish = wish_of(&record);
    let ended = wish.and_then(|wish| line(&claim, &store, &record, &wish, setting));
    let recorded = record_end(&claim, &ended);
    let ended = ended?;
    Ok((recorded?, ended))
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
    let carried = CARRIED.iter().filter_map(|name| {
        let value = setting.environ.get(OsStr::new(name))?;
        Some((OsString::from(name), value.clone()))
    });
    let folder = wish
        .wish
        .workdir
        .as_ref()
        .and_then(|dir| AbsPath::new(dir).ok())
        .unwrap_or_else(|| root.clone());
    PaneRequest {
        argv,
        folder,
        env: carried.collect(),
        place: Place::Right,
        focus: Focus::New,
    }
}

/// The policy of a recorded session's server, resolved anew.
pub fn recorded_policy(record: &Record, setting: &Setting) -> Result<Policy, Fault> {
    checked(&wish_of(record)?, &record.local_path, setting)
}
