//! What a sandbox should look like, put together from the policy and from what the kernel said at spawn: the checker's
//! expectation. It is data; the checker reads the rest itself.

use crate::base::{AbsPath, Explain, Kind, Pid, Port, ProcessRecord};
use crate::policy::{Access, FileKind, Mode, Policy};
use crate::sandbox::Facts;
use crate::sandbox::group::settings;
use crate::sandbox::layers::mounts::{NODES, PROC_COVERED, PROC_READ_ONLY};
use crate::sandbox::plan::Op;
use crate::verify::{
    Attempted, Birth, EnvSubject, Filters, GroupSubject, IdMap, Identity, MountKind, MountRule, Namespaces, NetSubject,
    Subject, Walls, Which, Writing, mount_points, own_filters,
};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The facts could not be read from the kernel.
#[derive(Debug, thiserror::Error)]
#[error("cannot read what the kernel says about process {0}")]
pub struct FactsError(Pid);

impl Explain for FactsError {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
}

/// The sandbox's own terminal: the device of its devpts, and its number there.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    pub folder: u64,
    pub slave: u64,
}

impl Terminal {
    /// From the supervisor's side of it. Unix 98 terminals have majors from 136 on, 256 of them each
    /// (Documentation/admin-guide/devices.txt).
    pub fn of(inner: &OwnedFd) -> nix::Result<Terminal> {
        let number = u64::from(crate::sys::terminal::number(inner)?);
        Ok(Terminal {
            folder: nix::sys::stat::fstat(inner)?.st_dev,
            slave: nix::sys::stat::makedev(136 + (number >> 8), number & 0xff),
        })
    }
}

/// The expectation for one held sandbox.
pub fn subject(
    facts: &Facts,
    policy: &Policy,
    network: NetSubject,
    terminal: Option<Terminal>,
) -> Result<Subject, FactsError> {
    let unreadable = || FactsError(facts.first);
    let record = ProcessRecord::of(facts.first).map_err(|_| unreadable())?;
    let namespaces = Namespaces::of(facts.first).map_err(|_| unreadable())?;
    let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let inherited = own_filters().map_err(|_| unreadable())?;
    let (before, after) = facts.canary;
    let identities = |pairs: &[(u64, u64)]| pairs.iter().map(|&(dev, ino)| Identity { dev, ino }).collect();
    let walls = match policy.mode() {
        Mode::Full => Walls::Namespaces,
        Mode::Reduced => Walls::Descent {
            terminal: terminal.map(|terminal| terminal.slave),
        },
    };
    Ok(Subject {
        walls,
        init: Birth {
            pid: facts.first,
            start_ticks: record.start_ticks,
        },
        command: Which::Host(facts.command),
        namespaces,
        uid: IdMap {
            inside: uid,
            outside: uid,
        },
        gid: IdMap {
            inside: gid,
            outside: gid,
        },
        filters: Filters {
            init: inherited + facts.filters_first,
            command: inherited + facts.filters_command,
        },
        terminal: terminal.map(|terminal| terminal.folder),
        standard: identities(&facts.standard),
        gate: identities(&facts.gate),
        mounts: mounts(&facts.ops),
        limits: policy.limits.clone(),
        memory_each: facts.memory_each,
        group: facts.group.clone().map(|folder| group(folder, policy)),
        network,
        environment: environment(policy),
        landlock: vec![Attempted {
            name: "reading what is not granted".into(),
            control: before,
            errno: after,
        }],
    })
}

/// The group with what was written into it. A kernel without an account of swap has no file for it.
fn group(folder: PathBuf, policy: &Policy) -> GroupSubject {
    let files = settings(&policy.limits).into_iter();
    let files = files.filter(|(_, name, _)| folder.join(name).exists());
    let files = files.map(|(_, name, value)| (name.to_owned(), value)).collect();
    GroupSubject { folder, files }
}

/// The network side: which listeners were handed out.
pub fn handed_out(facts: &Facts) -> BTreeSet<Port> {
    let ports = facts.ops.iter().filter_map(|op| match op {
        Op::Inlet { port } => Some(*port),
        _ => None,
    });
    ports.collect()
}

/// Parts of names whose variables hold secrets, and names whose variables lead to something of the person's session.
/// Only these are looked for inside: an honest wrapper sets the same `PWD` or `JAVA_HOME` as the launcher had.
const SECRETS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "_KEY"];
const HANDLES: [&str; 7] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "TMUX",
    "TMUX_PANE",
    "HERDR_",
];

fn environment(policy: &Policy) -> EnvSubject {
    let allowed: BTreeSet<OsString> = policy.environment.0.keys().cloned().collect();
    let named = |name: &OsString| name.to_string_lossy().to_uppercase();
    let is_secret = |name: &OsString| SECRETS.iter().any(|word| named(name).contains(word));
    let is_handle = |name: &OsString| HANDLES.iter().any(|handle| named(name).starts_with(handle));
    let launcher = std::env::vars_os().filter(|(name, _)| is_secret(name) || is_handle(name));
    let launcher: Vec<_> = launcher.collect();
    let passed = |value: &OsString| policy.environment.0.values().any(|passed| passed == value);
    let tokens = launcher
        .iter()
        .filter(|(name, value)| is_secret(name) && value.len() >= 8 && !passed(value));
    let tokens = tokens.map(|(_, value)| value.clone()).collect();
    EnvSubject {
        allowed,
        launcher,
        tokens,
    }
}

