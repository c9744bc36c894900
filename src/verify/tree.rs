//! Finds every process of a launch: through its PID namespace, not only through parents, so that one that was
//! re-parented, made a session of its own or forked twice cannot hide.

use super::proc::namespaces::{self, inode};
use super::proc::status::{Status, start_ticks};
use super::proc::{Entry, ReadError, Reading, pids};
use super::subject::{Birth, Subject, Which};
use super::{Finding, Role};
use crate::base::Pid;
use std::collections::{BTreeMap, BTreeSet};

/// One process of the launch's PID namespace.
#[derive(Debug)]
pub struct Found {
    pub pid: Pid,
    pub role: Role,
    /// Inode of the PID namespace it is in, which no task can leave.
    pub pid_namespace: u64,
    pub status: Status,
    pub entry: Entry,
}

/// What one pass over /proc found, beside the members themselves.
#[derive(Debug, Default)]
pub struct Tree {
    members: BTreeMap<i32, Known>,
    /// The init is not who it should be, or descendants of the launch are in another PID namespace.
    pub findings: Vec<Finding>,
}

/// What is kept of a member.
#[derive(Debug)]
struct Known {
    inner_pid: Option<i32>,
    uid: u32,
}

/// Another process that has a nested PID namespace, or whose namespace cannot be read.
struct Other {
    parent: i32,
    uid: u32,
    readable: bool,
}

/// Looks through /proc once and hands over each member as it is found, so that a sandbox of many processes does not
/// take as many descriptors.
pub fn read(subject: &Subject, mut member: impl FnMut(Found)) -> Reading<Tree> {
    let mut tree = Tree::default();
    let own = inode(&Entry::own()?, "ns/pid")?;
    let mut others = BTreeMap::new();
    for pid in pids()? {
        // Most processes are in our own namespace: one look at each, and only the others are opened and read.
        if namespaces::glance(pid) == Ok(own) {
            continue;
        }
        let entry = match Entry::open(pid) {
            Err(ReadError::Ended) => continue,
            entry => entry?,
        };
        match inode(&entry, "ns/pid") {
            Ok(found) if found == subject.namespaces.pid => match Found::read(pid, entry, subject) {
                Ok(found) => {
                    tree.note(&found);
                    member(found);
                }
                Err(ReadError::Ended) => {}
                Err(error) => tree.findings.push(finding(Some(pid), error.to_string())),
            },
            Ok(found) if found == own => {}
            Err(ReadError::Ended) => {}
            known => note_other(&mut others, pid, &entry, known.is_ok())?,
        }
    }
    tree.check_birth(subject.init);
    tree.add_strays(&mut others);
    Ok(tree)
}

impl Found {
    /// Reads one process of the sandbox.
    pub fn read(pid: Pid, entry: Entry, subject: &Subject) -> Reading<Found> {
        let status = Status::parse(&entry.read("status")?)?;
        let is_command = match subject.command {
            Which::Host(host) => host == pid,
            Which::Inside(inner) => status.inner_pids.last() == Some(&inner),
        };
        let role = match (pid == subject.init.pid, is_command) {
            (true, _) => Role::Init,
            (false, true) => Role::Command,
            (false, false) => Role::Tool,
        };
        Ok(Found {
            pid,
            role,
            pid_namespace: subject.namespaces.pid,
            status,
            entry,
        })
    }
}

/// Whoever has one pid only is in the namespace that /proc was mounted in, ours: not worth a look.
fn note_other(others: &mut BTreeMap<i32, Other>, pid: Pid, entry: &Entry, readable: bool) -> Reading<()> {
    let status = match entry.read("status").and_then(|bytes| Status::parse(&bytes)) {
        Err(ReadError::Ended) => return Ok(()),
        status => status?,
    };
    if status.inner_pids.len() > 1 && !status.is_dead() {
        let other = Other {
            parent: status.parent,
            uid: status.uids[0],
            readable,
        };
        others.insert(pid.get(), other);
    }
    Ok(())
}

impl Tree {
    fn note(&mut self, found: &Found) {
        let known = Known {
            inner_pid: found.status.inner_pids.last().copied(),
            uid: found.status.uids[0],
        };
        self.members.insert(found.pid.get(), known);
    }

    /// The init that was recorded must be the one that is there.
    fn check_birth(&mut self, init: Birth) {
        let problem = match self.members.get(&init.pid.get()) {
            None => Some("the first process of the sandbox is not in its PID namespace"),
            Some(_) if has_ended(init) => Some("this number is no longer that of the process that was started"),
            Some(known) if known.inner_pid != Some(1) => Some("the first process of the sandbox is not pid 1 inside"),
            Some(_) => None,
        };
        self.findings
            .extend(problem.map(|problem| finding(Some(init.pid), problem)));
    }

    /// Follows parents from the members through the others. An other whose parent has gone since is looked at again:
    /// the kernel has given it a new parent, a member if it is the launch's.
    fn add_strays(&mut self, others: &mut BTreeMap<i32, Other>) {
        let uid = self.members.values().next().map(|known| known.uid);
        for (pid, other) in others.iter_mut() {
            let parent_is_there = Pid::new(other.parent).is_none_or(|p| Entry::open(p).is_ok());
            if !parent_is_there {
                let again = Pid::new(*pid)
                    .map(Entry::open)
                    .and_then(Result::ok)
                    .and_then(|e| e.read("status").ok());
                if let Some(status) = again.and_then(|bytes| Status::parse(&bytes).ok()) {
                    other.parent = status.parent;
                }
            }
        }
        let mut ours: BTreeSet<i32> = self.members.keys().copied().collect();
        loop {
            let more: Vec<i32> = others
                .iter()
                .filter(|(p, o)| ours.contains(&o.parent) && !ours.contains(*p))
                .map(|(p, _)| *p)
                .collect();
            if more.is_empty() {
                break;
            }
            ours.extend(&more);
            for pid in more.into_iter().filter_map(Pid::new) {
                let unreadable = others
                    .get(&pid.get())
                    .is_some_and(|o| !o.readable && Some(o.uid) == uid);
                let why = if unreadable {
                    ", and its namespaces cannot be read"
                } else {
                    ""
                };
                self.findings.push(finding(
                    Some(pid),
                    format!("it is outside the sandbox's PID namespace{why}"),
                ));
            }
        }
    }
}

/// Whether the sandbox is over: its init is gone, dead, ending, or its number is a later process's. The kernel ends
/// every process of a PID namespace before the first one is gone. What cannot be read is not over.
pub fn has_ended(init: Birth) -> bool {
    let look = || {
        let entry = Entry::open(init.pid)?;
        let ticks = start_ticks(&entry.read("stat")?)?;
        // A process that is ending has no mount namespace any more, and still looks alive otherwise.
        let ending = inode(&entry, "ns/mnt") == Err(ReadError::Ended);
        Ok::<bool, ReadError>(ticks != init.start_ticks || ending || entry.has_ended())
    };
    look().unwrap_or_else(|error| error == ReadError::Ended)
}

fn finding(pid: Option<Pid>, problem: impl Into<String>) -> Finding {
    Finding {
        check: "namespaces",
        pid,
        problem: problem.into(),
    }
}
