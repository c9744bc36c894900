//! The guard's own thread: looks at places, and puts right what stands there.

use super::notices::{Noticed, Notices};
use super::places::{Deed, Place, Seen, Wanted, aside, decide};
use super::{Kept, Mend, Refused, Tried, Trouble};
use crate::base::AbsPath;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, openat, readlinkat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So often within `WHILE` something may appear at one path; then the launch ends.
pub const MOST: usize = 16;
const WHILE: Duration = Duration::from_secs(60);
/// Numbers of names that are tried for something refused.
const NUMBERS: usize = 10_000;

/// One place and its history.
struct Watched {
    place: Place,
    /// One for all places below the same granted folder.
    base: Arc<OwnedFd>,
    /// When something was refused there lately.
    lately: VecDeque<Instant>,
}

/// Everything that is guarded.
pub(super) struct Keeper {
    places: Vec<Watched>,
    notices: Notices,
    mend: Mend,
    pub kept: Kept,
}

/// What a look at one place came to.
type Looked = Result<(), Trouble>;

impl Keeper {
    /// Opens every granted folder, and looks at every place once: nothing may have appeared since the policy was made.
    /// A place that cannot be looked at is told and not guarded.
    pub fn new(places: Vec<Place>, mut notices: Notices, mend: Mend) -> Result<Keeper, Trouble> {
        let mut kept = Kept::default();
        let mut watched = Vec::new();
        let mut bases: BTreeMap<AbsPath, Arc<OwnedFd>> = BTreeMap::new();
        for place in places {
            let known = bases.get(&place.base).cloned();
            let Some(base) = known.or_else(|| open(&place.base).ok().map(Arc::new)) else {
                kept.unguarded.push(place.path.clone());
                continue;
            };
            bases.insert(place.base.clone(), Arc::clone(&base));
            let one = Watched {
                place,
                base,
                lately: VecDeque::new(),
            };
            match one.look(watched.len(), &mut notices) {
                Ok(Found { deed: Deed::Leave, .. }) => watched.push(one),
                Ok(_) => return Err(Trouble::Appeared(one.place.path)),
                Err(_) => kept.unguarded.push(one.place.path),
            }
        }
        kept.polled = notices.polls();
        Ok(Keeper {
            places: watched,
            notices,
            mend,
            kept,
        })
    }

    /// Until `done` is closed, or something cannot be put right.
    pub fn keep(&mut self, done: &OwnedFd) -> Looked {
        loop {
            let noticed = self.notices.wait(done.as_fd()).map_err(Trouble::Blind)?;
            self.kept.polled |= self.notices.polls();
            if noticed.iter().any(|noticed| self.takes_a_cover(noticed)) {
                (self.mend)().map_err(Trouble::Opened)?;
            }
            for noticed in noticed {
                match noticed {
                    Noticed::Everything => self.everything()?,
                    Noticed::At(index) => self.put_right(index)?,
                    Noticed::Removed(index) => {
                        self.note(index);
                        self.put_right(index)?;
                    }
                    // What happened last is not missed.
                    Noticed::Done => return self.everything(),
                }
            }
        }
    }

    /// Whether a cover may be gone: what it covered was replaced, or nobody told what happened.
    fn takes_a_cover(&self, noticed: &Noticed) -> bool {
        match noticed {
            Noticed::Everything => true,
            Noticed::At(index) | Noticed::Removed(index) => self
                .places
                .get(*index)
                .is_some_and(|one| one.place.wanted == Wanted::Covered),
            Noticed::Done => false,
        }
    }

    fn everything(&mut self) -> Looked {
        (0..self.places.len()).try_for_each(|index| self.put_right(index))
    }

    /// A lock that is gone: somebody tried to replace what is protected, and gave up.
    fn note(&mut self, index: usize) {
        let Some(Watched { place, .. }) = self.places.get(index) else {
            return;
        };
        if place.wanted != Wanted::NoLock || self.kept.tried.iter().any(|tried| tried.path == place.path) {
            return;
        }
        self.kept.tried.push(Tried {
            path: place.path.clone(),
            reason: place.reason.clone(),
        });
    }

    /// Looks, and acts until nothing is left to do.
    fn put_right(&mut self, index: usize) -> Looked {
        for _ in 0..MOST {
            let Some(watched) = self.places.get_mut(index) else {
                return Ok(());
            };
            let path = watched.place.path.clone();
            let failed = |errno| Trouble::Failed(path.clone(), errno);
            let found = watched.look(index, &mut self.notices).map_err(failed)?;
            let moved = match found.act(&watched.place.wanted) {
                Ok(Acted::Nothing) => return Ok(()),
                Ok(Acted::Moved(name)) => Some(name),
                // It has changed meanwhile; that counts too, or two names in turn would never be caught.
                Err(Errno::ENOENT | Errno::EEXIST) => None,
                Err(errno) => return Err(failed(errno)),
            };
            let insists = watched.insists();
            if let Some(moved) = moved {
                let aside = found.at(&watched.place, moved.as_deref());
                self.kept.refuse(path.clone(), watched.place.reason.clone(), aside);
            }
            if insists {
                return Err(Trouble::Insisted(path));
            }
        }
        Ok(())
    }
}

/// Where a look ended.
struct Found {
    folder: OwnedFd,
    /// The index of the name there.
    depth: usize,
    name: OsString,
    deed: Deed,
}

enum Acted {
    Nothing,
    /// Something stands under this name now; nothing if only a link was made again.
    Moved(Option<OsString>),
}

