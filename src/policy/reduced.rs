//! The policy of a launch that has no namespaces, from that of one that has: the same grants at the same places, enforced
//! by Landlock, seccomp and the mediator alone. Pure.
//!
//! A mount can cover what lies below a granted folder, and Landlock cannot: its rights add up on the way down. So a grant
//! is split around what must stay closed. What was private memory becomes a folder in the launch's room on disk.

use super::frozen::{Access, Bind, Content, FileKind, Made, Origin, Policy, Promise};
use super::host::Host;
use super::split::{Absent, Piece, Reach, SplitError, split};
use crate::base::AbsPath;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What must stand in the room before the command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Furniture {
    Folder(AbsPath),
    /// A granted path, at the place where the private home would have shown it.
    Link {
        at: AbsPath,
        to: PathBuf,
    },
    /// A file with nothing in it.
    File(AbsPath),
}

/// A reduced policy and what its room must hold, parents first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reduced {
    pub policy: Policy,
    pub furniture: Vec<Furniture>,
}

/// Why a policy cannot do without namespaces.
#[derive(Debug, thiserror::Error)]
pub enum ReduceError {
    #[error("{0} would have to show something else than the machine's own, which takes a mount")]
    Moved(AbsPath),
    #[error(transparent)]
    Split(#[from] SplitError),
}

/// What a kernel without namespaces cannot hold, with the reason; `abi` is Landlock's.
pub fn lost(abi: u32) -> Vec<(Promise, &'static str)> {
    let mut lost = Vec::new();
    match abi {
        0 => lost.push((
            Promise::Files,
            "there is no Landlock either, without which no launch starts",
        )),
        1 | 2 => lost.push((
            Promise::Files,
            "this kernel's Landlock lets every file be cut short (truncate)",
        )),
        _ => {}
    }
    lost.push((
        Promise::Processes,
        "without a process id namespace your other processes can be seen in /proc",
    ));
    if abi < 6 {
        lost.push((
            Promise::Processes,
            "this kernel's Landlock lets your other processes be sent signals",
        ));
    }
    lost
}

/// The policy for a launch whose private folders stand in `room`.
pub fn reduce(policy: &Policy, room: &AbsPath, host: &dyn Host) -> Result<Reduced, ReduceError> {
    let rooms = Rooms::new(policy, room);
    let mut furniture = BTreeMap::new();
    for made in &policy.made {
        let at = rooms
            .place(&made.at)
            .ok_or_else(|| ReduceError::Moved(made.at.clone()))?;
        let piece = match made.content {
            Content::Scratch { .. } | Content::Sealed => Furniture::Folder(at.clone()),
            Content::File(_) => Furniture::File(at.clone()),
        };
        furniture.insert(at, piece);
    }
    let mut grants = Vec::new();
    for bind in &policy.binds {
        match rooms.place(&bind.target) {
            Some(at) => drop(furniture.insert(at.clone(), stand_in(bind, at))),
            None if bind.source != bind.target => return Err(ReduceError::Moved(bind.target.clone())),
            None => {}
        }
        grants.push(Bind {
            target: bind.source.clone(),
            access: match bind.access {
                Access::Layered => Access::Read,
                access => access,
            },
            ..bind.clone()
        });
    }
    let mut grants = around(policy, grants, host)?;
    for made in &rooms.scratch {
        grants.push(rooms.grant(made).map_err(|_| ReduceError::Moved(made.at.clone()))?);
    }
    grants.sort_by(|a, b| a.target.cmp(&b.target));
    let mut reduced = Policy {
        room: Some(room.clone()),
        workdir: rooms
            .unless_shown(&policy.workdir)
            .unwrap_or_else(|| policy.workdir.clone()),
        binds: grants,
        links: Vec::new(),
        made: Vec::new(),
        masked: Vec::new(),
        ..policy.clone()
    };
    rooms.environment(&mut reduced.environment.0);
    Ok(Reduced {
        policy: reduced,
        furniture: furniture.into_values().collect(),
    })
}

/// What stands in the room for a grant whose place is there.
fn stand_in(bind: &Bind, at: AbsPath) -> Furniture {
    match bind.access {
        // Without a mount nothing can lie over the host's cache: tools begin with one of their own.
        Access::Layered => Furniture::Folder(at),
        _ => Furniture::Link {
            at,
            to: bind.source.as_path().to_owned(),
        },
    }
}

/// The grants around what is masked, what is protected unless that was given up, and what is granted for less.
fn around(policy: &Policy, grants: Vec<Bind>, host: &dyn Host) -> Result<Vec<Bind>, SplitError> {
    let given_up = policy.weakened.contains(&Promise::Protected);
    let policy = Policy {
        binds: grants,
        protected: if given_up { Vec::new() } else { policy.protected.clone() },
        ..policy.clone()
    };
    // What is absent is watched for in this mode as in the other.
    let pieces = split(&policy, Absent::Reported, host)?;
    let of = |piece: Piece| {
        let within = policy.binds.iter().filter(|bind| piece.path.is_within(&bind.source));
        let whole = within.max_by_key(|bind| &bind.source)?;
        Some(Bind {
            source: piece.path.clone(),
            target: piece.path,
            access: match piece.reach {
                Reach::List => Access::List,
                Reach::Read => Access::Read,
                Reach::ReadWrite => Access::ReadWrite,
            },
            kind: kind_of(whole.kind, piece.kind),
            origin: whole.origin.clone(),
        })
    };
    Ok(pieces.into_iter().filter_map(of).collect())
}

/// A socket is granted by its own name only: one that lies in a granted folder is a file of it like any other.
fn kind_of(granted: FileKind, found: FileKind) -> FileKind {
    match (granted, found) {
        (FileKind::Socket, _) => FileKind::Socket,
        (_, FileKind::Socket) => FileKind::File,
        (_, found) => found,
    }
}

/// Where private folders have their place in the room.
struct Rooms<'a> {
    room: &'a AbsPath,
    scratch: Vec<&'a Made>,
    binds: &'a [Bind],
}

