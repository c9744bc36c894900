//! The file side of a policy while it is being put together, and how it is put in order.

use super::ResolveError;
use crate::base::AbsPath;
use crate::policy::explain::escaped;
use crate::policy::frozen::{Access, Bind, FileKind, Link, Made, Note, Origin, Topic};
use crate::policy::host::{Host, HostKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// A path that must not be readable, canonical.
pub(super) struct Deny {
    pub path: AbsPath,
    pub present: bool,
    /// How many names the file has.
    pub names: u64,
    pub origin: Origin,
}

/// Binds, links and made things in the order in which they were written.
#[derive(Default)]
pub(super) struct Draft {
    pub binds: Vec<Bind>,
    pub links: Vec<Link>,
    pub made: Vec<Made>,
    pub masked: Vec<AbsPath>,
    /// Read-only grants inside a writable one: they become protected paths.
    pub narrowed: Vec<(AbsPath, FileKind, Origin)>,
    /// Host folders that the caller makes before the launch.
    pub created: Vec<AbsPath>,
    pub notes: Vec<Note>,
}

/// What stands directly around a path inside.
enum Around<'a> {
    Bind(&'a Bind),
    Made,
    Nothing,
}

impl Draft {
    pub fn note(&mut self, topic: Topic, subject: impl std::fmt::Display, text: &str, origin: &Origin) {
        let (subject, text) = (escaped(&subject), text.to_owned());
        self.notes.push(Note {
            topic,
            subject,
            text,
            origin: origin.clone(),
        });
    }

    /// Adds a bind at the same path inside.
    pub fn bind(&mut self, path: AbsPath, kind: FileKind, access: Access, origin: Origin) {
        self.binds.push(Bind {
            source: path.clone(),
            target: path,
            access,
            kind,
            origin,
        });
    }

    /// Puts everything in order: denies first, then no target twice, nothing redundant, nothing made on the host.
    pub fn tidy(&mut self, denies: &[Deny], host: &dyn Host) -> Result<(), ResolveError> {
        for deny in denies {
            self.deny(deny)?;
        }
        self.join_made();
        self.join_binds()?;
        self.drop_redundant();
        self.check_mount_points(host)?;
        self.keep_links();
        self.masked.sort();
        self.masked.dedup();
        Ok(())
    }

    fn deny(&mut self, deny: &Deny) -> Result<(), ResolveError> {
        let mut kept = Vec::new();
        let mut masks = Vec::new();
        for bind in std::mem::take(&mut self.binds) {
            if bind.source.is_within(&deny.path) || bind.target.is_within(&deny.path) {
                if matches!(bind.origin.source.as_str(), "command line" | "workspace") {
                    let (path, origin) = (bind.source.as_path().to_owned(), bind.origin);
                    return Err(ResolveError::Denied {
                        path,
                        denied_by: Box::new(deny.origin.clone()),
                        origin,
                    });
                }
                self.note(
                    Topic::LeftOut,
                    &bind.target,
                    &format!("denied by {}", deny.origin.key),
                    &bind.origin,
                );
                continue;
            }
            if let Some(inside) = moved(&deny.path, &bind.source, &bind.target) {
                masks.push(inside);
            }
            kept.push(bind);
        }
        self.binds = kept;
        match (masks.is_empty(), deny.present) {
            (false, true) => {
                for mask in &masks {
                    self.note(Topic::Mask, mask, "", &deny.origin);
                    if deny.names > 1 {
                        let others = format!(
                            "denied, but the file has {} names (hard links): one in a granted folder can still be read",
                            deny.names
                        );
                        self.note(Topic::Warning, mask, &others, &deny.origin);
                    }
                }
                self.masked.append(&mut masks);
            }
            (false, false) => self.note(
                Topic::LeftOut,
                &deny.path,
                "not there, so nothing is covered: what appears there later can be read",
                &deny.origin,
            ),
            (true, _) => {}
        }
        Ok(())
    }

    /// One made thing a path: the last one written, which is the most derived profile's.
    fn join_made(&mut self) {
        let by_path: BTreeMap<AbsPath, Made> = self.made.drain(..).map(|made| (made.at.clone(), made)).collect();
        self.made = by_path.into_values().collect();
    }

    fn join_binds(&mut self) -> Result<(), ResolveError> {
        let mut by_target: BTreeMap<AbsPath, Bind> = BTreeMap::new();
        let occupied = |path: &AbsPath, first: &Origin, second: &Origin| ResolveError::Occupied {
            path: path.as_path().to_owned(),
            first: Box::new(first.clone()),
            second: Box::new(second.clone()),
        };
        for bind in self.binds.drain(..) {
            match by_target.get_mut(&bind.target) {
                None => {
                    by_target.insert(bind.target.clone(), bind);
                }
                Some(before) if before.source != bind.source => {
                    return Err(occupied(&bind.target, &before.origin, &bind.origin));
                }
                Some(before) if bind.access > before.access => *before = bind,
                Some(_) => {}
            }
        }
        if let Some(made) = self.made.iter().find(|made| by_target.contains_key(&made.at)) {
            return Err(occupied(&made.at, &made.origin, &by_target[&made.at].origin));
        }
        self.binds = by_target.into_values().collect();
        Ok(())
    }

    /// Leaves out what the bind around it gives already. What is read-only inside a writable bind becomes protected,
    /// unless something writable lies in it.
    fn drop_redundant(&mut self) {
        let mut kept = Vec::new();
        let mut narrowed = Vec::new();
        let index = self.index();
        for bind in &self.binds {
            let same_tree = match index.around(&bind.target) {
                Around::Bind(outer) => moved_to_source(&bind.target, outer)
                    .filter(|at| *at == bind.source)
                    .map(|_| outer),
                Around::Made | Around::Nothing => None,
            };
            let writable_below = || {
                self.binds.iter().any(|b| {
                    b.access == Access::ReadWrite && b.target != bind.target && b.target.is_within(&bind.target)
                })
            };
            match same_tree {
                _ if bind.kind == FileKind::Socket => kept.push(bind.clone()),
                Some(outer) if outer.access == bind.access => {}
                Some(outer)
                    if bind.access == Access::Read && outer.access == Access::ReadWrite && !writable_below() =>
                {
                    narrowed.push((bind.target.clone(), bind.kind, bind.origin.clone()));
                }
                _ => kept.push(bind.clone()),
            }
        }
        self.binds = kept;
        self.narrowed = narrowed;
    }

    /// Inside a bind nothing is made: what is mounted there must stand on the host already, and be no link.
    fn check_mount_points(&self, host: &dyn Host) -> Result<(), ResolveError> {
        let binds = self
            .binds
            .iter()
            .map(|bind| (&bind.target, bind.kind == FileKind::Dir, &bind.origin));
        let made = self
            .made
            .iter()
            .map(|made| (&made.at, made.content.is_folder(), &made.origin));
        let index = self.index();
        for (target, folder, origin) in binds.chain(made) {
            let Around::Bind(outer) = index.around(target) else {
                continue;
            };
            let Some(point) = moved_to_source(target, outer) else {
                continue;
            };
            let fits = match host.kind(&point) {
                Ok(HostKind::Dir) => folder,
                Ok(HostKind::Link) => false,
                Ok(_) => !folder,
                // The caller makes mount points in the folders that it makes (`preparations`).
                Err(_) => self.created.iter().any(|made| point.is_within(made)),
            };
            if !fits {
                return Err(ResolveError::Ghost {
                    path: point.as_path().to_owned(),
                    origin: origin.clone(),
                });
            }
        }
        Ok(())
    }

    /// Links are made only where nothing of the host shows; a bind brings its own.
    fn keep_links(&mut self) {
        let links: BTreeMap<AbsPath, Link> = self.links.drain(..).map(|link| (link.at.clone(), link)).collect();
        let index = self.index();
        let free = |link: &Link| {
            !matches!(index.around(&link.at), Around::Bind(_)) && !index.binds.contains_key(link.at.as_path())
        };
        self.links = links.into_values().filter(free).collect();
    }

    fn index(&self) -> Index<'_> {
        Index {
            binds: self.binds.iter().map(|bind| (bind.target.as_path(), bind)).collect(),
            made: self.made.iter().map(|made| made.at.as_path()).collect(),
        }
    }
}

/// Everything by its place inside, so that thousands of grants stay quick.
struct Index<'a> {
    binds: HashMap<&'a Path, &'a Bind>,
    made: HashSet<&'a Path>,
}

impl<'a> Index<'a> {
    /// The nearest thing that strictly contains the path inside.
    fn around(&self, path: &AbsPath) -> Around<'a> {
        for above in path.as_path().ancestors().skip(1) {
            if self.made.contains(above) {
                return Around::Made;
            }
            if let Some(bind) = self.binds.get(above) {
                return Around::Bind(bind);
            }
        }
        Around::Nothing
    }
}

/// Where `path` shows inside when `source` shows at `target`; nothing if it is not strictly below `source`.
fn moved(path: &AbsPath, source: &AbsPath, target: &AbsPath) -> Option<AbsPath> {
    let rest = path
        .as_path()
        .strip_prefix(source)
        .ok()
        .filter(|rest| !rest.as_os_str().is_empty())?;
    AbsPath::new(target.as_path().join(rest)).ok()
}

fn moved_to_source(path: &AbsPath, bind: &Bind) -> Option<AbsPath> {
    moved(path, &bind.target, &bind.source)
}
