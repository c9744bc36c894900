//! Private folders, and host paths that stand at another place inside.

use super::ResolveError;
use super::places::Places;
use crate::base::AbsPath;
use crate::policy::frozen::{Access, Bind, Content, FileKind, Made, Topic};
use crate::policy::host::HostKind;
use crate::policy::profile::{Cache, Entry, Mount, Mounted, Scratch};
use std::path::PathBuf;

impl Places<'_> {
    /// The place inside: the host's links above it are followed, so that they can be made inside too.
    fn place(&mut self, entry: &Entry) -> Result<AbsPath, ResolveError> {
        let written = self.variables.expand(&entry.text, &entry.origin)?;
        let walked = self.walk(&written, &entry.origin)?;
        self.draft.links.extend(walked.links);
        Ok(walked.path)
    }

    pub(super) fn scratch(&mut self, scratch: &Scratch, size: u64) -> Result<(), ResolveError> {
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

    /// A cache that the host does not have is none: tools make one of their own in the private home.
    pub(super) fn cache(&mut self, cache: &Cache) -> Result<(), ResolveError> {
        let origin = &cache.at.origin;
        let written = match self
            .variables
            .expand(cache.from.as_ref().unwrap_or(&cache.at.text), origin)
        {
            Err(ResolveError::NoHome) => return Ok(()),
            written => written?,
        };
        let Ok(from) = self.walk(&written, origin) else {
            self.draft
                .note(Topic::LeftOut, written.display(), "cannot be looked at", origin);
            return Ok(());
        };
        if from.kind != Some(HostKind::Dir) {
            return Ok(());
        }
        // A cache that lies where nothing may be shown from is left out, rather than nothing run.
        if let Some(reason) = self.breadth.refusal(&from.path, Access::Layered) {
            self.draft.note(Topic::LeftOut, &from.path, &reason, origin);
            return Ok(());
        }
        let at = self.place(&cache.at)?;
        self.draft.binds.push(Bind {
            source: from.path,
            target: at,
            access: Access::Layered,
            kind: FileKind::Dir,
            origin: origin.clone(),
        });
        Ok(())
    }

    pub(super) fn mount(&mut self, mount: &Mount) -> Result<(), ResolveError> {
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

    /// The host folder whose entries are wanted; nothing if it is absent and may be.
    fn folder(&self, mount: &Mount, of: &str) -> Result<Option<AbsPath>, ResolveError> {
        let Entry { optional, origin, .. } = &mount.at;
        let path = self.variables.expand(of, origin)?;
        let folder = self.walk(&path, origin)?;
        match folder.kind {
            Some(HostKind::Dir) => Ok(Some(folder.path)),
            None if *optional => Ok(None),
            None => Err(ResolveError::Missing {
                path,
                origin: origin.clone(),
            }),
            Some(_) => {
                let (found, wanted, origin) = ("no folder", "a folder", Box::new(origin.clone()));
                Err(ResolveError::Shape {
                    path,
                    found,
                    wanted,
                    origin,
                })
            }
        }
    }

    fn mount_entries(
        &mut self,
        mount: &Mount,
        at: &AbsPath,
        of: &str,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), ResolveError> {
        let origin = &mount.at.origin;
        let Some(folder) = self.folder(mount, of)? else {
            return Ok(());
        };
        for name in self.names(&folder, origin)? {
            if !wanted(&name.to_string_lossy()) {
                continue;
            }
            let walked = self.walk(&folder.as_path().join(&name), origin)?;
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
                .map_err(|error| ResolveError::walk(PathBuf::from(&name), error.into(), origin.clone()))?;
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
