//! Why a sandbox could not be made: which step of the plan, the kernel's error number, and what a person can do.

use super::layers::seccomp::FilterError;
use super::plan::Op;
use crate::base::{AbsPath, Explain, Kind};
use nix::errno::Errno;

/// Why a sandbox could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot enclose the command: {step} failed ({errno})")]
    Step {
        step: String,
        /// The layer that the step belongs to.
        layer: Option<&'static str>,
        errno: Errno,
        hint: Option<String>,
    },
    #[error("cannot enclose the command: the sandbox's first process ended before the command was held")]
    Gone,
    #[error("cannot enclose the command: it was not held within {0} seconds")]
    Slow(u64),
    #[error("{0} is a socket that leads further than to its peer, and so past the broker")]
    Socket(&'static str),
    #[error("an argument or variable has a NUL byte in it")]
    Nul,
    /// Through an open folder every file of its file system can be named, past all mounts (fchdir(2)).
    #[error("{0} is a folder")]
    Folder(&'static str),
    #[error("cannot enclose the command: {0}")]
    Limit(#[from] super::bounds::Unbounded),
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl SpawnError {
    /// Whether a step failed that takes namespaces, and in a way that says that they, or what is done in them, cannot be
    /// had here at all.
    pub fn lacks_namespaces(&self) -> bool {
        let SpawnError::Step { layer, errno, .. } = self else {
            return false;
        };
        let cannot = [
            Errno::EPERM,
            Errno::EACCES,
            Errno::ENOSPC,
            Errno::EUSERS,
            Errno::ENOSYS,
            Errno::EINVAL,
            Errno::EOPNOTSUPP,
        ];
        matches!(layer, Some("namespaces" | "mounts" | "network")) && cannot.contains(errno)
    }
}

impl Explain for SpawnError {
    fn kind(&self) -> Kind {
        match self {
            SpawnError::Nul | SpawnError::Folder(_) => Kind::Config,
            _ => Kind::Startup,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            SpawnError::Step { hint, .. } => hint.clone(),
            SpawnError::Limit(_) => Some(
                "leave the limit out, or start from a place with control groups of your own: systemd-run --user --scope -p Delegate=yes pinfold ...".into(),
            ),
            SpawnError::Folder(_) => Some("redirect it from or to a file, a pipe or /dev/null".into()),
            SpawnError::Gone | SpawnError::Slow(_) => Some("run `pinfold doctor` to see what this kernel gives".into()),
            _ => None,
        }
    }
}

/// A failure outside the plan.
pub(super) fn step(name: &'static str) -> impl Fn(Errno) -> SpawnError {
    move |errno| SpawnError::Step {
        step: name.into(),
        layer: None,
        errno,
        hint: advice(None, errno),
    }
}

/// A failure of one operation of the plan.
pub(super) fn failed(ops: &[Op], op: u16, errno: Errno) -> SpawnError {
    let op = ops.get(usize::from(op));
    let step = op.map_or_else(|| "starting the sandbox's processes".into(), describe);
    SpawnError::Step {
        step,
        layer: op.and_then(Op::layer),
        errno,
        hint: advice(op, errno),
    }
}

/// One operation in words, for an error.
pub fn describe(op: &Op) -> String {
    let place = |verb: &str, at: &AbsPath| format!("{verb} {}", crate::base::text::visible(at.as_path().as_os_str()));
    match op {
        Op::Namespaces => "making the namespaces".into(),
        Op::MapIds { .. } => "mapping the user id".into(),
        Op::Hostname(_) => "naming the sandbox".into(),
        Op::Root => "making the new root".into(),
        Op::Scratch { at, .. } | Op::Sealed { at } | Op::File { at, .. } => place("making", at),
        Op::Link { at, .. } => place("linking", at),
        Op::Bind { source, .. } => place("showing", source),
        Op::Layers { .. } => "making memory for private layers".into(),
        Op::Layer { source, .. } => place("laying a private layer over", source),
        Op::Proc => "mounting /proc".into(),
        Op::Devices => "making /dev".into(),
        Op::Pin { at, .. } => place("pinning", at),
        Op::Protect { at, .. } => place("protecting", at),
        Op::Mask { at } => place("covering", at),
        Op::Seal => "entering the new root".into(),
        Op::Loopback => "bringing the loopback up".into(),
        Op::Inlet { port } => format!("listening on the sandbox's port {port}"),
        Op::Terminal => "making the sandbox's terminal".into(),
        Op::Limits(_) => "setting limits".into(),
        Op::NoNewPrivileges => "setting no_new_privs".into(),
        Op::DropCapabilities => "dropping capabilities".into(),
        Op::CloseDescriptors => "closing descriptors".into(),
        Op::Landlock => "applying Landlock".into(),
        Op::Seccomp => "installing the system call filters".into(),
        Op::Gate => "waiting at the gate".into(),
        Op::Exec { workdir } => place("entering", workdir),
    }
}

/// What a person can do about it.
fn advice(op: Option<&Op>, errno: Errno) -> Option<String> {
    let namespaces = matches!(
        op,
        Some(Op::Namespaces | Op::MapIds { .. } | Op::Root | Op::Hostname(_) | Op::Loopback)
    );
    match (op, errno) {
        (_, Errno::EPERM | Errno::EACCES | Errno::ENOSPC) if namespaces => Some(
            "this machine does not let you make user namespaces; `pinfold doctor` names the setting to change".into(),
        ),
        (Some(Op::Landlock), Errno::EOPNOTSUPP | Errno::ENOSYS) => {
            Some("this kernel runs without Landlock (5.13 or newer has it, if `landlock` is in its list of security modules)".into())
        }
        (Some(Op::Proc), Errno::EPERM) => Some("a container without a full /proc cannot hold a sandbox of this kind".into()),
        (Some(Op::Bind { .. } | Op::Layer { .. }), Errno::ENOENT) => Some("the path went away, or became a link, after the policy was resolved".into()),
        (_, Errno::ENOSYS) => Some("this kernel is too old; Linux 5.13 or newer is needed".into()),
        _ => None,
    }
}
