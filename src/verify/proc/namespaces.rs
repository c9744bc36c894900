//! Namespace identities as the kernel shows them.

use super::{Entry, ReadError, Reading};
use crate::base::Pid;
use serde::Serialize;

/// The inode numbers of the namespaces that a process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Namespaces {
    pub user: u64,
    pub mnt: u64,
    pub pid: u64,
    pub net: u64,
    pub ipc: u64,
    pub uts: u64,
    pub cgroup: u64,
}

impl Namespaces {
    /// Those of a process, read now.
    pub fn of(pid: Pid) -> Reading<Namespaces> {
        Namespaces::read(&Entry::open(pid)?)
    }

    /// Our own: what the sandbox must not share.
    pub fn own() -> Reading<Namespaces> {
        Namespaces::read(&Entry::own()?)
    }

    /// Those of an open entry. A process that is ending has lost them and reads as `Ended`.
    pub fn read(entry: &Entry) -> Reading<Namespaces> {
        Namespaces::read_rest(entry, inode(entry, "ns/pid")?)
    }

    /// The same where the PID namespace is known already: a task cannot leave the one that it was made in.
    pub fn read_rest(entry: &Entry, pid: u64) -> Reading<Namespaces> {
        Ok(Namespaces {
            user: inode(entry, "ns/user")?,
            mnt: inode(entry, "ns/mnt")?,
            pid,
            net: inode(entry, "ns/net")?,
            ipc: inode(entry, "ns/ipc")?,
            uts: inode(entry, "ns/uts")?,
            cgroup: inode(entry, "ns/cgroup")?,
        })
    }

    /// Kind and inode number, one by one.
    pub fn each(&self) -> [(&'static str, u64); 7] {
        [
            ("user", self.user),
            ("mnt", self.mnt),
            ("pid", self.pid),
            ("net", self.net),
            ("ipc", self.ipc),
            ("uts", self.uts),
            ("cgroup", self.cgroup),
        ]
    }
}

/// The inode number of one namespace link, for example `ns/pid`.
pub fn inode(entry: &Entry, link: &'static str) -> Reading<u64> {
    parse(&entry.link(link)?).ok_or(ReadError::Malformed(link))
}

/// The PID namespace of whatever has this number right now. Enough to pass a process of ours over, never to take one
/// for the sandbox's: between two looks the number may be another's.
pub fn glance(pid: Pid) -> Reading<u64> {
    parse(&Entry::link_of(pid, "ns/pid")?).ok_or(ReadError::Malformed("ns/pid"))
}

/// The number in `pid:[4026531836]`.
pub fn parse(text: &[u8]) -> Option<u64> {
    let inner = text.strip_suffix(b"]")?;
    let start = inner.windows(2).position(|w| w == b":[")? + 2;
    super::status::decimal(&inner[start..])
}
