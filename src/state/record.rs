//! What is remembered of the launch in one pane.

use crate::base::{AbsPath, LaunchId, PaneId, Port, ProcessRecord, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of record that this build writes and reads.
pub const VERSION: u64 = 1;

/// How far a launch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// Asked for; no bridge has taken it yet.
    Provisional,
    /// A bridge is at work; nothing untrusted has run.
    Starting,
    /// Verified and released.
    Running,
    /// Ended by itself or by `stop`.
    Exited,
    /// Ended by an error, which `last_error` tells.
    Failed,
}

impl Lifecycle {
    /// Whether something may still be alive.
    pub fn is_active(self) -> bool {
        matches!(self, Lifecycle::Provisional | Lifecycle::Starting | Lifecycle::Running)
    }
}

/// The launch in one pane, as it stands in the pane's file. Keys that this build does not know survive a rewrite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    version: u64,
    /// The pane, or [`PaneId::of_launch`] until the host has opened one.
    pub pane_id: PaneId,
    /// Names the launch to the bridge that takes it.
    pub launch_id: LaunchId,
    /// What people call it: see [`super::session_name`].
    pub session_name: String,
    /// The host's name: `herdr`, `tmux`, `terminal`.
    pub host: String,
    /// The agent's name.
    pub agent: String,
    /// The agent's own version, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The workspace root: what is granted.
    pub local_path: AbsPath,
    /// Where the agent starts.
    pub workdir: AbsPath,
    /// The server's profile.
    pub profile: String,
    /// The client's, if the agent has a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_profile: Option<String>,
    /// How far it has come.
    pub lifecycle_state: Lifecycle,
    /// When the pane was first recorded.
    pub created_at: Timestamp,
    /// When this file was last saved.
    pub updated_at: Timestamp,
    /// Twelve hexadecimal digits, new with every save.
    pub revision: String,
    /// The private port between server and client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<Port>,
    /// Launches of this pane so far, this one included.
    pub launch_count: u64,
    /// The process that owns the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<ProcessRecord>,
    /// The server's sandbox, once it is spawned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Side>,
    /// The client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Side>,
    /// The last verification report as `verify` wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Value>,
    /// Why the launch failed, or null.
    #[serde(default)]
    pub last_error: Option<LastError>,
    /// The client's exit status (128+n for a signal).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_exit_code: Option<i32>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exited_at: Option<Timestamp>,
    /// When a person first looked at how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// The server's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_log: Option<AbsPath>,
    /// The broker's decisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_log: Option<AbsPath>,
    /// How long the start took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// Promises that were weakened by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weakened: Vec<String>,
    /// Promises that may be missing, by name; `weakened` has those that are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_missing: Vec<String>,
    /// `full` or `reduced`: what the kernel gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Files that the host executes or trusts and that were found changed at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<AbsPath>,
    /// For the eyes of the bridge that takes this launch; gone from the record once it is taken, or nobody took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Value>,
    /// Keys of other versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// How long the stages of a start took, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timings {
    /// From the bridge's first step until both sandboxes were held.
    pub held_ms: u64,
    /// From the server's release until it answered: the agent's own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_ms: Option<u64>,
    /// From the bridge's first step until both were verified and the client was released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_ms: Option<u64>,
}

/// One sandbox of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The first process inside, as the host numbers it.
    pub init: ProcessRecord,
    /// The inode of its PID namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<u64>,
    /// What the kernel really gave: namespaces, Landlock's version and rights, filters, what keeps each limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Value>,
    /// Whatever else is known of it.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Why a launch failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastError {
    /// The word of [`crate::base::Kind`].
    pub kind: String,
    /// What happened.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

/// What a person asked for: all that a fresh record needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The pane, or nothing while the host has yet to open one.
    pub pane: Option<PaneId>,
    /// The launch.
    pub launch: LaunchId,
    /// See [`super::session_name`].
    pub session_name: String,
    /// The host's name.
    pub host: String,
    /// The agent's name.
    pub agent: String,
    /// The workspace root.
    pub root: AbsPath,
    /// Where the agent starts.
    pub workdir: AbsPath,
    /// The server's profile.
    pub profile: String,
    /// The client's.
    pub client_profile: Option<String>,
}

impl Record {
    /// The reports of the last look, one for each sandbox; none before the first.
    pub fn reports(&self) -> &[Value] {
        self.verification
            .as_ref()
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// A provisional record.
    pub fn new(request: Request, now: Timestamp) -> Record {
        Record {
            version: VERSION,
            pane_id: request.pane.unwrap_or_else(|| PaneId::of_launch(&request.launch)),
            launch_id: request.launch,
            session_name: request.session_name,
            host: request.host,
            agent: request.agent,
            agent_version: None,
            local_path: request.root,
            workdir: request.workdir,
            profile: request.profile,
            client_profile: request.client_profile,
            lifecycle_state: Lifecycle::Provisional,
            created_at: now,
            updated_at: now,
            revision: String::new(),
            port: None,
            launch_count: 1,
            bridge: None,
            server: None,
            client: None,
            verification: None,
            last_error: None,
            last_exit_code: None,
            exited_at: None,
            seen_at: None,
            server_log: None,
            network_log: None,
            timings: None,
            weakened: Vec::new(),
            allow_missing: Vec::new(),
            mode: None,
            changed: Vec::new(),
            handover: None,
            other: Map::new(),
        }
    }

    /// This launch as the next one of a pane that already has a record: the pane's age, count and unknown keys go on.
    pub(super) fn following(mut self, earlier: Record) -> Record {
        self.created_at = earlier.created_at;
        self.launch_count = earlier.launch_count.saturating_add(self.launch_count);
        let own = std::mem::replace(&mut self.other, earlier.other);
        self.other.extend(own);
        self
    }

    /// The bytes of the pane's file.
    pub(super) fn write(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// What a record's file turned out to be.
#[derive(Debug, PartialEq)]
pub(super) enum Parsed {
    Record(Box<Record>),
    /// Written by a newer build, with this version.
    Newer(u64),
    /// Not a record, for this reason.
    Damaged(String),
}

/// Reads the bytes of a pane's file.
pub(super) fn parse(bytes: &[u8]) -> Parsed {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(_) if bytes.is_empty() => return Parsed::Damaged("it is empty".to_owned()),
        Err(e) => return Parsed::Damaged(format!("it is not JSON: {e}")),
    };
    match value.get("version").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(newer) if newer > VERSION => return Parsed::Newer(newer),
        _ => return Parsed::Damaged("it has no version that was ever written".to_owned()),
    }
    // From the bytes, not from the value: only so are doubled keys noticed.
    match serde_json::from_slice(bytes) {
        Ok(record) => Parsed::Record(Box::new(record)),
        Err(e) => Parsed::Damaged(format!("it is not a record: {e}")),
    }
}
