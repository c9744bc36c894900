//! Everything that is read for one verification, before anything is judged.

use super::proc::descriptors::{self, Descriptor};
use super::proc::mountinfo::{self, Mount};
use super::proc::namespaces::{self, Namespaces};
use super::proc::net::Tables;
use super::proc::status::Status;
use super::proc::{Entry, ReadError, Reading};
use super::tree::{Found, Tree};
use super::{Finding, Role};
use crate::base::Pid;
use procfs::FromRead as _;
use procfs::process::Limits;
use std::collections::BTreeSet;

/// One thread: privileges, filters, descriptors and even namespaces are each thread's own.
#[derive(Debug, Clone)]
pub struct Thread {
    pub id: i32,
    pub status: Status,
    pub namespaces: Namespaces,
    pub descriptors: Vec<Descriptor>,
    /// The mounts that its root and working folder are on.
    pub standing_on: [u64; 2],
}

/// One process.
#[derive(Debug, Clone)]
pub struct Member {
    pub pid: Pid,
    pub parent: i32,
    pub role: Role,
    /// Its arguments as it shows them, NUL-separated; display, and the client's address.
    pub arguments: Vec<u8>,
    /// Threads that can still run; empty for a zombie.
    pub threads: Vec<Thread>,
}

/// What is read once for a sandbox.
#[derive(Debug, Clone)]
pub struct Shared {
    pub mounts: Vec<Mount>,
    /// Inode of the PID namespace that the sandbox's `/proc` shows.
    pub proc_shows: Reading<u64>,
    pub uid_map: Vec<u8>,
    pub gid_map: Vec<u8>,
    pub network: Tables,
}

/// What is read of the command alone.
#[derive(Debug, Clone)]
pub struct OfCommand {
    pub pid: Pid,
    pub limits: Limits,
    /// NUL-separated, as the process shows it.
    pub environment: Vec<u8>,
}

/// Everything that was read. What could not be read of a process that still lives is a finding already.
#[derive(Debug, Clone)]
pub struct Facts {
    pub own: Namespaces,
    /// The file system of memory without a name (memfd), which every process may have.
    pub memory_dev: u64,
    pub members: Vec<Member>,
    pub shared: Option<Shared>,
    pub command: Option<OfCommand>,
    /// Our own network namespace's sockets; read only if the sandbox holds sockets at all.
    pub host: Option<Tables>,
    pub findings: Vec<Finding>,
}

/// Reads what `tree` found.
pub fn read(tree: &Tree) -> Reading<Facts> {
    let mut facts = Facts {
        own: Namespaces::own()?,
        memory_dev: memory_dev()?,
        members: Vec::with_capacity(tree.members.len()),
        shared: None,
        command: None,
        host: None,
        findings: Vec::new(),
    };
    for found in &tree.members {
        match patiently(&found.entry, || read_member(found)) {
            Ok(member) => facts.members.push(member),
            Err(ReadError::Ended) => {}
            Err(error) => facts.fail("namespaces", Some(found.pid), &error),
        }
    }
    facts.read_shared(tree);
    if let Some(found) = tree.members.iter().find(|m| m.role == Role::Command) {
        match patiently(&found.entry, || read_command(found)) {
            Ok(command) => facts.command = Some(command),
            Err(ReadError::Ended) => {}
            Err(error) => facts.fail("environment", Some(found.pid), &error),
        }
    }
    if facts.sockets().next().is_some() {
        facts.host = Some(Tables::read(&Entry::own()?)?);
    }
    Ok(facts)
}

impl Facts {
    fn fail(&mut self, check: &'static str, pid: Option<Pid>, error: &ReadError) {
        self.findings.push(Finding {
            check,
            pid,
            problem: error.to_string(),
        });
    }

    /// Through the command if it is there, else the init: both have the sandbox's mounts and network, which is checked
    /// of all.
    fn read_shared(&mut self, tree: &Tree) {
        for role in [Role::Command, Role::Init] {
            let Some(found) = tree.members.iter().find(|m| m.role == role) else {
                continue;
            };
            match patiently(&found.entry, || read_shared(&found.entry)) {
                Ok(shared) => {
                    self.shared = Some(shared);
                    return;
                }
                Err(ReadError::Ended) => {}
                Err(error) => self.fail("mounts", Some(found.pid), &error),
            }
        }
    }

