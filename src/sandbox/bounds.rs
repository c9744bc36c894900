//! Which mechanism keeps each limit of a policy here, found out by trying it; nothing is dropped in silence.

use super::group::{Group, NoGroup};
use crate::policy::Limits;
use serde::{Deserialize, Serialize};

/// One limit, and what the kernel keeps it by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    pub limit: String,
    /// Bytes, a count, or thousandths of a processor.
    pub most: u64,
    pub by: String,
    /// What it does not bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub but: Option<String>,
}

/// A limit that nothing keeps here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the limit on {limit} cannot be kept here: {why}")]
pub struct Unbounded {
    pub limit: &'static str,
    pub why: NoGroup,
}

/// What keeps the limits of one sandbox.
#[derive(Debug, Default)]
pub struct Bounds {
    pub group: Option<Group>,
    /// Bytes of private memory of each process, where no group bounds them together.
    pub memory_each: Option<u64>,
    pub rows: Vec<Bound>,
}

impl Bounds {
    /// A group where the limits want one and one can be had, else what each process can be bound by.
    pub fn of(limits: &Limits) -> Result<Bounds, Unbounded> {
        let shared = Limits {
            open_files: None,
            address_space: None,
            ..limits.clone()
        };
        let mut bounds = Bounds::default();
        if shared != Limits::default() {
            match Group::make(&shared) {
                Ok(group) => bounds.by_group(&shared, group),
                Err(why) => bounds.by_process(&shared, why)?,
            }
        }
        let each = "each process by itself";
        bounds.add("open files", limits.open_files, "RLIMIT_NOFILE", Some(each));
        let but = "addresses, not memory: Node, Java and Go reserve far more than they use";
        bounds.add("address space", limits.address_space, "RLIMIT_AS", Some(but));
        Ok(bounds)
    }

    fn add(&mut self, limit: &str, most: Option<u64>, by: &str, but: Option<&str>) {
        self.rows.extend(most.map(|most| Bound {
            limit: limit.to_owned(),
            most,
            by: by.to_owned(),
            but: but.map(str::to_owned),
        }));
    }

    fn by_group(&mut self, limits: &Limits, group: Group) {
        self.add("memory", limits.memory, "cgroup memory.max", None);
        self.add("processes", limits.processes, "cgroup pids.max", None);
        self.add("processors", limits.cpu, "cgroup cpu.max", None);
        self.group = Some(group);
    }

    fn by_process(&mut self, limits: &Limits, why: NoGroup) -> Result<(), Unbounded> {
        let limit = |limit| {
            let why = why.clone();
            move || Unbounded { limit, why }
        };
        // The kernel counts no process of user 0 (RLIMIT_NPROC, getrlimit(2)).
        let is_root = nix::unistd::geteuid().is_root();
        limits.cpu.map_or(Ok(()), |_| Err(limit("processors")()))?;
        limits
            .processes
            .filter(|_| is_root)
            .map_or(Ok(()), |_| Err(limit("processes")()))?;
        self.add("processes", limits.processes, "RLIMIT_NPROC", None);
        let but = "each process by itself, and its private memory alone";
        self.add("memory", limits.memory, "RLIMIT_DATA", Some(but));
        self.memory_each = limits.memory;
        Ok(())
    }
}

/// What would keep each limit here: for `doctor`.
pub fn tried() -> Vec<(&'static str, Result<Bound, Unbounded>)> {
    let none = Limits::default();
    let wishes = [
        (
            "memory",
            Limits {
                memory: Some(1 << 30),
                ..none.clone()
            },
        ),
        (
            "processes",
            Limits {
                processes: Some(1024),
                ..none.clone()
            },
        ),
        (
            "processors",
            Limits {
                cpu: Some(1000),
                ..none
            },
        ),
    ];
    let one = |limits: &Limits| Bounds::of(limits).map(|mut bounds| bounds.rows.remove(0));
    wishes.iter().map(|(name, limits)| (*name, one(limits))).collect()
}
