//! From a frozen policy to the list of operations that the child applies to itself. Pure: this list is what
//! `run --dry-run` prints and what golden tests hold.

use crate::base::{AbsPath, PathError, Port};
use crate::policy::{Access, Content, FileKind, Limits, Mode, Policy};
use serde::Serialize;
use std::path::PathBuf;

/// One step of the child, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// New user, mount, PID, network, IPC, UTS and cgroup namespaces.
    Namespaces,
    /// One user id and one group id exist inside, equal to those outside.
    MapIds {
        uid: u32,
        gid: u32,
    },
    Hostname(String),
    /// An empty root in memory.
    Root,
    /// A folder in memory.
    Scratch {
        at: AbsPath,
        size: u64,
        shared: bool,
    },
    /// A folder in memory that `Seal` makes read-only.
    Sealed {
        at: AbsPath,
    },
    /// A small read-only file in memory.
    File {
        at: AbsPath,
        bytes: usize,
    },
    Link {
        at: AbsPath,
        to: PathBuf,
    },
    Bind {
        source: AbsPath,
        target: AbsPath,
        access: Access,
        kind: FileKind,
    },
    /// Memory for what is written to all the layered folders.
    Layers {
        size: u64,
    },
    /// A folder of the host below a private layer; where the kernel refuses that, an empty private folder.
    Layer {
        source: AbsPath,
        at: AbsPath,
    },
    /// A fresh /proc of the new PID namespace, its global parts read-only or covered.
    Proc,
    /// A private /dev: a few harmless nodes, new pseudo-terminals, /dev/shm.
    Devices,
    /// A folder made a mount point of its own, so that it cannot be renamed away.
    Pin {
        source: AbsPath,
        at: AbsPath,
    },
    /// An existing path that can only be read.
    Protect {
        source: AbsPath,
        at: AbsPath,
    },
    /// A path that shows nothing.
    Mask {
        at: AbsPath,
    },
    /// Read-only root, old root gone.
    Seal,
    Loopback,
    /// A listener on the sandbox's loopback that is handed out.
    Inlet {
        port: Port,
    },
    /// A pseudo-terminal of the sandbox's own.
    Terminal,
    Limits(Limits),
    NoNewPrivileges,
    DropCapabilities,
    CloseDescriptors,
    /// The same grants once more, by Landlock.
    Landlock,
    /// The system call filters of `profiles/seccomp`, and the listener for mediated calls.
    Seccomp,
    /// Wait here until verification has passed.
    Gate,
    Exec {
        workdir: AbsPath,
    },
}

impl Op {
    /// The layer that this step belongs to; none for the gate and what is around it.
    pub fn layer(&self) -> Option<&'static str> {
        Some(match self {
            Op::Namespaces | Op::MapIds { .. } | Op::Hostname(_) => "namespaces",
            Op::Root | Op::Scratch { .. } | Op::Sealed { .. } | Op::File { .. } | Op::Link { .. } => "mounts",
            Op::Layers { .. } | Op::Layer { .. } => "mounts",
            Op::Bind { .. } | Op::Proc | Op::Devices | Op::Pin { .. } => "mounts",
            Op::Protect { .. } | Op::Mask { .. } | Op::Seal => "mounts",
            Op::Loopback | Op::Inlet { .. } => "network",
            Op::Limits(_) => "limits",
            Op::NoNewPrivileges => "privileges",
            Op::DropCapabilities => "capabilities",
            Op::CloseDescriptors => "descriptors",
            Op::Landlock => "landlock",
            Op::Seccomp => "seccomp",
            Op::Terminal | Op::Gate | Op::Exec { .. } => return None,
        })
    }
}

/// What the plan needs beside the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub uid: u32,
    pub gid: u32,
    /// Ports of the sandbox's loopback whose listeners are handed out.
    pub inlets: Vec<Port>,
    /// Whether at least one standard stream becomes the sandbox's own terminal.
    pub terminal: bool,
}

/// The canary of full mode, in the new root; of reduced mode it stands in the launch's room.
pub const CANARY: &str = "/.pinfold";

/// A readable file that Landlock does not grant: reading it must stop working once Landlock is on.
pub fn canary(policy: &Policy) -> Result<AbsPath, PathError> {
    match &policy.room {
        None => AbsPath::new(CANARY),
        Some(room) => room.join("canary"),
    }
}