    /// Each descriptor with its owner.
    pub fn descriptors(&self) -> impl Iterator<Item = (&Member, &Descriptor)> {
        self.members.iter().flat_map(|m| {
            m.threads
                .iter()
                .flat_map(move |t| t.descriptors.iter().map(move |d| (m, d)))
        })
    }

    /// Each socket descriptor's inode.
    pub fn sockets(&self) -> impl Iterator<Item = u64> {
        self.descriptors()
            .filter(|(_, d)| d.kind == descriptors::Kind::Socket)
            .map(|(_, d)| d.object.ino)
    }

    /// The inodes of all sockets that a process of the sandbox holds.
    pub fn held_sockets(&self) -> BTreeSet<u64> {
        self.sockets().collect()
    }
}

/// Reads again if the process turns out to be alive: it may have been between two states. `Ended` only if it has.
fn patiently<T>(entry: &Entry, read: impl Fn() -> Reading<T>) -> Reading<T> {
    const TRIES: u32 = 3;
    let mut last = read();
    for _ in 1..TRIES {
        match &last {
            Ok(_) => break,
            Err(_) if entry.has_ended() => return Err(ReadError::Ended),
            Err(_) => last = read(),
        }
    }
    last
}

fn read_member(found: &Found) -> Reading<Member> {
    let arguments = found.entry.read("cmdline")?;
    let mut threads = Vec::new();
    if found.status.threads <= 1 {
        threads.extend(read_thread(&found.entry, found.pid.get(), Some(&found.status))?);
    } else {
        for id in found.entry.numbers("task")? {
            let entry = match found.entry.thread(id) {
                Err(ReadError::Ended) => continue,
                entry => entry?,
            };
            threads.extend(patiently_thread(&entry, id)?);
        }
    }
    Ok(Member {
        pid: found.pid,
        parent: found.status.parent,
        role: found.role,
        arguments,
        threads,
    })
}

fn patiently_thread(entry: &Entry, id: i32) -> Reading<Option<Thread>> {
    match read_thread(entry, id, None) {
        Err(_) if entry.thread_has_ended() => Ok(None),
        // Only an ending thread has no namespaces, or no working folder, left.
        Err(ReadError::Ended) => Ok(None),
        other => other,
    }
}

/// Nothing for a thread that has ended. A thread that is ending loses its namespaces first, and the kernel takes them
/// from no thread that will ever run a program's instruction again: that reads as `Ended`.
fn read_thread(entry: &Entry, id: i32, known: Option<&Status>) -> Reading<Option<Thread>> {
    let status = match known {
        Some(status) => status.clone(),
        None => Status::parse(&entry.read("status")?)?,
    };
    if status.is_dead() {
        return Ok(None);
    }
    let namespaces = Namespaces::read(entry)?;
    let descriptors = descriptors::read(entry)?;
    let standing_on = [entry.object("root", c"root")?.mount, entry.object("cwd", c"cwd")?.mount];
    Ok(Some(Thread {
        id,
        status,
        namespaces,
        descriptors,
        standing_on,
    }))
}

fn read_shared(entry: &Entry) -> Reading<Shared> {
    Ok(Shared {
        mounts: mountinfo::parse(&entry.read("mountinfo")?)?,
        proc_shows: entry
            .link_below("root/proc", c"root/proc/1/ns/pid")
            .and_then(|text| namespaces::parse(&text).ok_or(ReadError::Malformed("root/proc"))),
        uid_map: entry.read("uid_map")?,
        gid_map: entry.read("gid_map")?,
        network: Tables::read(entry)?,
    })
}

fn read_command(found: &Found) -> Reading<OfCommand> {
    let limits = Limits::from_read(found.entry.read("limits")?.as_slice());
    Ok(OfCommand {
        pid: found.pid,
        limits: limits.map_err(|_| ReadError::Malformed("limits"))?,
        environment: found.entry.read("environ")?,
    })
}

fn memory_dev() -> Reading<u64> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    let unreadable = |errno| ReadError::Unreadable {
        what: "a file in memory",
        errno,
    };
    let file = memfd_create(c"pinfold", MFdFlags::MFD_CLOEXEC).map_err(unreadable)?;
    nix::sys::stat::fstat(&file).map(|seen| seen.st_dev).map_err(unreadable)
}