/// Every mount that the plan makes, parents first, with what the host has mounted below a granted folder.
fn mounts(ops: &[Op]) -> Vec<MountRule> {
    let host = host_mounts();
    ops.iter().flat_map(|op| of_op(op, &host)).collect()
}

fn rule(target: &AbsPath, kind: MountKind, writing: Writing) -> Vec<MountRule> {
    vec![MountRule {
        target: target.clone(),
        kind,
        writing,
    }]
}

fn of_op(op: &Op, host: &[AbsPath]) -> Vec<MountRule> {
    match op {
        Op::Root => rule(&AbsPath::root(), MountKind::Memory, Writing::ReadOnly),
        Op::Scratch { at, .. } => rule(at, MountKind::Memory, Writing::Allowed),
        Op::Sealed { at } => rule(at, MountKind::Memory, Writing::ReadOnly),
        Op::Layer { at, .. } => rule(at, MountKind::Layer, Writing::Allowed),
        Op::Bind {
            source,
            target,
            access,
            kind,
        } => {
            let mount = if *kind == FileKind::Device {
                MountKind::Device
            } else {
                MountKind::Bind
            };
            let writing = if *access == Access::Read {
                Writing::ReadOnly
            } else {
                Writing::Allowed
            };
            with_below(source, target, mount, writing, host)
        }
        Op::Pin { source, at } => with_below(source, at, MountKind::Bind, Writing::Allowed, host),
        Op::Protect { source, at } => with_below(source, at, MountKind::Bind, Writing::ReadOnly, host),
        Op::Mask { at } if at.as_path().exists() => rule(at, MountKind::Memory, Writing::ReadOnly),
        Op::Proc => proc(),
        Op::Devices => devices(),
        _ => Vec::new(),
    }
}

/// A bind carries what is mounted below its source along.
fn with_below(source: &AbsPath, at: &AbsPath, kind: MountKind, writing: Writing, host: &[AbsPath]) -> Vec<MountRule> {
    let mut rules = rule(at, kind, writing);
    for below in host.iter().filter(|mount| *mount != source && mount.is_within(source)) {
        let rest = below.as_path().strip_prefix(source).ok();
        let target = rest.map(|rest| at.as_path().join(rest));
        if let Some(Ok(target)) = target.map(AbsPath::new) {
            rules.extend(rule(&target, kind, writing));
        }
    }
    rules
}

fn proc() -> Vec<MountRule> {
    let at = |name: &str| {
        AbsPath::new(Path::new("/proc").join(name))
            .ok()
            .filter(|path| path.as_path().exists())
    };
    let mut rules: Vec<MountRule> = at("")
        .iter()
        .flat_map(|at| rule(at, MountKind::Proc, Writing::Allowed))
        .collect();
    let read_only = PROC_READ_ONLY.iter().filter_map(|name| at(name));
    rules.extend(read_only.flat_map(|at| rule(&at, MountKind::Proc, Writing::ReadOnly)));
    let covered = PROC_COVERED.iter().filter_map(|name| at(name));
    rules.extend(covered.flat_map(|at| rule(&at, MountKind::Memory, Writing::ReadOnly)));
    rules
}

fn devices() -> Vec<MountRule> {
    let at = |name: &str| AbsPath::new(Path::new("/dev").join(name)).ok();
    let mut rules: Vec<MountRule> = at("")
        .iter()
        .flat_map(|at| rule(at, MountKind::Memory, Writing::ReadOnly))
        .collect();
    let nodes = NODES.iter().filter_map(|name| at(name));
    rules.extend(nodes.flat_map(|at| rule(&at, MountKind::Device, Writing::Allowed)));
    rules.extend(
        at("pts")
            .iter()
            .flat_map(|at| rule(at, MountKind::Terminals, Writing::Allowed)),
    );
    rules.extend(
        at("shm")
            .iter()
            .flat_map(|at| rule(at, MountKind::Memory, Writing::Allowed)),
    );
    if has_queues() {
        let queues = at("mqueue").into_iter();
        rules.extend(queues.flat_map(|at| rule(&at, MountKind::Queues, Writing::Allowed)));
    }
    rules
}

/// Whether this kernel has message queues.
fn has_queues() -> bool {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known
        .lines()
        .any(|line| line.split_whitespace().last() == Some("mqueue"))
}

/// The host's mount points, each once.
fn host_mounts() -> Vec<AbsPath> {
    let points = mount_points().unwrap_or_default().into_iter();
    let points: BTreeSet<AbsPath> = points.filter_map(|point| AbsPath::new(point).ok()).collect();
    points.into_iter().collect()
}
