//! chmod and its kin on behalf, where Landlock is the only wall around files: it does not see them, so that without this
//! a hook that was switched off could be switched on, and a file outside every grant be opened to others.
//!
//! The file is pinned, judged by where it is, and changed through the pin. The supervisor may more than the caller where
//! it is root: what the kernel would ask of the caller is asked here.

use super::caller::{Caller, Last};
use super::job::Judge;
use super::request::{Change, Named};
use super::view;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, FcntlArg, OFlag, fcntl};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstat};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

impl Judge {
    /// Decides one change and makes it.
    pub fn change(
        &self,
        change: Change,
        caller: &Caller,
        last: &mut Last,
        waits: impl Fn() -> bool,
    ) -> Result<i64, Errno> {
        let file = match change.of {
            Named::Open(number) => opened(caller.descriptor(number, last)?)?,
            Named::Path { folder, pointer } => {
                let path = from_folder(folder, caller.text(pointer)?)?;
                view::find(caller, self.root(caller)?, &path)?.0
            }
        };
        if !waits() {
            return Err(Errno::ESRCH);
        }
        self.writable.permit(&file)?;
        set(&file, change.mode)
    }
}

/// A descriptor that is open as a path only stands for no open file (open(2)).
fn opened(file: OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    if flags.contains(OFlag::O_PATH) {
        Err(Errno::EBADF)
    } else {
        Ok(file)
    }
}

/// The path as one of the caller's own view: from an open folder on, by the caller's name for that folder.
fn from_folder(folder: RawFd, path: Vec<u8>) -> Result<Vec<u8>, Errno> {
    match path.first() {
        None => Err(Errno::ENOENT),
        Some(b'/') => Ok(path),
        Some(_) if folder == AT_FDCWD.as_raw_fd() => Ok(path),
        Some(_) => Ok([format!("/proc/self/fd/{folder}/").as_bytes(), &path].concat()),
    }
}

/// Changes exactly this file. Only its owner may, and a group's bit only who is in the group (chmod(2)).
fn set(file: &OwnedFd, mode: u32) -> Result<i64, Errno> {
    let seen = fstat(file)?;
    if seen.st_uid != nix::unistd::geteuid().as_raw() {
        return Err(Errno::EPERM);
    }
    let mut mode = Mode::from_bits_truncate(mode);
    let own = nix::unistd::getegid().as_raw() == seen.st_gid;
    if !own
        && !nix::unistd::getgroups()?
            .iter()
            .any(|group| group.as_raw() == seen.st_gid)
    {
        mode.remove(Mode::S_ISGID);
    }
    let by_pin = format!("/proc/self/fd/{}", file.as_raw_fd());
    fchmodat(AT_FDCWD, by_pin.as_str(), mode, FchmodatFlags::FollowSymlink)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::{from_folder, opened, set};
    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, OFlag, open};
    use nix::sys::stat::Mode;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_path_is_taken_from_the_folder_that_it_was_given_with() {
        let from = |folder, path: &str| from_folder(folder, path.into()).map(|path| String::from_utf8(path).unwrap());
        assert_eq!(from(AT_FDCWD.as_raw_fd(), "a/b").unwrap(), "a/b");
        assert_eq!(from(7, "/a/b").unwrap(), "/a/b");
        assert_eq!(from(7, "a/b").unwrap(), "/proc/self/fd/7/a/b");
        assert_eq!(from(7, ""), Err(Errno::ENOENT));
    }

    #[test]
    fn the_pinned_file_is_changed_and_a_bare_path_is_no_open_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pinned = || open(file.path(), OFlag::O_PATH, Mode::empty()).unwrap();
        assert_eq!(set(&pinned(), 0o640), Ok(0));
        assert_eq!(file.path().metadata().unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(opened(pinned()).unwrap_err(), Errno::EBADF);
        assert!(opened(std::fs::File::open(file.path()).unwrap().into()).is_ok());
    }
}