impl Watched {
    /// Goes down the names, watching each folder before it looks into it, so that nothing is missed in between.
    fn look(&self, index: usize, notices: &mut Notices) -> nix::Result<Found> {
        let mut folder = self.base.try_clone().map_err(|_| Errno::EMFILE)?;
        let last = self.place.names.len().saturating_sub(1);
        for (depth, name) in self.place.names.iter().enumerate() {
            reached(&folder, || notices.watch(folder.as_fd(), name, index))?;
            let seen = reached(&folder, || see(&folder, name))?;
            match decide(&self.place.wanted, depth == last, &seen) {
                Deed::Descend => match reached(&folder, || {
                    openat(&folder, name.as_os_str(), folder_flags(), Mode::empty())
                }) {
                    Ok(below) => folder = below,
                    // Replaced this moment: its own notice follows.
                    Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {
                        return Ok(found(folder, depth, name, Deed::Leave));
                    }
                    Err(errno) => return Err(errno),
                },
                deed => return Ok(found(folder, depth, name, deed)),
            }
        }
        Err(Errno::EINVAL)
    }

    /// Counts one more refusal; whether there were too many lately.
    fn insists(&mut self) -> bool {
        let now = Instant::now();
        self.lately.push_back(now);
        while self
            .lately
            .front()
            .is_some_and(|first| now.duration_since(*first) > WHILE)
        {
            self.lately.pop_front();
        }
        self.lately.len() >= MOST
    }
}

fn found(folder: OwnedFd, depth: usize, name: &OsStr, deed: Deed) -> Found {
    Found {
        folder,
        depth,
        name: name.to_owned(),
        deed,
    }
}

impl Found {
    fn act(&self, wanted: &Wanted) -> nix::Result<Acted> {
        match (self.deed, wanted) {
            (Deed::Refuse, _) => self.move_aside().map(Some).map(Acted::Moved),
            (Deed::Replace, Wanted::Link(to)) => {
                let moved = self.move_aside()?;
                match self.link(to) {
                    // The next look finds what came between.
                    Ok(()) | Err(Errno::EEXIST) => Ok(Acted::Moved(Some(moved))),
                    Err(errno) => Err(errno),
                }
            }
            (Deed::Restore, Wanted::Link(to)) => self.link(to).map(|()| Acted::Moved(None)),
            _ => Ok(Acted::Nothing),
        }
    }

    fn link(&self, to: &Path) -> nix::Result<()> {
        nix::unistd::symlinkat(to, &self.folder, self.name.as_os_str())
    }

    /// Renames it, within its folder, to a name that nothing has: nothing is lost.
    fn move_aside(&self) -> nix::Result<OsString> {
        for number in 1..NUMBERS {
            let to = aside(&self.name, number);
            let (from, into) = (self.name.as_os_str(), to.as_os_str());
            let rename = || renameat2(&self.folder, from, &self.folder, into, RenameFlags::RENAME_NOREPLACE);
            let moved = match reached(&self.folder, rename) {
                // A file system that does not know the flag.
                Err(Errno::EINVAL | Errno::ENOSYS) => match see(&self.folder, into)? {
                    Seen::Nothing => nix::fcntl::renameat(&self.folder, from, &self.folder, into),
                    _ => Err(Errno::EEXIST),
                },
                moved => moved,
            };
            match moved {
                Ok(()) => return Ok(to),
                Err(Errno::EEXIST | Errno::ENOTEMPTY) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::ENOSPC)
    }

    /// The path inside of what was moved.
    fn at(&self, place: &Place, moved: Option<&OsStr>) -> Option<AbsPath> {
        let above = place.names.len().saturating_sub(self.depth);
        let folder = place.path.as_path().ancestors().nth(above)?;
        AbsPath::new(folder.join(moved?)).ok()
    }
}

/// The call once more, if it was refused for a folder that was closed meanwhile: whoever made what must go can also take
/// its owner's rights to the folder away. They are given back.
fn reached<T>(folder: &OwnedFd, mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    match call() {
        Err(Errno::EACCES) if open_up(folder).is_ok() => call(),
        other => other,
    }
}

fn open_up(folder: &OwnedFd) -> nix::Result<()> {
    let mode = Mode::from_bits_truncate(nix::sys::stat::fstat(folder)?.st_mode) | Mode::S_IRWXU;
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let follow = nix::sys::stat::FchmodatFlags::FollowSymlink;
    nix::sys::stat::fchmodat(nix::fcntl::AT_FDCWD, path.as_str(), mode, follow)
}

/// What stands at a name, no link followed.
fn see(folder: &OwnedFd, name: &OsStr) -> nix::Result<Seen> {
    let stat: FileStat = match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(Seen::Nothing),
        Err(errno) => return Err(errno),
    };
    Ok(match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFDIR => Seen::Folder,
        SFlag::S_IFLNK => match readlinkat(folder, name) {
            Ok(to) => Seen::Link(PathBuf::from(to)),
            Err(Errno::ENOENT | Errno::EINVAL) => Seen::Other,
            Err(errno) => return Err(errno),
        },
        _ => Seen::Other,
    })
}

fn folder_flags() -> OFlag {
    OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

fn open(path: &AbsPath) -> nix::Result<OwnedFd> {
    let root = nix::fcntl::open("/", folder_flags(), Mode::empty())?;
    if path.below_root().as_os_str().as_bytes().is_empty() {
        return Ok(root);
    }
    crate::sys::mount::open_beneath(&root, path.below_root())
}

impl Kept {
    fn refuse(&mut self, path: AbsPath, reason: String, aside: Option<AbsPath>) {
        let index = self.refused.iter().position(|refused| refused.path == path);
        let index = index.unwrap_or_else(|| {
            self.refused.push(Refused {
                path,
                reason,
                aside: Vec::new(),
                times: 0,
            });
            self.refused.len() - 1
        });
        if let Some(refused) = self.refused.get_mut(index) {
            refused.times += 1;
            refused.aside.extend(aside);
        }
    }
}
