//! An in-memory host for tests.

use super::host::{Host, HostKind};
use crate::base::AbsPath;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
enum Node {
    Dir,
    File(Vec<u8>),
    Link(PathBuf),
    Socket,
    Closed,
}

/// A tree of paths, an environment, and a home folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryHost {
    nodes: BTreeMap<PathBuf, Node>,
    home: Option<PathBuf>,
    names: BTreeMap<PathBuf, u64>,
    environment: Vec<(OsString, OsString)>,
}

impl MemoryHost {
    /// A small Debian with a user `ann`: merged /usr, resolv.conf behind a link, a project under her home.
    pub(crate) fn debian() -> MemoryHost {
        let mut host = MemoryHost::default();
        for dir in [
            "/usr/bin",
            "/usr/lib",
            "/usr/sbin",
            "/usr/share/zoneinfo/Etc",
            "/etc/ssl/certs",
            "/etc/alternatives",
        ] {
            host = host.dir(dir);
        }
        for (at, to) in [("/bin", "usr/bin"), ("/lib", "usr/lib"), ("/sbin", "usr/sbin")] {
            host = host.link(at, to);
        }
        host.file("/usr/bin/sh", "")
            .file("/usr/share/zoneinfo/Etc/UTC", "")
            .link("/etc/localtime", "/usr/share/zoneinfo/Etc/UTC")
            .file("/etc/passwd", "")
            .file("/etc/shadow", "secret")
            .file("/run/systemd/resolve/stub-resolv.conf", "")
            .link("/etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf")
            .dir("/tmp")
            .dir("/dev")
            .dir("/proc")
            .file("/home/ann/.ssh/id_ed25519", "secret")
            .file("/home/ann/p/.git/config", "[core]\n\tbare = false\n")
            .dir("/home/ann/p/.git/hooks")
            .file("/home/ann/p/src/main.rs", "")
            .home("/home/ann")
            .env("HOME", "/home/ann")
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
    }
    pub(crate) fn dir(mut self, path: &str) -> Self {
        self.put(path, Node::Dir);
        self
    }
    pub(crate) fn file(mut self, path: &str, content: &str) -> Self {
        self.put(path, Node::File(content.as_bytes().to_vec()));
        self
    }
    pub(crate) fn link(mut self, path: &str, to: &str) -> Self {
        self.put(path, Node::Link(PathBuf::from(to)));
        self
    }
    pub(crate) fn socket(mut self, path: &str) -> Self {
        self.put(path, Node::Socket);
        self
    }
    /// A folder that may not be listed or entered.
    pub(crate) fn closed(mut self, path: &str) -> Self {
        self.put(path, Node::Closed);
        self
    }
    /// A file that has this many names.
    pub(crate) fn named(mut self, path: &str, names: u64) -> Self {
        self.names.insert(PathBuf::from(path), names);
        self
    }
    pub(crate) fn without(mut self, path: &str) -> Self {
        self.nodes.retain(|at, _| !at.starts_with(path));
        self
    }
    pub(crate) fn home(mut self, path: &str) -> Self {
        self.home = Some(PathBuf::from(path));
        self
    }
    pub(crate) fn homeless(mut self) -> Self {
        self.home = None;
        self
    }
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    fn put(&mut self, path: &str, node: Node) {
        let path = Path::new(path);
        for above in path.ancestors().skip(1) {
            self.nodes.entry(above.to_owned()).or_insert(Node::Dir);
        }
        self.nodes.insert(path.to_owned(), node);
    }
    fn node(&self, path: &AbsPath) -> io::Result<&Node> {
        let closed = |above: &Path| matches!(self.nodes.get(above), Some(Node::Closed));
        if path.as_path().ancestors().skip(1).any(closed) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        self.nodes
            .get(path.as_path())
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl Host for MemoryHost {
    fn kind(&self, path: &AbsPath) -> io::Result<HostKind> {
        Ok(match self.node(path)? {
            Node::Dir | Node::Closed => HostKind::Dir,
            Node::File(_) => HostKind::File,
            Node::Link(_) => HostKind::Link,
            Node::Socket => HostKind::Socket,
        })
    }
    fn read_link(&self, path: &AbsPath) -> io::Result<PathBuf> {
        match self.node(path)? {
            Node::Link(to) => Ok(to.clone()),
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }
    fn list(&self, path: &AbsPath) -> io::Result<Vec<OsString>> {
        match self.node(path)? {
            Node::Dir => Ok(self
                .nodes
                .keys()
                .filter(|at| at.parent() == Some(path.as_path()))
                .filter_map(|at| at.file_name().map(OsString::from))
                .collect()),
            Node::Closed => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }
    fn read_small(&self, path: &AbsPath, _limit: u64) -> io::Result<Vec<u8>> {
        match self.node(path)? {
            Node::File(bytes) => Ok(bytes.clone()),
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }
    fn name_count(&self, path: &AbsPath) -> io::Result<u64> {
        self.node(path)?;
        Ok(self.names.get(path.as_path()).copied().unwrap_or(1))
    }
    fn uid(&self) -> u32 {
        1000
    }
    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }
    fn environment(&self) -> Vec<(OsString, OsString)> {
        self.environment.clone()
    }
}
