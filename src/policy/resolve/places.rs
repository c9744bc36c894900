//! Written paths to binds, links and made things.

use super::breadth::Breadth;
use super::draft::{Deny, Draft};
use super::variables::Variables;
use super::{Request, ResolveError};
use crate::base::AbsPath;
use crate::policy::frozen::{Access, Content, FileKind, Origin, Topic};
use crate::policy::glob::{expand, is_deep, is_pattern};
use crate::policy::host::{Host, HostKind};
use crate::policy::profile::{Entry, Grant, Profile, Shape, Sockets};
use crate::policy::walk::{Walked, walk};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of a private folder, or of what is written over caches, when no profile names a size.
pub(super) const SCRATCH: u64 = 1 << 30;

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
        for cache in &profile.caches {
            self.cache(cache)?;
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
            let origin = Origin::command_line(&grant.flag);
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

    /// The profile's denies, canonical. A variable without a value, on a path that need not be there, denies nothing.
    pub fn denies(&mut self, profile: &Profile) -> Result<Vec<Deny>, ResolveError> {
        let mut denies = Vec::new();
        for entry in &profile.deny {
            let path = self.variables.expand(&entry.text, &entry.origin)?;
            if !is_pattern(&path) {
                denies.push(self.deny(&path, entry)?);
                continue;
            }
            if is_deep(&path) {
                let origin = Box::new(entry.origin.clone());
                return Err(ResolveError::DeepDeny { pattern: path, origin });
            }
            let found = self.expand(&path, &entry.origin)?;
            let text = format!("fits {} paths now; what appears later is not covered", found.len());
            self.draft.note(Topic::Differs, path.display(), &text, &entry.origin);
            for path in found {
                denies.push(self.deny(&path, entry)?);
            }
        }
        Ok(denies)
    }

    fn deny(&self, path: &Path, entry: &Entry) -> Result<Deny, ResolveError> {
        let walked = self.walk(path, &entry.origin)?;
        let names = match walked.kind {
            Some(HostKind::File) => self.host.name_count(&walked.path).unwrap_or(1),
            _ => 1,
        };
        Ok(Deny {
            path: walked.path,
            present: walked.kind.is_some(),
            names,
            origin: entry.origin.clone(),
        })
    }

    fn expand(&self, pattern: &Path, origin: &Origin) -> Result<Vec<PathBuf>, ResolveError> {
        expand(pattern, self.host).map_err(|error| ResolveError::Pattern {
            pattern: pattern.to_owned(),
            reason: error.to_string(),
            origin: Box::new(origin.clone()),
        })
    }

    pub(super) fn walk(&self, path: &Path, origin: &Origin) -> Result<Walked, ResolveError> {
        walk(path, self.host).map_err(|error| ResolveError::walk(path.to_owned(), error, origin.clone()))
    }

    fn entry(&mut self, entry: &Entry, access: Access, shape: Shape, absence: Absence) -> Result<(), ResolveError> {
        let absence = if entry.optional { Absence::Silent } else { absence };
        let path = match self.variables.expand(&entry.text, &entry.origin) {
            Err(ResolveError::Variable { .. } | ResolveError::NoHome) if absence == Absence::Silent => return Ok(()),
            // A session without a runtime folder has nothing in it.
            Err(ResolveError::Variable { name, .. }) if name == "XDG_RUNTIME_DIR" => {
                self.draft.note(
                    Topic::LeftOut,
                    &entry.text,
                    "there is no $XDG_RUNTIME_DIR",
                    &entry.origin,
                );
                return Ok(());
            }
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

    /// A path, or every path that a pattern fits now.
    fn grant(&mut self, wish: Wish<'_>) -> Result<(), ResolveError> {
        if !is_pattern(&wish.path) {
            return self.grant_one(wish);
        }
        let found = self.expand(&wish.path, wish.origin)?;
        if found.is_empty() {
            return self.absent(&wish);
        }
        for path in found {
            match self.grant_one(Wish { path, ..wish }) {
                // A socket or a pipe beside what was meant.
                Err(ResolveError::Shape { path, found, .. }) => {
                    self.draft
                        .note(Topic::LeftOut, path.display(), &format!("it is {found}"), wish.origin);
                }
                granted => granted?,
            }
        }
        Ok(())
    }

    fn grant_one(&mut self, wish: Wish<'_>) -> Result<(), ResolveError> {
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
            return self.absent(&wish);
        };
        let kind = fit(kind, wish.shape).map_err(|(found, wanted)| {
            let origin = Box::new(origin());
            ResolveError::Shape {
                path,
                found,
                wanted,
                origin,
            }
        })?;
        self.draft.links.extend(walked.links);
        self.draft.bind(walked.path, kind, wish.access, origin());
        Ok(())
    }

    fn absent(&mut self, wish: &Wish<'_>) -> Result<(), ResolveError> {
        match wish.absence {
            Absence::Fails => {
                let (path, origin) = (wish.path.clone(), wish.origin.clone());
                return Err(ResolveError::Missing { path, origin });
            }
            Absence::Noted => self
                .draft
                .note(Topic::LeftOut, wish.path.display(), "does not exist", wish.origin),
            Absence::Silent => {}
        }
        Ok(())
    }

    fn sockets(&mut self, which: Sockets, entry: &Entry) -> Result<(), ResolveError> {
        let path = match self.variables.expand(&entry.text, &entry.origin) {
            Err(ResolveError::Variable { .. } | ResolveError::NoHome) if entry.optional => return Ok(()),
            path => path?,
        };
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

    pub(super) fn names(&self, folder: &AbsPath, origin: &Origin) -> Result<Vec<OsString>, ResolveError> {
        self.host.list(folder).map_err(|source| ResolveError::Walk {
            path: folder.as_path().to_owned(),
            permission: source.kind() == std::io::ErrorKind::PermissionDenied,
            text: source.to_string(),
            origin: Box::new(origin.clone()),
        })
    }
}

/// What a granted path is, or what it is and what it should be.
fn fit(kind: HostKind, shape: Shape) -> Result<FileKind, (&'static str, &'static str)> {
    match (kind, shape) {
        (HostKind::Dir, Shape::Any) => Ok(FileKind::Dir),
        (HostKind::Dir, Shape::File) => Err(("a folder", "a file")),
        (HostKind::File, _) => Ok(FileKind::File),
        (HostKind::Socket, _) => Err(("a socket", "a file or folder: grant it with filesystem.unix_socket")),
        (HostKind::Device, _) => Err(("a device", "a file or folder")),
        (HostKind::Link | HostKind::Other, _) => Err(("a pipe or something stranger", "a file or folder")),
    }
}
