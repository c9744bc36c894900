//! What git's own files say about a workspace, read without ever running git: its config could run programs.

use crate::base::AbsPath;
use crate::policy::host::{Host, HostKind};
use crate::policy::walk::walk;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Pointer files hold one path.
const POINTER: u64 = 64 << 10;

/// The git folder of a workspace root.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GitFolder {
    Absent,
    /// `.git` is a folder in the root.
    Own(AbsPath),
    /// `.git` is a file that leads to a git folder inside the root.
    Inside(AbsPath),
    /// The root is a linked worktree, and its git folder points back at it.
    Linked {
        folder: AbsPath,
        common: AbsPath,
    },
    /// The root itself is a git folder: a bare repository.
    Bare(AbsPath),
    /// `.git` leads somewhere that does not point back: nothing is granted for it.
    Foreign(&'static str),
}

/// Looks at `root/.git`. A file or link in it widens nothing unless the other side, which the workspace cannot write,
/// points back.
pub(super) fn inspect(root: &AbsPath, host: &dyn Host) -> GitFolder {
    let Ok(dot_git) = root.join(".git") else {
        return GitFolder::Absent;
    };
    match host.kind(&dot_git) {
        Ok(HostKind::Dir) => GitFolder::Own(dot_git),
        Ok(HostKind::File) => linked(root, &dot_git, host),
        Ok(HostKind::Link) => GitFolder::Foreign("`.git` is a link: what it leads to is not granted"),
        Ok(_) => GitFolder::Foreign("`.git` is neither a folder nor a file"),
        Err(_) if is_git(root, host) => GitFolder::Bare(root.clone()),
        Err(_) => GitFolder::Absent,
    }
}

/// Whether git takes the folder for a git folder, whatever its name.
pub(super) fn is_git(folder: &AbsPath, host: &dyn Host) -> bool {
    let has = |name: &str, kind| {
        folder
            .join(name)
            .is_ok_and(|at| host.kind(&at).is_ok_and(|found| found == kind))
    };
    has("HEAD", HostKind::File) && has("objects", HostKind::Dir) && has("refs", HostKind::Dir)
}

fn linked(root: &AbsPath, dot_git: &AbsPath, host: &dyn Host) -> GitFolder {
    const FOREIGN: GitFolder = GitFolder::Foreign(
        "`.git` is a file whose target does not point back at this workspace: git does not work inside",
    );
    let Some(folder) = pointer(dot_git, root, b"gitdir: ", host) else {
        return FOREIGN;
    };
    if folder.is_within(root) {
        return GitFolder::Inside(folder);
    }
    let file = |name: &str| folder.join(name).ok();
    let back = file("gitdir").and_then(|at| pointer(&at, &folder, b"", host));
    let common = file("commondir").and_then(|at| pointer(&at, &folder, b"", host));
    let place = folder.parent().and_then(|worktrees| {
        let named = worktrees.as_path().file_name() == Some(OsStr::new("worktrees"));
        worktrees.parent().filter(|_| named)
    });
    match (back, common, place) {
        (Some(back), Some(common), Some(place)) if back == *dot_git && common == place && is_git(&common, host) => {
            GitFolder::Linked { folder, common }
        }
        _ => FOREIGN,
    }
}

/// The canonical path that a pointer file holds, relative ones seen from `base`.
fn pointer(file: &AbsPath, base: &AbsPath, prefix: &[u8], host: &dyn Host) -> Option<AbsPath> {
    let bytes = host.read_small(file, POINTER).ok()?;
    let text = bytes.strip_prefix(prefix)?;
    let end = text
        .iter()
        .rposition(|b| !matches!(b, b'\n' | b'\r'))
        .map_or(0, |last| last + 1);
    let written = text.get(..end).filter(|text| !text.is_empty())?;
    let walked = walk(&base.as_path().join(OsStr::from_bytes(written)), host).ok()?;
    walked.kind.map(|_| walked.path)
}
