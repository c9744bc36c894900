//! `/proc/PID/fd`: what each descriptor refers to.

use super::entry::numbered;
use super::status::decimal;
use super::{Entry, ReadError, Reading};
use crate::base::Pid;
use crate::sys::object::{Object, secret_memory};
use crate::sys::pidfd;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc::MFD_HUGE_SHIFT;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use std::ffi::CString;
use std::os::fd::AsRawFd as _;
use std::sync::OnceLock;

/// One open descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    pub number: i32,
    pub object: Object,
    pub kind: Kind,
}

/// What sort of thing it is, as far as the checks care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A file, folder, named pipe or link that has a place in a file system.
    File,
    /// A character or block device.
    Device,
    Pipe,
    Socket,
    /// A namespace, with its inode number.
    Namespace(u64),
    /// Another process, by the inode of its PID namespace, which it can never leave, or 0 if that cannot be read; nothing
    /// if it has ended. Not by its number: it may be younger than the list of those that are looked at.
    Process(Option<u64>),
    /// An event counter, timer, poll set and the like: no way out of a process.
    Anonymous,
}

const TYPE: u32 = 0o170_000;

/// The kernel's own file systems, which have no place among the mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelDevs {
    /// Where files without a name in memory are: plain, secret, and one for each size of huge pages.
    pub memory: &'static [u64],
    /// Where pipes without a name are.
    pub pipes: u64,
}

/// Sizes of huge pages that a kernel may have, as powers of two (memfd_create(2)): 64 KiB to 16 GiB.
const HUGE: std::ops::RangeInclusive<u32> = 16..=34;

impl KernelDevs {
    /// Learns their numbers by making one of each that this kernel has. They are those of the kernel since it started,
    /// so one look is enough for this process.
    pub fn learn() -> Reading<KernelDevs> {
        static KNOWN: OnceLock<(Vec<u64>, u64)> = OnceLock::new();
        let make = || {
            let plain = fstat(memfd_create(c"pinfold", MFdFlags::MFD_CLOEXEC)?)?;
            let pipes = fstat(nix::unistd::pipe2(OFlag::O_CLOEXEC)?.0)?.st_dev;
            // A kernel without the one or the other answers with an error, and then nobody holds such a file.
            let secret = secret_memory().and_then(fstat);
            let huge = HUGE.map(|log| memfd_create(c"pinfold", huge_flags(log)).and_then(fstat));
            let others = [secret].into_iter().chain(huge).flatten();
            let memory = [plain].into_iter().chain(others).map(|stat| stat.st_dev);
            Ok((memory.collect(), pipes))
        };
        let failed = |errno| ReadError::Unreadable {
            what: "a pipe of our own",
            errno,
        };
        let (memory, pipes) = match KNOWN.get() {
            Some(known) => known,
            None => {
                let learned = make().map_err(failed)?;
                KNOWN.get_or_init(|| learned)
            }
        };
        Ok(KernelDevs { memory, pipes: *pipes })
    }

    /// Whether files of this device are memory without a name.
    pub fn is_memory(&self, dev: u64) -> bool {
        self.memory.contains(&dev)
    }
}

fn huge_flags(log: u32) -> MFdFlags {
    MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_HUGETLB | MFdFlags::from_bits_retain(log << MFD_HUGE_SHIFT)
}

/// All descriptors of an entry (a process or one thread). One that closes while it is looked at is left out.
pub fn read(entry: &Entry, devs: KernelDevs) -> Reading<Vec<Descriptor>> {
    let mut found = Vec::new();
    for number in entry.numbers("fd")? {
        match describe(entry, number, devs) {
            Err(ReadError::Ended) => {}
            other => found.push(other?),
        }
    }
    Ok(found)
}

/// The descriptors of a task whose folder in /proc is shut: one that has made itself undumpable (an agent of keys does)
/// or runs a program that its user may not read. `table` bounds their numbers. Each is duplicated into this process
/// and looked at here (pidfd_getfd(2)), which the owner of the sandbox's user namespace may do.
pub fn duplicated(id: i32, table: i32, devs: KernelDevs) -> Reading<Vec<Descriptor>> {
    let failed = |errno| match errno {
        Errno::ESRCH => ReadError::Ended,
        errno => ReadError::Unreadable {
            what: "its descriptors",
            errno,
        },
    };
    let task = pidfd::open_thread(id).or_else(|_| pidfd::open(id)).map_err(failed)?;
    let own = Entry::own()?;
    let mut found = Vec::new();
    for number in 0..table {
        match pidfd::duplicate(&task, number) {
            Ok(copy) => found.push(Descriptor {
                number,
                ..describe(&own, copy.as_raw_fd(), devs)?
            }),
            Err(Errno::EBADF) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(found)
}

fn describe(entry: &Entry, number: i32, devs: KernelDevs) -> Reading<Descriptor> {
    let path: CString = numbered("fd/", number);
    let object = entry.object("fd", &path)?;
    let kind = match object.mode & TYPE {
        0o140_000 => Kind::Socket,
        0o020_000 | 0o060_000 => Kind::Device,
        0o010_000 if object.dev == devs.pipes => Kind::Pipe,
        0o040_000 | 0o120_000 | 0o010_000 => Kind::File,
        _ => special(entry, number, &entry.link_below("fd", &path)?)?,
    };
    Ok(Descriptor { number, object, kind })
}

/// Tells kernel objects from files by the text of the link: a file's begins with a slash.
fn special(entry: &Entry, number: i32, link: &[u8]) -> Reading<Kind> {
    if link.starts_with(b"/") {
        return Ok(Kind::File);
    }
    if link == b"anon_inode:[pidfd]" || link.starts_with(b"pidfd:") {
        return Ok(Kind::Process(target(entry, number)?));
    }
    if link.starts_with(b"anon_inode:") {
        return Ok(Kind::Anonymous);
    }
    match super::namespaces::parse(link) {
        Some(inode) => Ok(Kind::Namespace(inode)),
        None => Ok(Kind::File),
    }
}

fn target(entry: &Entry, number: i32) -> Reading<Option<u64>> {
    let path = format!("fdinfo/{number}");
    let bytes = entry.read_at("fdinfo", &path)?;
    let line = bytes.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(b"Pid:"));
    let pid: i32 = line
        .and_then(|text| decimal(text.trim_ascii()))
        .ok_or(ReadError::Malformed("fdinfo"))?;
    if pid == -1 {
        return Ok(None);
    }
    // 0: it is in no PID namespace below ours.
    let Some(pid) = Pid::new(pid) else { return Ok(Some(0)) };
    match Entry::open(pid).and_then(|target| super::namespaces::inode(&target, "ns/pid")) {
        Err(ReadError::Ended) => Ok(None),
        found => Ok(Some(found.unwrap_or(0))),
    }
}
