//! The socket tables of one network namespace, read through one of its processes.

use super::status::decimal;
use super::{Entry, ReadError, Reading};
use procfs::net::{TcpNetEntries, TcpState, UdpNetEntries};
use procfs::{FromReadSI as _, ProcResult};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// One TCP or UDP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub inode: u64,
}

/// Everything about a network namespace that the checks look at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tables {
    pub interfaces: Vec<Vec<u8>>,
    pub listeners: Vec<Socket>,
    /// TCP sockets with a peer, those that are closing included.
    pub connections: Vec<Socket>,
    pub udp: Vec<Socket>,
    /// Inodes of all sockets listed. A Unix socket's path may forge a line, so being listed proves nothing good.
    pub inodes: BTreeSet<u64>,
    /// Kinds of socket that should not exist at all (`raw`, `packet`, …) with their number.
    pub forbidden: Vec<(&'static str, usize)>,
}

impl Tables {
    /// The sockets with these inodes alone, as if nothing else were in the network.
    pub fn of(&self, inodes: &BTreeSet<u64>) -> Tables {
        let own = |sockets: &[Socket]| -> Vec<Socket> {
            let own = sockets.iter().filter(|socket| inodes.contains(&socket.inode));
            own.cloned().collect()
        };
        Tables {
            listeners: own(&self.listeners),
            connections: own(&self.connections),
            udp: own(&self.udp),
            inodes: self.inodes.intersection(inodes).copied().collect(),
            ..Tables::default()
        }
    }

    /// The interfaces alone: enough where no process of the sandbox holds a socket. The kernel walks the hash tables of
    /// the whole machine for each of the others, which takes milliseconds.
    pub fn interfaces(entry: &Entry) -> Reading<Tables> {
        Ok(Tables {
            interfaces: interfaces(&entry.read("net/dev")?),
            ..Tables::default()
        })
    }

    /// Reads them all; absent tables (a protocol that this kernel lacks) are empty.
    pub fn read(entry: &Entry) -> Reading<Tables> {
        let mut tables = Tables::interfaces(entry)?;
        for name in ["net/tcp", "net/tcp6"] {
            tables
                .add_tcp(&optional(entry, name)?)
                .map_err(|_| ReadError::Malformed(name))?;
        }
        for name in ["net/udp", "net/udp6"] {
            tables
                .add_udp(&optional(entry, name)?)
                .map_err(|_| ReadError::Malformed(name))?;
        }
        let internet = tables
            .listeners
            .iter()
            .chain(&tables.connections)
            .chain(&tables.udp)
            .map(|s| s.inode);
        tables.inodes = internet.filter(|inode| *inode != 0).collect();
        for (name, column) in [("net/unix", 6), ("net/netlink", 9), ("net/packet", 8)] {
            tables.inodes.extend(inodes(&optional(entry, name)?, column));
        }
        for name in [
            "net/raw",
            "net/raw6",
            "net/icmp",
            "net/icmp6",
            "net/packet",
            "net/udplite",
            "net/udplite6",
        ] {
            let sockets = rows(&optional(entry, name)?).count();
            if sockets > 0 {
                tables.forbidden.push((name, sockets));
            }
        }
        Ok(tables)
    }

    fn add_tcp(&mut self, bytes: &[u8]) -> ProcResult<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        for entry in TcpNetEntries::from_read(bytes, procfs::current_system_info())?.0 {
            let socket = Socket {
                local: entry.local_address,
                remote: entry.remote_address,
                inode: entry.inode,
            };
            match entry.state {
                TcpState::Listen => self.listeners.push(socket),
                _ if socket.remote.port() != 0 => self.connections.push(socket),
                _ => {}
            }
        }
        Ok(())
    }

    fn add_udp(&mut self, bytes: &[u8]) -> ProcResult<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let entries = UdpNetEntries::from_read(bytes, procfs::current_system_info())?.0;
        self.udp.extend(entries.into_iter().map(|e| Socket {
            local: e.local_address,
            remote: e.remote_address,
            inode: e.inode,
        }));
        Ok(())
    }
}

fn optional(entry: &Entry, name: &'static str) -> Reading<Vec<u8>> {
    match entry.read(name) {
        Err(ReadError::Ended) if !entry.has_ended() => Ok(Vec::new()),
        other => other,
    }
}

/// The lines after the heading.
fn rows(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|b| *b == b'\n').skip(1).filter(|line| !line.is_empty())
}

/// The numbers in one column of a table, counted from 0. A socket's path with a newline in it splits a line of
/// `net/unix`; such remains are passed over.
pub fn inodes(bytes: &[u8], column: usize) -> BTreeSet<u64> {
    rows(bytes)
        .filter_map(|line| {
            line.split(u8::is_ascii_whitespace)
                .filter(|w| !w.is_empty())
                .nth(column)
        })
        .filter_map(decimal)
        .collect()
}

/// The names in `net/dev`, as bytes.
pub fn interfaces(bytes: &[u8]) -> Vec<Vec<u8>> {
    let lines = bytes.split(|b| *b == b'\n').skip(2);
    let names = lines.filter_map(|line| line.iter().rposition(|b| *b == b':').map(|colon| &line[..colon]));
    names.map(|name| name.trim_ascii().to_vec()).collect()
}
