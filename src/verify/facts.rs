//! Everything that is read for one verification, before anything is judged.

use super::proc::descriptors::{self, Descriptor, KernelDevs};
use super::proc::mountinfo::{self, Mount};
use super::proc::namespaces::{self, Namespaces};
use super::proc::net::Tables;
use super::proc::status::Status;
use super::proc::{Entry, ReadError, Reading};
use super::subject::{Identity, Subject, Walls};
use super::tree::{self, Found};
use super::{Finding, Process, Role, descent};
use crate::base::Pid;
use crate::sys::object::{Object, share_descriptors};
use nix::errno::Errno;
use procfs::FromRead as _;
use procfs::process::Limits;
use std::collections::BTreeSet;

/// Bytes of a process's arguments that are kept, for display.
const SHOWN: usize = 4 << 10;
/// Bytes of an environment that are looked at: more than exec(2) can hand over (6 MiB, execve(2)).
const GIVEN: usize = 8 << 20;

/// One thread: privileges, filters, descriptors and even namespaces are each thread's own.
#[derive(Debug, Clone)]
pub struct Thread {
    pub id: i32,
    pub status: Status,
    pub namespaces: Namespaces,
    /// Empty where it shares the table of the first thread.
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
    /// Its arguments as it shows them, NUL-separated, the beginning. For display alone: a process writes what it likes there.
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
    /// The text of `/proc/PID/cgroup`.
    pub group: Vec<u8>,
    /// The files of the expected control group, as they read now.
    pub group_files: Vec<(String, Option<String>)>,
    /// NUL-separated, as the process shows it.
    pub environment: Vec<u8>,
}

/// Everything that was read. What could not be read of a process that still lives is a finding already.
#[derive(Debug, Clone)]
pub struct Facts {
    pub own: Namespaces,
    pub devs: KernelDevs,
    pub members: Vec<Member>,
    /// Processes that live and could not be read.
    pub unread: Vec<Process>,
    pub shared: Option<Shared>,
    pub command: Option<OfCommand>,
    /// Our own network namespace's sockets; read only if the sandbox holds sockets at all.
    pub host: Option<Tables>,
    pub findings: Vec<Finding>,
}

/// Whether there are sockets whose peers and owners have to be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sockets {
    None,
    Some,
}

/// Finds every process of the sandbox and reads all there is to know.
pub fn read(subject: &Subject) -> Reading<Facts> {
    let mut facts = Facts::new()?;
    let mut sources = Vec::new();
    let member = |found: Found| {
        facts.add(&found);
        if found.role != Role::Tool {
            sources.push(found);
        }
    };
    let strays = match subject.walls {
        Walls::Namespaces => tree::read(subject, member)?.findings,
        Walls::Descent { .. } => descent::read(subject, member).map(|()| Vec::new())?,
    };
    facts.findings.extend(strays);
    let command = sources.iter().find(|found| found.role == Role::Command);
    let init = sources.iter().find(|found| found.role == Role::Init);
    let sockets = facts.has_sockets(subject);
    facts.add_shared(command.into_iter().chain(init), sockets);
    if let Some(command) = command {
        facts.add_command(command, subject);
    }
    if sockets == Sockets::Some {
        facts.host = Some(Tables::read(&Entry::own()?)?);
    }
    Ok(facts)
}

impl Facts {
    /// Nothing yet but ourselves.
    pub fn new() -> Reading<Facts> {
        Ok(Facts {
            own: Namespaces::own()?,
            devs: KernelDevs::learn()?,
            members: Vec::new(),
            unread: Vec::new(),
            shared: None,
            command: None,
            host: None,
            findings: Vec::new(),
        })
    }

    /// Reads one process.
    pub fn add(&mut self, found: &Found) {
        match patiently(&found.entry, || read_member(found, self.devs)) {
            Ok(member) => self.members.push(member),
            Err(ReadError::Ended) => {}
            Err(error) => {
                let (pid, role, parent) = (found.pid, found.role, found.status.parent);
                self.unread.push(Process {
                    pid,
                    parent,
                    role,
                    command: String::new(),
                    confined: false,
                });
                self.fail("namespaces", Some(pid), &error);
            }
        }
    }

