//! Grants around what is denied or protected in them, for a wall that knows grants and nothing else (Landlock without
//! mounts): there a right on a folder is a right on all that is below it.
//!
//! A folder with something denied or protected below is not granted as a whole: its entries are, one by one, except those
//! on the way down, which are split in turn. What that costs: in a split folder nothing can be made, removed or renamed,
//! and where something is denied below it, only what stood there when the launch began can be reached. Names below a
//! folder that may be listed can be listed too, those of denied things with them; what is in these cannot be read.

use super::frozen::{Access, Bind, FileKind, Policy};
use super::host::{Host, HostKind};
use crate::base::AbsPath;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

/// Pieces of one policy: each is an open file and a rule.
const MOST: usize = 4096;

/// How far a piece reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The folder and those below it can be listed; no file of them can be read by it.
    List,
    Read,
    ReadWrite,
}

/// One grant that holds for all that is below its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// On the host, canonical.
    pub path: AbsPath,
    pub reach: Reach,
    pub kind: FileKind,
}

/// What becomes of a protected path that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// It cannot be made: the folder that it would stand in is split.
    Held,
    /// It can be made, as in full mode, and the guard outside does with it what it does there.
    Reported,
}

/// Why a policy cannot be split.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    #[error("a grant cannot be split around what is denied or protected in {folder:?}: more than {MOST} pieces")]
    Many { folder: AbsPath },
    #[error("a grant cannot be split around what is denied or protected in {folder:?}: {source}")]
    List { folder: AbsPath, source: io::Error },
}

/// What holds at one path below a grant, and further down.
#[derive(Debug, Default)]
struct Node {
    held: Option<Held>,
    below: BTreeMap<OsString, Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Held {
    /// May be read, not changed.
    Narrowed,
    /// May not even be read.
    Denied,
}

/// Every bind of the policy at its own path, split around what is denied and protected below it, sorted by path. Binds that
/// stand at another path inside are left out: without mounts there is no such thing.
pub fn split(policy: &Policy, absent: Absent, host: &dyn Host) -> Result<Vec<Piece>, SplitError> {
    let mut splitting = Splitting {
        host,
        pieces: Vec::new(),
    };
    for bind in policy.binds.iter().filter(|bind| bind.source == bind.target) {
        let node = special(policy, bind, absent);
        let kind = bind.kind;
        splitting.piece(&bind.source, kind, bind.access, &node)?;
    }
    splitting
        .pieces
        .sort_by(|a, b| (&a.path, a.reach).cmp(&(&b.path, b.reach)));
    splitting.pieces.dedup();
    Ok(splitting.pieces)
}

/// What is denied or narrowed below a bind, as a tree.
fn special(policy: &Policy, bind: &Bind, absent: Absent) -> Node {
    let mut root = Node::default();
    let denied = policy.masked.iter().map(|mask| (mask, Held::Denied));
    for (path, held) in denied {
        root.hold(path, bind, held);
    }
    if bind.access == Access::ReadWrite {
        let protected = policy.protected.iter().filter(|one| match one.kind {
            None => absent == Absent::Held,
            // A link is a name in its folder: to keep it, nothing may be made or removed there.
            Some(_) => true,
        });
        for one in protected {
            root.hold(&one.path, bind, Held::Narrowed);
        }
        let inner = policy
            .binds
            .iter()
            .filter(|inner| inner.access == Access::Read && inner.source == inner.target);
        for inner in inner.filter(|inner| inner.target != bind.target) {
            root.hold(&inner.target, bind, Held::Narrowed);
        }
    }
    root
}

impl Node {
    fn hold(&mut self, path: &AbsPath, bind: &Bind, held: Held) {
        let Ok(rest) = path.as_path().strip_prefix(&bind.target) else {
            return;
        };
        let mut at = self;
        for name in rest {
            at = at.below.entry(name.to_owned()).or_default();
        }
        at.held = at.held.max(Some(held));
    }

    /// Whether something at or below is denied.
    fn denies(&self) -> bool {
        self.held == Some(Held::Denied) || self.below.values().any(Node::denies)
    }

    /// Whether something at or below may be read and not changed.
    fn narrows(&self) -> bool {
        self.held == Some(Held::Narrowed) || self.below.values().any(Node::narrows)
    }
}

struct Splitting<'a> {
    host: &'a dyn Host,
    pieces: Vec<Piece>,
}

impl Splitting<'_> {
    fn piece(&mut self, path: &AbsPath, kind: FileKind, access: Access, node: &Node) -> Result<(), SplitError> {
        let access = match node.held {
            Some(Held::Denied) => return Ok(()),
            Some(Held::Narrowed) => Access::Read,
            None => access,
        };
        let narrows = access == Access::ReadWrite && node.below.values().any(Node::narrows);
        let denies = node.below.values().any(Node::denies);
        let whole = match access {
            Access::List => Reach::List,
            Access::Read | Access::Layered => Reach::Read,
            Access::ReadWrite => Reach::ReadWrite,
        };
        match (narrows, denies) {
            (false, false) => return self.keep(path, kind, whole),
            (true, false) => self.keep(path, kind, Reach::Read)?,
            (_, true) => self.keep(path, kind, Reach::List)?,
        }
        let names = self.host.list(path).map_err(|source| SplitError::List {
            folder: path.clone(),
            source,
        })?;
        let nothing = Node::default();
        for name in names {
            let Ok(at) = path.join(&name) else { continue };
            // A link needs no right of its own: what it leads to does.
            let kind = match self.host.kind(&at) {
                Ok(HostKind::Dir) => FileKind::Dir,
                Ok(HostKind::File | HostKind::Other) => FileKind::File,
                Ok(HostKind::Socket) => FileKind::Socket,
                Ok(HostKind::Device) => FileKind::Device,
                Ok(HostKind::Link) | Err(_) => continue,
            };
            self.piece(&at, kind, access, node.below.get(&name).unwrap_or(&nothing))?;
        }
        Ok(())
    }

    fn keep(&mut self, path: &AbsPath, kind: FileKind, reach: Reach) -> Result<(), SplitError> {
        if self.pieces.len() == MOST {
            return Err(SplitError::Many {
                folder: path.parent().unwrap_or_else(AbsPath::root),
            });
        }
        self.pieces.push(Piece {
            path: path.clone(),
            reach,
            kind,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
