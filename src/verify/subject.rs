//! What a sandbox should look like: plain data that the launch collects, and that every check is held against.

use super::proc::namespaces::Namespaces;
use super::proc::{Entry, Reading, status};
use crate::base::{AbsPath, Pid, Port};
use crate::policy::Limits;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// The device and inode numbers of one object, as `stat` gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub dev: u64,
    pub ino: u64,
}

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Birth {
    /// As the host numbers it.
    pub pid: Pid,
    /// Field 22 of `/proc/PID/stat`: clock ticks after boot.
    pub start_ticks: u64,
}

impl Birth {
    /// That of a process, read now: right after it was made, while its number cannot have been given away.
    pub fn of(pid: Pid) -> Reading<Birth> {
        let start_ticks = status::start_ticks(&Entry::open(pid)?.read("stat")?)?;
        Ok(Birth { pid, start_ticks })
    }
}

/// Which process of the sandbox the command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// By the host's number.
    Host(Pid),
    /// By the number inside, which the init learns from its fork.
    Inside(i32),
}

/// Exactly one id inside, and what it is on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdMap {
    pub inside: u32,
    /// As the reader of `/proc/PID/uid_map` numbers it.
    pub outside: u32,
}

/// How many seccomp filters there must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filters {
    /// On the init: exactly.
    pub init: u32,
    /// On the held command: exactly; later on it and what it starts: at least.
    pub command: u32,
}

/// What must be mounted at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountKind {
    /// Files of the host.
    Bind,
    /// One device node of the host: the only kind that goes without `nodev`.
    Device,
    /// Private memory (tmpfs).
    Memory,
    /// A folder of the host below a private layer (overlay), or an empty private one (tmpfs): neither writes to the host.
    Layer,
    /// The proc file system of the sandbox's own PID namespace.
    Proc,
    /// A private devpts: goes without `nodev`, since terminals are device nodes.
    Terminals,
    /// A private message queue file system.
    Queues,
}

/// Whether files below a mount can be changed through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    ReadOnly,
    Allowed,
}

/// One mount that is meant to be there. Anything else in mountinfo is a finding, and so is its absence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRule {
    pub target: AbsPath,
    pub kind: MountKind,
    pub writing: Writing,
}

/// The port that the command serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    pub port: Port,
    pub stage: Stage,
}

/// How far a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It may not listen yet; whoever does must be of its tree.
    Starting,
    /// It has answered: there must be a listener of its tree.
    Ready,
}

/// The network side of what is expected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetSubject {
    /// A listener on this port belongs to the tree.
    pub listens: Option<Listen>,
    /// Every TCP connection goes to this port of the loopback.
    pub connects_only: Option<Port>,
    /// Ports whose listeners were made inside and handed to the supervisor: no process inside may hold them.
    pub handed_out: BTreeSet<Port>,
}

/// The environment side of what is expected.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct EnvSubject {
    /// Names that the policy passes on.
    pub allowed: BTreeSet<OsString>,
    /// The launcher's own variables. One of them inside, same name and same value, without being allowed, is a leak.
    pub launcher: Vec<(OsString, OsString)>,
    /// Values (of the launcher's tokens) that may stand nowhere in the environment, under any name.
    pub tokens: Vec<OsString>,
}

/// Names only: the values are secrets.
impl std::fmt::Debug for EnvSubject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.launcher.iter().map(|(name, _)| name).collect();
        f.debug_struct("EnvSubject")
            .field("allowed", &self.allowed)
            .field("launcher", &names)
            .finish_non_exhaustive()
    }
}

/// What the held child met when it tried what Landlock forbids: the kernel shows no Landlock domain in /proc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    pub name: String,
    /// The errno of the same attempt before the layer; 0 if it succeeded, as it must.
    pub control: i32,
    /// The errno of the attempt under the layer; must be EACCES.
    pub errno: i32,
}

/// How a sandbox is told from the rest of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walls {
    /// By namespaces: whoever is in its PID namespace belongs to it.
    Namespaces,
    /// By descent from its first process, a subreaper: it has the machine's own namespaces. `terminal` is the device
    /// number of its own terminal.
    Descent { terminal: Option<u64> },
}

/// A control group and what must stand in its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSubject {
    pub folder: PathBuf,
    /// Names of files and what they say.
    pub files: Vec<(String, String)>,
}

/// Everything that is expected of one sandbox.
#[derive(Debug, Clone)]
pub struct Subject {
    pub walls: Walls,
    /// PID 1 of the sandbox.
    pub init: Birth,
    pub command: Which,
    /// Read from the kernel at spawn; by descent, ours.
    pub namespaces: Namespaces,
    pub uid: IdMap,
    pub gid: IdMap,
    pub filters: Filters,
    /// `st_dev` of the sandbox's own devpts; nothing if it has none.
    pub terminal: Option<u64>,
    /// Objects from outside that are the command's descriptors 0 to 2: a log, a pipe. What it starts may hold copies.
    pub standard: BTreeSet<Identity>,
    /// The gate and status descriptors: on the command and the init they may have any number.
    pub gate: BTreeSet<Identity>,
    /// Everything that may be mounted, `/` included.
    pub mounts: Vec<MountRule>,
    pub limits: Limits,
    /// Bytes of private memory of each process, where no group bounds them together.
    pub memory_each: Option<u64>,
    /// The control group that everything of the sandbox is in.
    pub group: Option<GroupSubject>,
    pub network: NetSubject,
    pub environment: EnvSubject,
    pub landlock: Vec<Attempted>,
}