    /// Through the command if it is there, else the init: both have the sandbox's mounts and network, which is checked
    /// of all.
    fn add_shared<'a>(&mut self, sources: impl Iterator<Item = &'a Found>, sockets: Sockets) {
        let mut problem = None;
        for found in sources {
            match patiently(&found.entry, || read_shared(&found.entry, sockets)) {
                Ok(shared) => {
                    self.shared = Some(shared);
                    return;
                }
                Err(error) => problem = Some((found.pid, error)),
            }
        }
        if let Some((pid, error)) = problem.filter(|(_, error)| *error != ReadError::Ended) {
            self.fail("mounts", Some(pid), &error);
        }
    }

    fn add_command(&mut self, found: &Found, subject: &Subject) {
        match patiently(&found.entry, || read_command(found, subject)) {
            Ok(command) => self.command = Some(command),
            Err(ReadError::Ended) => {}
            Err(error) => self.fail("environment", Some(found.pid), &error),
        }
    }

    fn fail(&mut self, check: &'static str, pid: Option<Pid>, error: &ReadError) {
        self.findings.push(Finding {
            check,
            pid,
            problem: error.to_string(),
        });
    }

    /// Each descriptor with its owner.
    pub fn descriptors(&self) -> impl Iterator<Item = (&Member, &Descriptor)> {
        self.members.iter().flat_map(|m| {
            m.threads
                .iter()
                .flat_map(move |t| t.descriptors.iter().map(move |d| (m, d)))
        })
    }

    /// Whether a process of the sandbox holds any but the launch's own, which are known by device and inode.
    fn has_sockets(&self, subject: &Subject) -> Sockets {
        let is_gate = |object: &Object| {
            subject.gate.contains(&Identity {
                dev: object.dev,
                ino: object.ino,
            })
        };
        let mut sockets = self.descriptors().filter(|(_, d)| d.kind == descriptors::Kind::Socket);
        match sockets.any(|(_, d)| !is_gate(&d.object)) {
            true => Sockets::Some,
            false => Sockets::None,
        }
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

fn read_member(found: &Found, devs: KernelDevs) -> Reading<Member> {
    let arguments = found.entry.read_some("cmdline", SHOWN)?;
    let mut threads: Vec<Thread> = Vec::new();
    if found.status.threads <= 1 {
        let look = Look {
            found,
            table: Table::Own(devs),
        };
        threads.extend(look.read(&found.entry, found.pid.get(), found.status.clone())?);
    } else {
        for id in found.entry.numbers("task")? {
            let shares = threads
                .first()
                .is_some_and(|first| share_descriptors(first.id, id).unwrap_or(false));
            let table = if shares { Table::OfFirst } else { Table::Own(devs) };
            threads.extend(Look { found, table }.read_sibling(id)?);
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

/// How one thread is to be looked at.
struct Look<'a> {
    found: &'a Found,
    table: Table,
}

/// Whose table of descriptors a thread has.
#[derive(Clone, Copy)]
enum Table {
    Own(KernelDevs),
    /// The first thread's, which is read already.
    OfFirst,
}

impl Look<'_> {
    /// Nothing for a thread that has ended or is ending: only such a one has no namespaces or working folder left, and
    /// the kernel takes them from none that will ever run a program's instruction again.
    fn read_sibling(&self, id: i32) -> Reading<Option<Thread>> {
        let entry = match self.found.entry.thread(id) {
            Err(ReadError::Ended) => return Ok(None),
            entry => entry?,
        };
        let read = entry.read("status").and_then(|bytes| Status::parse(&bytes));
        match read.and_then(|status| self.read(&entry, id, status)) {
            Err(ReadError::Ended) => Ok(None),
            Err(_) if entry.thread_has_ended() => Ok(None),
            read => read,
        }
    }

    fn read(&self, entry: &Entry, id: i32, status: Status) -> Reading<Option<Thread>> {
        if status.is_dead() {
            return Ok(None);
        }
        let namespaces = Namespaces::read_rest(entry, self.found.pid_namespace)?;
        let descriptors = match self.table {
            Table::Own(devs) => match descriptors::read(entry, devs) {
                Err(ReadError::Unreadable {
                    errno: Errno::EACCES, ..
                }) => descriptors::duplicated(id, status.table, devs)?,
                read => read?,
            },
            Table::OfFirst => Vec::new(),
        };
        let standing_on = [entry.object("root", c"root")?.mount, entry.object("cwd", c"cwd")?.mount];
        Ok(Some(Thread {
            id,
            status,
            namespaces,
            descriptors,
            standing_on,
        }))
    }
}

fn read_shared(entry: &Entry, sockets: Sockets) -> Reading<Shared> {
    Ok(Shared {
        mounts: mountinfo::parse(&entry.read("mountinfo")?)?,
        proc_shows: entry
            .link_below("root/proc", c"root/proc/1/ns/pid")
            .and_then(|text| namespaces::parse(&text).ok_or(ReadError::Malformed("root/proc"))),
        uid_map: entry.read("uid_map")?,
        gid_map: entry.read("gid_map")?,
        network: match sockets {
            Sockets::None => Tables::interfaces(entry)?,
            Sockets::Some => Tables::read(entry)?,
        },
    })
}

fn read_command(found: &Found, subject: &Subject) -> Reading<OfCommand> {
    let expected = subject.group.as_ref();
    let group_files = expected.into_iter().flat_map(|group| {
        let read = |name: &String| std::fs::read_to_string(group.folder.join(name)).ok();
        group.files.iter().map(move |(name, _)| (name.clone(), read(name)))
    });
    let limits = Limits::from_read(found.entry.read("limits")?.as_slice());
    Ok(OfCommand {
        pid: found.pid,
        limits: limits.map_err(|_| ReadError::Malformed("limits"))?,
        group: expected.map_or(Ok(Vec::new()), |_| found.entry.read("cgroup"))?,
        group_files: group_files.collect(),
        environment: environment(&found.entry)?,
    })
}

/// The command's environment as it was executed; empty where it cannot say anything.
fn environment(entry: &Entry) -> Reading<Vec<u8>> {
    let given = match entry.read_some("environ", GIVEN) {
        // Shut for a program that has made itself undumpable, which none can be made from outside: it hides from us
        // what it was given, and gains nothing.
        Err(ReadError::Unreadable {
            errno: Errno::EACCES, ..
        }) => return Ok(Vec::new()),
        read => read?,
    };
    let own = Entry::own()?;
    let program = |entry: &Entry| entry.object("exe", c"exe").map(|object| (object.dev, object.ino));
    // Released but not executed yet: still our own program, with our own environment, which exec takes away.
    if given == own.read_some("environ", GIVEN)? && program(entry)? == program(&own)? {
        return Ok(Vec::new());
    }
    Ok(given)
}
