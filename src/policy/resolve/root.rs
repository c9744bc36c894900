//! The workspace root: found without git, checked before anything is granted for it.

use super::ResolveError;
use super::breadth::Breadth;
use super::git::{GitFolder, inspect};
use super::places::Places;
use crate::base::AbsPath;
use crate::policy::frozen::{Access, FileKind, Origin, Topic};
use crate::policy::host::{Host, HostKind};
use crate::policy::profile::Profile;
use crate::policy::walk::walk;
use std::path::Path;

/// A folder that was named as the workspace, links resolved: nothing above it counts.
pub fn workspace_folder(named: &Path, host: &dyn Host) -> Result<AbsPath, ResolveError> {
    canonical_folder(named, host)
}

/// The workspace root for a start folder (absolute): the nearest folder with a `.git` in it, else the folder itself.
/// The home folder and what is above it are never taken for a git top level: that would only be refused.
pub fn workspace_root(start: &Path, host: &dyn Host) -> Result<AbsPath, ResolveError> {
    let start = canonical_folder(start, host)?;
    let home = host
        .home()
        .and_then(|home| walk(&home, host).ok())
        .map(|walked| walked.path);
    let mut at = Some(start.clone());
    while let Some(folder) = at {
        if home.as_ref().is_some_and(|home| home.is_within(&folder)) {
            break;
        }
        let marked = folder
            .join(".git")
            .is_ok_and(|git| matches!(host.kind(&git), Ok(HostKind::Dir | HostKind::File)));
        if marked {
            return Ok(folder);
        }
        at = folder.parent();
    }
    Ok(start)
}

fn canonical_folder(written: &Path, host: &dyn Host) -> Result<AbsPath, ResolveError> {
    let origin = || Origin {
        source: "command line".to_owned(),
        key: "workspace".to_owned(),
        why: None,
    };
    let walked = walk(written, host).map_err(|error| ResolveError::walk(written.to_owned(), error, origin()))?;
    match walked.kind {
        Some(HostKind::Dir) => Ok(walked.path),
        Some(_) => Err(ResolveError::RootNotAFolder(written.to_owned())),
        None => Err(ResolveError::RootMissing(written.to_owned())),
    }
}

/// The canonical root, or why it is refused: too broad, Pinfold's own, gone, no folder, or not readable.
pub(super) fn check_root(written: &Path, breadth: &Breadth, host: &dyn Host) -> Result<AbsPath, ResolveError> {
    let root = canonical_folder(written, host)?;
    if let Some(reason) = breadth.refusal(&root, Access::ReadWrite) {
        return Err(ResolveError::Root {
            path: root.as_path().to_owned(),
            reason,
        });
    }
    let unreadable = |source| ResolveError::RootUnreadable {
        path: root.as_path().to_owned(),
        source,
    };
    host.list(&root).map_err(unreadable)?;
    Ok(root)
}

/// Adds the root, and for a genuine linked worktree its git folder and the shared parts of the common one.
pub(super) fn grant_root(places: &mut Places<'_>, profile: &Profile, root: &AbsPath, access: Access) -> GitFolder {
    let origin = |key: &str, why: &str| Origin {
        source: "workspace".to_owned(),
        key: key.to_owned(),
        why: Some(why.to_owned()),
    };
    places.draft.bind(
        root.clone(),
        FileKind::Dir,
        access,
        origin("workdir.access", "the workspace root, fixed at launch"),
    );
    let mut git = inspect(root, places.host);
    if let GitFolder::Linked { common, .. } = &git
        && (places.breadth.refusal(common, Access::ReadWrite).is_some() || root.is_within(common))
    {
        git = GitFolder::Foreign("the common git folder is too broad to be granted");
    }
    match &git {
        GitFolder::Linked { folder, common } => {
            let read = origin(
                ".git",
                "the common git folder of this linked worktree, read-only but for what a commit writes",
            );
            places.draft.bind(common.clone(), FileKind::Dir, Access::Read, read);
            places.draft.bind(
                folder.clone(),
                FileKind::Dir,
                access,
                origin(".git", "the git folder of this linked worktree"),
            );
            for entry in &profile.common_writable {
                let Ok(shared) = common.join(&entry.text) else { continue };
                let kind = match places.host.kind(&shared) {
                    Ok(HostKind::Dir) => FileKind::Dir,
                    Ok(HostKind::File) => FileKind::File,
                    _ => continue,
                };
                places.draft.bind(shared, kind, access, entry.origin.clone());
            }
        }
        GitFolder::Foreign(text) => places.draft.note(
            Topic::LeftOut,
            ".git",
            text,
            &origin(".git", "nothing is widened by a pointer"),
        ),
        GitFolder::Own(_) | GitFolder::Inside(_) | GitFolder::Bare(_) | GitFolder::Absent => {}
    }
    git
}
