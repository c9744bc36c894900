//! What runs between clone and exec, in the new namespaces: first the namespace's first process, then the command.
//! Single-threaded; every failure is a (step, errno) over the control socket; nothing here panics or prints.

mod command;
mod descendants;
mod first;
mod freeze;

use crate::base::AbsPath;
use crate::policy::{Limits, Mode, Policy};
use crate::sandbox::layers::seccomp::Filters;
use crate::sandbox::plan::Op;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;

pub use first::run;

/// Everything that the inside needs, made by the supervisor before the clone.
pub struct Inside<'a> {
    pub ops: &'a [Op],
    pub policy: &'a Policy,
    pub files: BTreeMap<AbsPath, Vec<u8>>,
    pub filters: &'a Filters,
    /// The program and its arguments.
    pub argv: Vec<CString>,
    /// `NAME=value` strings.
    pub environment: Vec<CString>,
    /// The values of PATH inside, in order, for a program without a slash.
    pub path: Vec<AbsPath>,
    /// This side of the control socket.
    pub control: OwnedFd,
    /// The read end of the gate.
    pub gate: OwnedFd,
    /// Where standard streams come from.
    pub streams: [Stream; 3],
    pub umask: u32,
    /// Bytes of private memory of each process, where nothing bounds them together.
    pub memory_each: Option<u64>,
    /// Signals that stay ignored.
    pub ignored: Vec<nix::sys::signal::Signal>,
}

pub use descendants::{end_all, start_of};

/// The number of a failure that belongs to no operation of the plan.
pub const NO_OP: u16 = u16::MAX;

/// Where one standard stream of the command comes from.
#[derive(Debug)]
pub enum Stream {
    /// The supervisor's own, as it is.
    Inherited,
    /// The sandbox's own terminal.
    Terminal,
    /// A file that the supervisor opened (a log, /dev/null).
    File(OwnedFd),
}

/// Says that the limits cannot be set, and ends this process.
pub fn fail(inside: &Inside<'_>, errno: nix::errno::Errno) -> ! {
    let op = inside.position(|op| matches!(op, Op::Limits(_)));
    let _ = crate::sandbox::gate::send(&inside.control, crate::sandbox::gate::Report::Failed { op, errno }, &[]);
    crate::sys::clone::leave(125)
}

impl Inside<'_> {
    fn position(&self, wanted: impl Fn(&Op) -> bool) -> u16 {
        self.ops
            .iter()
            .position(wanted)
            .and_then(|index| u16::try_from(index).ok())
            .unwrap_or(NO_OP)
    }

    fn mode(&self) -> Mode {
        self.policy.mode()
    }

    fn limits(&self) -> Limits {
        self.policy.limits.clone()
    }
}
