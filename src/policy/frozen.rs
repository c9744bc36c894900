//! The resolved policy: absolute, frozen, explainable. No defaults and no look-ups happen after it is made.

use crate::base::{AbsPath, Port};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;

/// Which walls stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Namespaces, Landlock and seccomp.
    Full,
    /// Landlock, seccomp and the mediator: this machine gives no user namespaces.
    Reduced,
}

/// The promises of the design, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Promise {
    #[serde(rename = "P1 files")]
    Files,
    #[serde(rename = "P2 protected paths")]
    Protected,
    #[serde(rename = "P3 network")]
    Network,
    #[serde(rename = "P4 unix sockets")]
    Sockets,
    #[serde(rename = "P5 processes")]
    Processes,
    #[serde(rename = "P6 terminal")]
    Terminal,
    #[serde(rename = "P7 environment")]
    Environment,
    #[serde(rename = "P8 verified first")]
    Verified,
    #[serde(rename = "P9 out of reach")]
    OutOfReach,
    #[serde(rename = "P10 honest")]
    Honest,
}

impl Promise {
    /// All ten, in their order.
    pub const ALL: [Promise; 10] = [
        Promise::Files,
        Promise::Protected,
        Promise::Network,
        Promise::Sockets,
        Promise::Processes,
        Promise::Terminal,
        Promise::Environment,
        Promise::Verified,
        Promise::OutOfReach,
        Promise::Honest,
    ];
}

/// Where a line of the policy comes from, for `explain` and `why`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// A profile's name, `command line`, `workspace`, `agent` or `built in`.
    pub source: String,
    /// The key or flag as written, for example `filesystem.read[3]` or `--allow`.
    pub key: String,
    /// The reason the profile gives, where it gives one.
    pub why: Option<String>,
}

impl Origin {
    /// A flag as typed.
    pub fn command_line(flag: &str) -> Origin {
        Origin {
            source: "command line".to_owned(),
            key: flag.to_owned(),
            why: None,
        }
    }
    /// Something that no profile writes.
    pub fn built_in(key: &str, why: &str) -> Origin {
        Origin {
            source: "built in".to_owned(),
            key: key.to_owned(),
            why: Some(why.to_owned()),
        }
    }
}

/// How a granted path may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// See the names in it and below it, no more: a folder of a grant that was split around what is protected.
    List,
    /// Read, list, execute.
    Read,
    /// Read, and change a private copy: what is written stands in memory and goes with the launch.
    Layered,
    /// Read, and change what exists, create and remove.
    ReadWrite,
}

/// What stands at a path on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    Dir,
    File,
    /// A character device (only from the built-in `/dev` list).
    Device,
    /// A Unix socket granted by path.
    Socket,
    /// A symbolic link (only in `Protected`): it cannot be a mount point, so a change is reported after exit.
    Link,
}

/// One host path that is visible inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bind {
    /// Canonical host path: no component of it was a link when it was resolved.
    pub source: AbsPath,
    /// Where it stands inside; nearly always the same.
    pub target: AbsPath,
    pub access: Access,
    pub kind: FileKind,
    pub origin: Origin,
}

/// A symbolic link made in the new root, for example `/bin` → `usr/bin`, or a granted path's own link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    pub at: AbsPath,
    pub to: std::path::PathBuf,
}

/// Something that exists only inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Made {
    pub at: AbsPath,
    pub content: Content,
    pub origin: Origin,
}

/// What a made path holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// A private, writable, executable folder in memory of at most `size` bytes; mode 0700, or 1777 if `shared`.
    Scratch { size: u64, shared: bool },
    /// A folder in memory that is sealed read-only once its entries are in place.
    Sealed,
    /// A read-only file with these bytes (small; in the sealed root or in a `Sealed` folder).
    File(Vec<u8>),
}

/// What happens when something appears where nothing stood at the start: no mount can cover a name that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Appearing {
    /// It is moved aside at once.
    Refused,
    /// Ordinary work makes it: it stays, and is told after exit.
    Reported,
}

/// A path inside a read-write bind that the host later executes or trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Protected {
    /// The path inside (equal to the host path).
    pub path: AbsPath,
    /// What stands there now; nothing if it is absent, and then `appearing` says what happens.
    pub kind: Option<FileKind>,
    /// What becomes of something that appears at the path (or of a link there that changes) while the launch lives.
    pub appearing: Appearing,
    /// Ancestors below the bind's target that must become mount points, so that none can be renamed away; outermost first.
    pub pins: Vec<AbsPath>,
    pub reason: String,
}

/// One network rule: a name and the ports it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// As written, for messages.
    pub text: String,
    /// Lower-case A-label name without trailing dot; for `*.name` the part after `*.`.
    pub name: String,
    /// Whether it was `*.name`: matches below the name, never the name itself.
    pub below: bool,
    /// Ports; never empty (443 and 80 where none was written).
    pub ports: Vec<Port>,
    pub origin: Origin,
}

