//! The caller's files as the supervisor reaches them: through the caller's own root and working folder, one name at a
//! time, without following a link that it has not looked at.

use super::caller::Caller;
use super::walk::{Jump, Step, View, walk};
use crate::sys::object::{Object, object_of};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::libc::{S_IFDIR, S_IFLNK, S_IFMT};
use nix::sys::stat::Mode;
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::rc::Rc;

/// Inode number of the top of every /proc.
const PROC_ROOT: u64 = 1;
const LOOK: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC).union(OFlag::O_NOFOLLOW);

/// A file, open as a path only.
#[derive(Debug, Clone)]
pub struct Place {
    file: Rc<OwnedFd>,
    object: Object,
    proc: Proc,
}

/// Where in a /proc a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proc {
    No,
    Root,
    /// Below the folder of this process, as the sandbox numbers it.
    Of(i32),
    /// In one, but it is not known where.
    Somewhere,
}

/// What `path` leads to in the caller's view. `root` is the sandbox's root.
pub fn find(caller: &Caller, root: &OwnedFd, path: &[u8]) -> Result<(OwnedFd, Object), Errno> {
    // Nearly every name is a plain one, which the kernel follows in one call; what it does not like about the others is
    // found out below.
    if let Ok(file) = at_once(caller, root, path) {
        let object = look(&file)?;
        return Ok((file, object));
    }
    let files = Files {
        caller,
        root: Place::new(nix::unistd::dup(root)?, Proc::No)?,
    };
    let place = walk(path, &files)?;
    drop(files);
    let object = place.object;
    let file = Rc::try_unwrap(place.file).or_else(nix::unistd::dup)?;
    Ok((file, object))
}

fn at_once(caller: &Caller, root: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let plain = ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let open = |folder: &OwnedFd, path: &[u8], resolve| {
        let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(resolve);
        openat2(folder, OsStr::from_bytes(path), how)
    };
    if path.starts_with(b"/") {
        return open(root, path, plain | ResolveFlag::RESOLVE_IN_ROOT);
    }
    let beneath = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
    open(&caller.open("cwd")?, path, plain | beneath)
}

fn look(file: &OwnedFd) -> Result<Object, Errno> {
    object_of(file.as_fd()).map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
}

impl Place {
    fn new(file: OwnedFd, proc: Proc) -> Result<Place, Errno> {
        let object = look(&file)?;
        Ok(Place {
            file: Rc::new(file),
            object,
            proc,
        })
    }

    /// A place that was not reached from the top of its file system.
    fn arrived(file: OwnedFd) -> Result<Place, Errno> {
        let mut place = Place::new(file, Proc::No)?;
        if place.is_proc()? {
            place.proc = place.proc_from(Proc::Somewhere);
        }
        Ok(place)
    }

    fn is(&self, kind: u32) -> bool {
        self.object.mode & S_IFMT == kind
    }

    fn is_proc(&self) -> Result<bool, Errno> {
        Ok(fstatfs(self.file.as_fd())?.filesystem_type() == PROC_SUPER_MAGIC)
    }

    fn proc_from(&self, otherwise: Proc) -> Proc {
        if self.object.ino == PROC_ROOT {
            Proc::Root
        } else {
            otherwise
        }
    }
}

/// The caller's view while one path is followed.
struct Files<'a> {
    caller: &'a Caller,
    root: Place,
}

impl Files<'_> {
    /// Where a name in a folder is, if the folder is in a /proc.
    fn proc(folder: &Place, place: &Place, name: &OsStr) -> Result<Proc, Errno> {
        if folder.proc == Proc::No || folder.object.dev != place.object.dev {
            // Something may be mounted in a /proc, and a /proc anywhere.
            return Ok(if place.is_proc()? {
                place.proc_from(Proc::Somewhere)
            } else {
                Proc::No
            });
        }
        let number = || name.to_str().and_then(|name| name.parse().ok());
        Ok(match folder.proc {
            Proc::Root => number().map_or(Proc::Somewhere, Proc::Of),
            other => other,
        })
    }

    /// A link of /proc that is not only its text: the kernel jumps to what it stands for. The supervisor may follow more
    /// of them than the caller: what belongs to the sandbox's first process is Pinfold's own, and closed to it.
    fn jump(folder: &Place, owner: Proc, name: &OsStr) -> Result<Step<Place>, Errno> {
        match owner {
            Proc::Of(pid) if pid != 1 => {}
            _ => return Err(Errno::EACCES),
        }
        let file = openat(&*folder.file, name, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        let place = Place::arrived(file)?;
        let kind = if place.is(S_IFDIR) { Jump::Folder } else { Jump::Leaf };
        Ok(Step::Jump(place, kind))
    }
}

impl View for Files<'_> {
    type Place = Place;

    fn root(&self) -> Result<Place, Errno> {
        Ok(self.root.clone())
    }

    fn workdir(&self) -> Result<Place, Errno> {
        Place::arrived(self.caller.open("cwd")?)
    }

    fn above(&self, folder: &Place) -> Result<Place, Errno> {
        if folder.object == self.root.object {
            return Ok(folder.clone());
        }
        let mut above = Place::arrived(openat(&*folder.file, "..", LOOK, Mode::empty())?)?;
        if above.proc == Proc::Somewhere && matches!(folder.proc, Proc::Of(_)) {
            above.proc = folder.proc;
        }
        Ok(above)
    }

    fn step(&self, folder: &Place, name: &OsStr) -> Result<Step<Place>, Errno> {
        if folder.proc == Proc::Root {
            match name.as_bytes() {
                b"self" => return Ok(Step::Link(self.caller.numbers()?.process.to_string().into())),
                b"thread-self" => {
                    let numbers = self.caller.numbers()?;
                    return Ok(Step::Link(
                        format!("{}/task/{}", numbers.process, numbers.thread).into(),
                    ));
                }
                _ => {}
            }
        }
        let mut place = Place::new(openat(&*folder.file, name, LOOK, Mode::empty())?, Proc::No)?;
        if place.is(S_IFDIR) {
            place.proc = Files::proc(folder, &place, name)?;
            return Ok(Step::Folder(place));
        }
        if !place.is(S_IFLNK) {
            return Ok(Step::Leaf(place));
        }
        if place.is_proc()? && folder.proc != Proc::Root {
            return Files::jump(folder, folder.proc, name);
        }
        let text: OsString = nix::fcntl::readlinkat(&*place.file, "")?;
        Ok(Step::Link(text))
    }
}