/// The operations, in the order in which the child applies them.
pub fn plan(policy: &Policy, frame: &Frame) -> Vec<Op> {
    let mut ops = match policy.mode() {
        Mode::Full => apart(policy, frame),
        Mode::Reduced => Vec::new(),
    };
    ops.extend(frame.terminal.then_some(Op::Terminal));
    ops.extend([
        Op::Limits(policy.limits.clone()),
        Op::NoNewPrivileges,
        Op::DropCapabilities,
        Op::CloseDescriptors,
        Op::Landlock,
        Op::Seccomp,
        Op::Gate,
        Op::Exec {
            workdir: policy.workdir.clone(),
        },
    ]);
    ops
}

/// What takes namespaces: identities, a new root, a network of its own.
fn apart(policy: &Policy, frame: &Frame) -> Vec<Op> {
    let mut ops = vec![
        Op::Namespaces,
        Op::MapIds {
            uid: frame.uid,
            gid: frame.gid,
        },
        Op::Hostname("pinfold".into()),
    ];
    if policy.binds.iter().any(|bind| bind.access == Access::Layered) {
        ops.push(Op::Layers {
            size: policy.layer_size,
        });
    }
    ops.push(Op::Root);
    ops.extend(view(policy));
    ops.extend([Op::Proc, Op::Devices]);
    ops.extend(guards(policy));
    ops.extend([Op::Seal, Op::Loopback]);
    ops.extend(frame.inlets.iter().map(|port| Op::Inlet { port: *port }));
    ops
}

/// Everything that becomes visible, parents first.
fn view(policy: &Policy) -> Vec<Op> {
    let made = policy.made.iter().map(|made| match &made.content {
        Content::Scratch { size, shared } => Op::Scratch {
            at: made.at.clone(),
            size: *size,
            shared: *shared,
        },
        Content::Sealed => Op::Sealed { at: made.at.clone() },
        Content::File(bytes) => Op::File {
            at: made.at.clone(),
            bytes: bytes.len(),
        },
    });
    let binds = policy.binds.iter().map(|bind| match bind.access {
        Access::Layered => Op::Layer {
            source: bind.source.clone(),
            at: bind.target.clone(),
        },
        access => Op::Bind {
            source: bind.source.clone(),
            target: bind.target.clone(),
            access,
            kind: bind.kind,
        },
    });
    let links = policy.links.iter().map(|link| Op::Link {
        at: link.at.clone(),
        to: link.to.clone(),
    });
    let mut ops: Vec<Op> = made.chain(binds).chain(links).collect();
    ops.sort_by(|a, b| place(a).cmp(&place(b)));
    ops
}

fn place(op: &Op) -> Option<&AbsPath> {
    match op {
        Op::Scratch { at, .. } | Op::Sealed { at } | Op::File { at, .. } | Op::Link { at, .. } => Some(at),
        Op::Layer { at, .. } => Some(at),
        Op::Bind { target, .. } => Some(target),
        _ => None,
    }
}

/// Pins, read-only covers and masks, parents first; a place that is both is covered after it is pinned.
fn guards(policy: &Policy) -> Vec<Op> {
    let source = |at: &AbsPath| source_of(policy, at);
    let mut pins: Vec<AbsPath> = policy.protected.iter().flat_map(|p| p.pins.iter().cloned()).collect();
    pins.sort();
    pins.dedup();
    let covers = policy
        .protected
        .iter()
        .filter(|p| p.kind.is_some())
        .map(|p| p.path.clone());
    let mut covers: Vec<AbsPath> = covers.collect();
    covers.sort();
    covers.dedup();
    let mut ops: Vec<(AbsPath, u8, Op)> = Vec::new();
    ops.extend(pins.into_iter().map(|at| {
        (
            at.clone(),
            0,
            Op::Pin {
                source: source(&at),
                at,
            },
        )
    }));
    ops.extend(covers.into_iter().map(|at| {
        (
            at.clone(),
            1,
            Op::Protect {
                source: source(&at),
                at,
            },
        )
    }));
    ops.extend(
        policy
            .masked
            .iter()
            .map(|at| (at.clone(), 2, Op::Mask { at: at.clone() })),
    );
    ops.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    ops.into_iter().map(|(_, _, op)| op).collect()
}

/// The host path behind a path inside: through the innermost bind that holds it.
fn source_of(policy: &Policy, at: &AbsPath) -> AbsPath {
    let bind = policy
        .binds
        .iter()
        .filter(|bind| at.is_within(&bind.target))
        .max_by_key(|bind| bind.target.clone());
    let below = bind.and_then(|bind| Some((bind, at.as_path().strip_prefix(bind.target.as_path()).ok()?)));
    below
        .and_then(|(bind, rest)| AbsPath::new(bind.source.as_path().join(rest)).ok())
        .unwrap_or_else(|| at.clone())
}