impl<'a> Rooms<'a> {
    fn new(policy: &'a Policy, room: &'a AbsPath) -> Rooms<'a> {
        let scratch = policy
            .made
            .iter()
            .filter(|made| matches!(made.content, Content::Scratch { .. }));
        let mut outermost: Vec<&Made> = Vec::new();
        for made in scratch {
            if !outermost.iter().any(|above| made.at.is_within(&above.at)) {
                outermost.push(made);
            }
        }
        Rooms {
            room,
            scratch: outermost,
            binds: &policy.binds,
        }
    }

    /// The place in the room of a path that is private in full mode.
    fn place(&self, path: &AbsPath) -> Option<AbsPath> {
        self.scratch
            .iter()
            .any(|made| path.is_within(&made.at))
            .then(|| AbsPath::new(self.room.as_path().join(path.below_root())).ok())
            .flatten()
    }

    fn grant(&self, made: &Made) -> Result<Bind, crate::base::PathError> {
        let at = AbsPath::new(self.room.as_path().join(made.at.below_root()))?;
        Ok(Bind {
            source: at.clone(),
            target: at,
            access: Access::ReadWrite,
            kind: FileKind::Dir,
            origin: Origin::built_in("room", "stands in for a private folder in memory"),
        })
    }

    /// The same, but for what the policy shows at its own place below a private folder.
    fn unless_shown(&self, path: &AbsPath) -> Option<AbsPath> {
        let shows = |bind: &Bind| bind.source == bind.target && path.is_within(&bind.target);
        match self.binds.iter().any(shows) {
            true => None,
            false => self.place(path),
        }
    }

    /// Variables that name a private folder name its place in the room; programs find temporary files by TMPDIR.
    fn environment(&self, variables: &mut BTreeMap<OsString, OsString>) {
        for value in variables.values_mut() {
            let path = AbsPath::new(&*value).ok();
            if let Some(place) = path.and_then(|path| self.unless_shown(&path)) {
                *value = place.as_path().into();
            }
        }
        let tmp = AbsPath::new(Path::new("/tmp")).ok().and_then(|tmp| self.place(&tmp));
        if let Some(tmp) = tmp {
            variables.entry("TMPDIR".into()).or_insert_with(|| tmp.as_path().into());
        }
    }
}

#[cfg(test)]
mod tests;
