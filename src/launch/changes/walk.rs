//! Goes through a granted folder after the launch: shallow places first, no link followed, no other file system entered.

use super::kinds::{Kinds, Turn};
use crate::base::AbsPath;
use nix::dir::{Dir, Type};
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Instant;

/// A time of the kernel's clock for files: seconds and nanoseconds.
pub type Moment = (i64, i64);

/// What a file that changed is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub path: AbsPath,
    /// Below the granted folder.
    pub names: Vec<OsString>,
    /// Why it matters; nothing if it is only executable.
    pub reason: Option<String>,
}

/// What a walk came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Walked {
    pub seen: Vec<Seen>,
    /// Folders that were not looked at any more.
    pub left: usize,
}

/// A folder to look at.
struct Place {
    names: Vec<OsString>,
    /// How many names lead to the git folder that this is or lies in.
    git: Option<usize>,
}

/// Everything below `root` whose status changed at `since` or later: that time cannot be set from inside.
pub fn walk(root: &AbsPath, kinds: &Kinds, since: Moment, until: Option<Instant>) -> Walked {
    let mut walked = Walked::default();
    let Ok(top) = open(root) else { return walked };
    let Ok(device) = fstat(&top).map(|stat| stat.st_dev) else {
        return walked;
    };
    let mut soon = VecDeque::from([Place {
        names: Vec::new(),
        git: None,
    }]);
    let mut late = VecDeque::new();
    while let Some(place) = soon.pop_front().or_else(|| late.pop_front()) {
        if until.is_some_and(|until| Instant::now() >= until) {
            walked.left = 1 + soon.len() + late.len();
            return walked;
        }
        let Some((folder, entries)) = list(&top, &place, device) else {
            continue;
        };
        let git = if is_git(&entries) {
            Some(place.names.len())
        } else {
            place.git
        };
        for (name, kind) in entries {
            let names: Vec<OsString> = place.names.iter().cloned().chain([name.clone()]).collect();
            if kind == Some(Type::Directory) {
                let below = |names| Place { names, git };
                match kinds.turn(&names, git) {
                    Turn::Soon => soon.push_back(below(names)),
                    Turn::Late => late.push_back(below(names)),
                    Turn::Never => {}
                }
            } else if let Some(seen) = judge(root, &folder, names, kinds, git, since) {
                walked.seen.push(seen);
            }
        }
    }
    walked
}

fn open(path: &AbsPath) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let root = nix::fcntl::open("/", flags, Mode::empty())?;
    crate::sys::mount::open_beneath(root, path.below_root())
}

type Entries = Vec<(OsString, Option<Type>)>;

/// The entries of a folder on the same file system; nothing if it is gone or may not be listed.
fn list(top: &OwnedFd, place: &Place, device: u64) -> Option<(OwnedFd, Entries)> {
    let path: PathBuf = place.names.iter().collect();
    let folder = if place.names.is_empty() {
        top.try_clone().ok()?
    } else {
        crate::sys::mount::open_beneath(top, &path).ok()?
    };
    if fstat(&folder).ok()?.st_dev != device {
        return None;
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut open = Dir::openat(&folder, ".", flags, Mode::empty()).ok()?;
    let mut entries = Vec::new();
    for entry in open.iter() {
        let entry = entry.ok()?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = entry.file_type().or_else(|| type_of(&folder, name));
        entries.push((name.to_owned(), kind));
    }
    Some((folder, entries))
}

/// For file systems that do not say it in the folder.
fn type_of(folder: &OwnedFd, name: &OsStr) -> Option<Type> {
    let stat = fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
    (file_type(&stat) == SFlag::S_IFDIR).then_some(Type::Directory)
}

fn file_type(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

/// As git decides it.
fn is_git(entries: &Entries) -> bool {
    ["HEAD", "objects", "refs"]
        .iter()
        .all(|wanted| entries.iter().any(|(name, _)| name == wanted))
}

fn judge(
    root: &AbsPath,
    folder: &OwnedFd,
    names: Vec<OsString>,
    kinds: &Kinds,
    git: Option<usize>,
    since: Moment,
) -> Option<Seen> {
    let name = names.last()?;
    let stat = fstatat(folder, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
    if (stat.st_ctime, stat.st_ctime_nsec) < since {
        return None;
    }
    let kind = kinds.of_file(&names, git);
    let kind = kind.filter(|kind| {
        kind.ordinary
            .as_ref()
            .is_none_or(|ordinary| !says(folder, name, ordinary))
    });
    let executable = !kinds.is_excepted(&names, git) && file_type(&stat) == SFlag::S_IFREG && stat.st_mode & 0o111 != 0;
    if kind.is_none() && !executable {
        return None;
    }
    let reason = kind.map(|kind| kind.reason.clone());
    let path = root.as_path().join(names.iter().collect::<PathBuf>());
    Some(Seen {
        path: AbsPath::new(path).ok()?,
        names,
        reason,
    })
}

/// Whether a small file says exactly this, a last line end aside.
fn says(folder: &OwnedFd, name: &OsStr, ordinary: &str) -> bool {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Ok(file) = openat(folder.as_fd(), name, flags, Mode::empty()) else {
        return false;
    };
    let mut text = Vec::new();
    let read = std::fs::File::from(file).take(4096).read_to_end(&mut text);
    read.is_ok() && text.trim_ascii_end() == ordinary.as_bytes()
}