/// A host service granted under a private name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Service {
    /// Where it listens on the host: a loopback or private address that the profile names exactly.
    pub address: SocketAddr,
    pub origin: Origin,
}

/// Whether anything leaves at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// No broker: nothing leaves.
    Blocked,
    /// TCP by name through the broker.
    Brokered,
}

/// Whether Unix datagram sockets can be made inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Datagrams {
    /// No, so that no send needs a decision.
    Refused,
    /// Yes; every send that may have an address is decided and made by the supervisor.
    Mediated,
}

/// The network side of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NetPolicy {
    pub mode: Network,
    pub allow: Vec<Rule>,
    pub deny: Vec<Rule>,
    /// Private name (lower case) and port → host address. The port is the one asked for: the address's own, 80 also taken.
    pub services: BTreeMap<String, Service>,
    /// Ports of the host's loopback that appear on the sandbox's loopback.
    pub open_ports: Vec<Port>,
    /// Ports that a process inside may listen on and the host's loopback may reach.
    pub listen_ports: Vec<Port>,
    /// Ports inside that nothing inside may connect to; only the supervisor's join reaches them.
    pub closed_ports: Vec<Port>,
}

/// The exact environment of the command: no name twice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment(pub BTreeMap<OsString, OsString>);

/// Resource limits; nothing means the kernel's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Thousandths of a processor.
    pub cpu: Option<u64>,
    /// RLIMIT_NOFILE.
    pub open_files: Option<u64>,
    /// RLIMIT_AS in bytes.
    pub address_space: Option<u64>,
}

/// Bytes, as a number with `K`, `M` or `G` behind it, or with nothing.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(number) if text.ends_with('K') => (number, 1 << 10),
        Some(number) if text.ends_with('M') => (number, 1 << 20),
        Some(number) => (number, 1 << 30),
        None => (text, 1_u64),
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
}

/// Thousandths of a processor, of a decimal number of processors: `2`, `1.5`, `0.25`.
pub fn parse_processors(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 3 {
        return None;
    }
    let thousandths: u64 = format!("{part:0<3}").parse().ok()?;
    let milli = whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(thousandths)?;
    Some(milli).filter(|milli| *milli > 0)
}

/// What a `Note` is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// An environment variable: the subject is its name.
    Variable,
    /// A port: the subject is `open 8080`, `listen 3000` or `closed 4096`.
    Port,
    /// A masked path.
    Mask,
    /// An entry that grants nothing on this host: absent, or covered by something private.
    LeftOut,
    /// Something as written that is enforced differently, or a key that is not used here.
    Differs,
    /// Something that a person should know before the launch runs.
    Warning,
}

impl Topic {
    /// Whether it is about the profile rather than about what is granted.
    pub fn is_remark(self) -> bool {
        matches!(self, Topic::LeftOut | Topic::Differs | Topic::Warning)
    }
}

/// Where something comes from that has no origin of its own in the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    pub topic: Topic,
    pub subject: String,
    /// What happened, lower case; empty where the topic says it all.
    pub text: String,
    pub origin: Origin,
}

/// Everything about one sandbox, frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The profile it came from.
    pub profile: String,
    /// The granted workspace root; nothing when the profile grants none (the client's).
    pub root: Option<AbsPath>,
    /// Where the command starts, inside.
    pub workdir: AbsPath,
    /// In reduced mode: the folder on disk that stands in for what is private memory in full mode.
    pub room: Option<AbsPath>,
    /// Sorted by target, parents first; no two with one target.
    pub binds: Vec<Bind>,
    /// Bytes of memory that all `Layered` binds share for what is written to them.
    pub layer_size: u64,
    pub links: Vec<Link>,
    /// Sorted by path, parents first.
    pub made: Vec<Made>,
    /// Sorted by path.
    pub protected: Vec<Protected>,
    /// Paths inside, below a bind, that must not be readable (equal to the host paths unless the bind moves them): sorted.
    pub masked: Vec<AbsPath>,
    pub network: NetPolicy,
    pub datagrams: Datagrams,
    pub environment: Environment,
    pub limits: Limits,
    /// Promises that were given up by name.
    pub weakened: Vec<Promise>,
    /// Origins and remarks, for `explain` and `why`; nothing is enforced from here.
    pub notes: Vec<Note>,
}

impl Protected {
    /// Whether a change is prevented or undone, not only told.
    pub fn is_held(&self) -> bool {
        self.kind.is_some() || self.appearing == Appearing::Refused
    }
}

impl Policy {
    /// Which walls it is for.
    pub fn mode(&self) -> Mode {
        match self.room {
            None => Mode::Full,
            Some(_) => Mode::Reduced,
        }
    }
}

impl Content {
    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        !matches!(self, Content::File(_))
    }
}
