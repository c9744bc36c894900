//! Written paths to binds, links and made things.

use super::breadth::Breadth;
use super::draft::{Deny, Draft};
use super::variables::Variables;
use super::{Request, ResolveError};
use crate::base::AbsPath;
use crate::policy::frozen::{Access, Bind, Content, FileKind, Made, Origin, Topic};
use crate::policy::host::{Host, HostKind};
use crate::policy::profile::{Entry, Grant, Mount, Mounted, Profile, Scratch, Shape, Sockets};
use crate::policy::walk::{Walked, walk};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of a scratch folder when no profile names a size.
const SCRATCH: u64 = 1 << 30;

/// What an absent path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absence {
    /// Asked for on the command line.
    Fails,
    /// Written in a profile that expects it.
    Noted,
    /// Written as optional.
    Silent,
}

/// One written path on its way into the draft.
struct Wish<'a> {
    path: PathBuf,
    access: Access,
    shape: Shape,
    absence: Absence,
    origin: &'a Origin,
}

/// Fills a draft from a profile and a request.
pub(super) struct Places<'a> {
    pub request: &'a Request,
    pub host: &'a dyn Host,
    pub variables: &'a Variables,
    pub breadth: &'a Breadth,
    pub draft: Draft,
}

impl Places<'_> {
    /// Everything of the profile and the command line but the workspace itself.
    pub fn fill(&mut self, profile: &Profile) -> Result<(), ResolveError> {
        for scratch in &profile.scratch {
            self.scratch(scratch, profile.scratch_size.unwrap_or(SCRATCH))?;
        }
        for mount in &profile.mounts {
            self.mount(mount)?;
        }
        for entry in &profile.system {
            match self.entry(entry, Access::Read, Shape::Any, Absence::Silent) {
                // A system user's home may lie in `/opt` or the like: then that is not shown, rather than nothing run.
                Err(ResolveError::TooBroad { path, reason, origin }) => {
                    self.draft.note(Topic::LeftOut, path.display(), &reason, &origin);
                }
                done => done?,
            }
        }
        for Grant { entry, access, shape } in &profile.grants {
            self.entry(entry, *access, *shape, Absence::Noted)?;
        }
        for (which, entry) in &profile.sockets {
            self.sockets(*which, entry)?;
        }
        for grant in &self.request.grants {
            let origin = Origin {
                source: "command line".to_owned(),
                key: grant.flag.clone(),
                why: None,
            };
            let path = self.request.workdir.join(&grant.path);
            self.grant(Wish {
                path,
                access: grant.access,
                shape: Shape::Any,
                absence: Absence::Fails,
                origin: &origin,
            })?;
        }
        Ok(())
    }

    /// The profile's denies, canonical.
    pub fn denies(&self, profile: &Profile) -> Result<Vec<Deny>, ResolveError> {
        let one = |entry: &Entry| {
            let path = self.variables.expand(&entry.text, &entry.origin)?;
            let walked = self.walk(&path, &entry.origin)?;
            Ok(Deny {
                path: walked.path,
                present: walked.kind.is_some(),
                origin: entry.origin.clone(),
            })
        };
        profile.deny.iter().map(one).collect()
    }

    fn walk(&self, path: &Path, origin: &Origin) -> Result<Walked, ResolveError> {
        walk(path, self.host).map_err(|error| ResolveError::walk(path.to_owned(), error, origin.clone()))
    }

    fn entry(&mut self, entry: &Entry, access: Access, shape: Shape, absence: Absence) -> Result<(), ResolveError> {
        let absence = if entry.optional { Absence::Silent } else { absence };
        let path = match self.variables.expand(&entry.text, &entry.origin) {
            Err(ResolveError::Variable { .. } | ResolveError::NoHome) if absence == Absence::Silent => return Ok(()),
            expanded => expanded?,
        };
        self.grant(Wish {
            path,
            access,
            shape,
            absence,
            origin: &entry.origin,
        })
    }

    fn grant(&mut self, wish: Wish<'_>) -> Result<(), ResolveError> {
        let origin = || wish.origin.clone();
        let walked = match self.walk(&wish.path, wish.origin) {
            Err(ResolveError::Walk { .. }) if wish.absence != Absence::Fails => {
                self.draft
                    .note(Topic::LeftOut, wish.path.display(), "cannot be looked at", wish.origin);
                return Ok(());
            }
            walked => walked?,
        };
        let path = walked.path.as_path().to_owned();
        let private = self
            .draft
            .made
            .iter()
            .find(|made| made.at == walked.path)
            .map(|made| &made.content);
        // A profile's `$TMPDIR` means the private one; a home folder stays refused.
        let temporary = matches!(private, Some(Content::Scratch { shared: true, .. }));
        if let Some(reason) = self.breadth.refusal(&walked.path, wish.access).filter(|_| !temporary) {
            return Err(ResolveError::TooBroad {
                path,
                reason,
                origin: origin(),
            });
        }
        if private.is_some() {
            if wish.absence == Absence::Fails {
                return Err(ResolveError::Private { path, origin: origin() });
            }
            self.draft.note(
                Topic::LeftOut,
                &walked.path,
                "something private stands there",
                wish.origin,
            );
            return Ok(());
        }
        let Some(kind) = walked.kind else {
            match wish.absence {
                Absence::Fails => {
                    return Err(ResolveError::Missing {
                        path: wish.path,
                        origin: origin(),
                    });
                }
                Absence::Noted => self
                    .draft
                    .note(Topic::LeftOut, wish.path.display(), "does not exist", wish.origin),
                Absence::Silent => {}
            }
            return Ok(());
        };
        let shape = |found, wanted| ResolveError::Shape {
            path,
            found,
            wanted,
            origin: Box::new(origin()),
        };
        let kind = match (kind, wish.shape) {
            (HostKind::Dir, Shape::Any) => FileKind::Dir,
            (HostKind::Dir, Shape::File) => return Err(shape("a folder", "a file")),
            (HostKind::File, _) => FileKind::File,
            (HostKind::Socket, _) => {
                return Err(shape(
                    "a socket",
                    "a file or folder: grant it with filesystem.unix_socket",
                ));
            }
            (HostKind::Device, _) => return Err(shape("a device", "a file or folder")),
            (HostKind::Link | HostKind::Other, _) => {
                return Err(shape("a pipe or something stranger", "a file or folder"));
            }
        };
        self.draft.links.extend(walked.links);
        self.draft.bind(walked.path, kind, wish.access, origin());
        Ok(())
    }

    fn sockets(&mut self, which: Sockets, entry: &Entry) -> Result<(), ResolveError> {
        let path = self.variables.expand(&entry.text, &entry.origin)?;
        let walked = self.walk(&path, &entry.origin)?;
        let shape = |found, wanted| {
            let path = walked.path.as_path().to_owned();
            Err(ResolveError::Shape {
                path,
                found,
                wanted,
                origin: Box::new(entry.origin.clone()),
            })
        };
        let found = match (which, walked.kind) {
            (_, None) => {
                if !entry.optional {
                    self.draft
                        .note(Topic::LeftOut, path.display(), "does not exist", &entry.origin);
                }
                return Ok(());
            }
            (Sockets::One, Some(HostKind::Socket)) => vec![walked.path.clone()],
            (Sockets::One, Some(_)) => return shape("no socket", "a socket"),
            (Sockets::Folder, Some(HostKind::Dir)) => self
                .names(&walked.path, &entry.origin)?
                .iter()
                .filter_map(|name| walked.path.join(name).ok())
                .filter(|at| matches!(self.host.kind(at), Ok(HostKind::Socket)))
                .collect(),
            (Sockets::Folder, Some(_)) => return shape("no folder", "a folder of sockets"),
        };
        self.draft.links.extend(walked.links);
        for socket in found {
            self.draft
                .bind(socket, FileKind::Socket, Access::ReadWrite, entry.origin.clone());
        }
        Ok(())
    }

    fn names(&self, folder: &AbsPath, origin: &Origin) -> Result<Vec<OsString>, ResolveError> {
        self.host.list(folder).map_err(|source| ResolveError::Walk {
            path: folder.as_path().to_owned(),
            permission: source.kind() == std::io::ErrorKind::PermissionDenied,
            text: source.to_string(),
            origin: Box::new(origin.clone()),
        })
    }

    /// The place inside: the host's links above it are followed, so that they can be made inside too.
    fn place(&mut self, entry: &Entry) -> Result<AbsPath, ResolveError> {
        let written = self.variables.expand(&entry.text, &entry.origin)?;
        let walked = self.walk(&written, &entry.origin)?;
        self.draft.links.extend(walked.links);
        Ok(walked.path)
    }

    fn scratch(&mut self, scratch: &Scratch, size: u64) -> Result<(), ResolveError> {
        let at = self.place(&scratch.at)?;
        let content = Content::Scratch {
            size: scratch.size.unwrap_or(size),
            shared: scratch.shared,
        };
        self.draft.made.push(Made {
            at,
            content,
            origin: scratch.at.origin.clone(),
        });
        Ok(())
    }

    fn mount(&mut self, mount: &Mount) -> Result<(), ResolveError> {
        let at = self.place(&mount.at)?;
        match &mount.mounted {
            Mounted::Path { from, access, create } => self.mount_path(mount, at, from, *access, *create),
            Mounted::Entries {
                of,
                only,
                except,
                empty_files,
            } => {
                let wanted = |name: &str| {
                    only.as_ref().is_none_or(|only| only.iter().any(|o| o == name)) && !except.iter().any(|e| e == name)
                };
                self.mount_entries(mount, &at, of, &wanted)?;
                let origin = &mount.at.origin;
                for name in empty_files {
                    let at = at
                        .join(name)
                        .map_err(|error| ResolveError::walk(PathBuf::from(name), error.into(), origin.clone()))?;
                    // An entry of the host goes before an empty file.
                    if !self.draft.binds.iter().any(|bind| bind.target == at) {
                        self.draft.made.push(Made {
                            at,
                            content: Content::File(Vec::new()),
                            origin: origin.clone(),
                        });
                    }
                }
                self.draft.made.push(Made {
                    at,
                    content: Content::Sealed,
                    origin: origin.clone(),
                });
                Ok(())
            }
        }
    }

    fn mount_path(
        &mut self,
        mount: &Mount,
        at: AbsPath,
        from: &str,
        access: Access,
        create: bool,
    ) -> Result<(), ResolveError> {
        let Entry { optional, origin, .. } = &mount.at;
        let from = self.variables.expand(from, origin)?;
        let walked = self.walk(&from, origin)?;
        let path = || walked.path.as_path().to_owned();
        if let Some(reason) = self.breadth.refusal(&walked.path, access) {
            return Err(ResolveError::TooBroad {
                path: path(),
                reason,
                origin: origin.clone(),
            });
        }
        let kind = match walked.kind {
            Some(HostKind::Dir) => FileKind::Dir,
            Some(HostKind::File) => FileKind::File,
            Some(_) => {
                let (found, wanted) = ("neither a file nor a folder", "a file or folder");
                return Err(ResolveError::Shape {
                    path: path(),
                    found,
                    wanted,
                    origin: Box::new(origin.clone()),
                });
            }
            None if create => FileKind::Dir,
            None if *optional => return Ok(()),
            None => {
                return Err(ResolveError::Missing {
                    path: from,
                    origin: origin.clone(),
                });
            }
        };
        if create {
            self.draft.created.push(walked.path.clone());
        }
        self.draft.binds.push(Bind {
            source: walked.path,
            target: at,
            access,
            kind,
            origin: origin.clone(),
        });
        Ok(())
    }

    fn mount_entries(
        &mut self,
        mount: &Mount,
        at: &AbsPath,
        of: &str,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), ResolveError> {
        let Entry { optional, origin, .. } = &mount.at;
        let written = self.variables.expand(of, origin)?;
        let folder = self.walk(&written, origin)?;
        match folder.kind {
            Some(HostKind::Dir) => {}
            None if *optional => return Ok(()),
            None => {
                return Err(ResolveError::Missing {
                    path: written,
                    origin: origin.clone(),
                });
            }
            Some(_) => {
                let (path, found, wanted) = (written, "no folder", "a folder");
                return Err(ResolveError::Shape {
                    path,
                    found,
                    wanted,
                    origin: Box::new(origin.clone()),
                });
            }
        }
        for name in self.names(&folder.path, origin)? {
            if !wanted(&name.to_string_lossy()) {
                continue;
            }
            let walked = self.walk(&folder.path.as_path().join(&name), origin)?;
            let kind = match walked.kind {
                Some(HostKind::Dir) => FileKind::Dir,
                Some(HostKind::File) => FileKind::File,
                // A dangling link, a socket or a pipe is nothing to read.
                _ => continue,
            };
            if let Some(reason) = self.breadth.refusal(&walked.path, Access::Read) {
                let path = walked.path.as_path().to_owned();
                return Err(ResolveError::TooBroad {
                    path,
                    reason,
                    origin: origin.clone(),
                });
            }
            let target = at
                .join(&name)
                .map_err(|error| ResolveError::walk(written.clone(), error.into(), origin.clone()))?;
            self.draft.binds.push(Bind {
                source: walked.path,
                target,
                access: Access::Read,
                kind,
                origin: origin.clone(),
            });
        }
        Ok(())
    }
}
