//! Protected paths: what stands in a writable bind and is later executed or trusted by the host.

use super::draft::Draft;
use super::git::GitFolder;
use crate::base::AbsPath;
use crate::policy::frozen::{Access, Appearing, Bind, FileKind, Origin, Protected, Topic};
use crate::policy::host::{Host, HostKind};
use crate::policy::profile::{Guarded, Profile};
use crate::policy::walk::walk;
use std::path::Path;

/// Collects the protected paths of one policy.
pub(super) struct Protection<'a> {
    pub host: &'a dyn Host,
    pub draft: &'a mut Draft,
    pub found: Vec<Protected>,
}

impl Protection<'_> {
    /// Everything of the profile below the root, and what git's own files name.
    pub fn fill(&mut self, profile: &Profile, root: &AbsPath, git: &GitFolder) {
        for Guarded { entry, appearing } in &profile.protected {
            let path = Path::new(&entry.text);
            // Where there is no repository, `git init` is ordinary work.
            let is_new = *git == GitFolder::Absent && path.starts_with(".git");
            let appearing = if is_new { Appearing::Reported } else { *appearing };
            self.entry(root, path, &entry.origin, appearing);
        }
        self.git(profile, root, git);
    }

    /// Read-only grants inside writable ones.
    pub fn narrowed(&mut self) {
        for (path, kind, origin) in std::mem::take(&mut self.draft.narrowed) {
            let reason = origin
                .why
                .clone()
                .unwrap_or_else(|| format!("granted read-only by {}", origin.key));
            self.hold(path, Some(kind), (reason, Appearing::Refused), &origin);
        }
    }

    /// One path, relative to `base`. A link on the way cannot be a mount point: it is put back if it changes, and what
    /// it leads to is held.
    pub fn entry(&mut self, base: &AbsPath, below: &Path, origin: &Origin, appearing: Appearing) {
        let written = base.as_path().join(below);
        let reason = origin
            .why
            .clone()
            .unwrap_or_else(|| "protected by the profile".to_owned());
        match walk(&written, self.host) {
            Ok(walked) => {
                for link in walked.links {
                    self.hold(link.at, Some(FileKind::Link), (reason.clone(), appearing), origin);
                }
                let kind = walked.kind.map(|kind| match kind {
                    HostKind::Dir => FileKind::Dir,
                    HostKind::Socket => FileKind::Socket,
                    HostKind::Device => FileKind::Device,
                    HostKind::File | HostKind::Link | HostKind::Other => FileKind::File,
                });
                self.hold(walked.path, kind, (reason, appearing), origin);
            }
            Err(error) => self.draft.note(
                Topic::Warning,
                written.display(),
                &format!("not protected: {error}"),
                origin,
            ),
        }
    }

    /// Adds the path if it lies in something writable.
    fn hold(&mut self, path: AbsPath, kind: Option<FileKind>, what: (String, Appearing), origin: &Origin) {
        let (reason, appearing) = what;
        let depth = |bind: &&Bind| bind.target.as_path().components().count();
        let around = self
            .draft
            .binds
            .iter()
            .filter(|bind| bind.kind == FileKind::Dir && path.is_within(&bind.target))
            .max_by_key(depth);
        let Some(bind) = around.filter(|bind| bind.access == Access::ReadWrite) else {
            return;
        };
        if path == bind.target {
            self.draft.note(
                Topic::Warning,
                &path,
                "not protected: the whole of it is granted read-write",
                origin,
            );
            return;
        }
        let mut pins = Vec::new();
        // What is absent cannot be held, and so its ancestors need not be.
        let mut above = path.parent().filter(|_| kind.is_some());
        while let Some(pin) = above.filter(|pin| *pin != bind.target) {
            above = pin.parent();
            pins.push(pin);
        }
        pins.reverse();
        self.found.push(Protected {
            path,
            kind,
            appearing,
            pins,
            reason,
        });
    }

    /// Sorted by path; what lies in a protected folder is protected with it.
    pub fn finish(mut self) -> Vec<Protected> {
        self.found
            .sort_by(|a, b| (&a.path, a.appearing).cmp(&(&b.path, b.appearing)));
        self.found.dedup_by(|later, first| later.path == first.path);
        let held: Vec<AbsPath> = self
            .found
            .iter()
            .filter(|one| one.kind == Some(FileKind::Dir))
            .map(|one| one.path.clone())
            .collect();
        let covered = |path: &AbsPath| held.iter().any(|folder| folder != path && path.is_within(folder));
        self.found.retain(|one| !covered(&one.path));
        self.found
    }
}
