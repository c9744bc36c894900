//! Attempts on paths.

use super::{Met, Tried};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, makedev};
use nix::unistd::{LinkatFlags, linkat, unlink};
use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::path::Path;

fn open_as(path: &OsStr, flags: OFlag) -> Result<OwnedFd, Errno> {
    // Neither a named pipe nor a terminal may hold the attempt up, nor become ours.
    open(
        path,
        flags | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY,
        Mode::from_bits_truncate(0o600),
    )
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or_default())
}

/// Opens and reads one byte.
pub fn read(path: &OsStr) -> Met {
    let mut file = std::fs::File::from(open_as(path, OFlag::O_RDONLY)?);
    match file.read(&mut [0]) {
        Ok(_) => Ok(Tried::Done),
        // An empty pipe was opened all the same.
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(Tried::Done),
        Err(error) => Err(errno(&error)),
    }
}

/// Opens a folder and reads its first names.
pub fn list(path: &OsStr) -> Met {
    let mut entries = std::fs::read_dir(path).map_err(|e| errno(&e))?;
    entries.next().transpose().map_err(|e| errno(&e))?;
    Ok(Tried::Done)
}

/// Opens for writing; nothing is written.
pub fn write(path: &OsStr) -> Met {
    open_as(path, OFlag::O_WRONLY | OFlag::O_APPEND).map(|_| Tried::Done)
}

/// Makes a file and removes it.
pub fn create(path: &OsStr) -> Met {
    open_as(path, OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL)?;
    unlink(path).map(|()| Tried::Done)
}

/// Renames and renames back. The new name must be free: nothing is replaced.
pub fn rename(from: &OsStr, to: &OsStr) -> Met {
    match swap(from, to) {
        // How the kernel says that a mount point stays where it is (rename(2)).
        Err(Errno::EBUSY) => Ok(Tried::Denied(Errno::EBUSY as i32)),
        other => other.and_then(|()| swap(to, from)).map(|()| Tried::Done),
    }
}

fn swap(from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    if Path::new(to).symlink_metadata().is_ok() {
        return Err(Errno::EEXIST);
    }
    std::fs::rename(from, to).map_err(|e| errno(&e))
}

/// Makes a hard link and removes it.
pub fn link(from: &OsStr, to: &OsStr) -> Met {
    linkat(
        nix::fcntl::AT_FDCWD,
        from,
        nix::fcntl::AT_FDCWD,
        to,
        LinkatFlags::empty(),
    )?;
    unlink(to).map(|()| Tried::Done)
}

/// Asks for a handle that names the file past every path. The kernel's word on how much room it takes, or that this
/// file system has none, is as good as the handle.
pub fn handle(path: &OsStr) -> Met {
    match crate::sys::probe::file_handle(path) {
        Ok(()) | Err(Errno::EOVERFLOW | Errno::EOPNOTSUPP) => Ok(Tried::Done),
        Err(errno) => Err(errno),
    }
}

/// Makes the device node of `/dev/null` and removes it.
pub fn mknod(path: &OsStr) -> Met {
    nix::sys::stat::mknod(path, SFlag::S_IFCHR, Mode::from_bits_truncate(0o600), makedev(1, 3))?;
    unlink(path).map(|()| Tried::Done)
}

/// Sets the set-user-id bit and puts the old mode back.
pub fn chmod_suid(path: &OsStr) -> Met {
    let file = open_as(path, OFlag::O_RDONLY)?;
    let before = Mode::from_bits_truncate(fstat(&file)?.st_mode);
    fchmod(&file, before | Mode::S_ISUID)?;
    let kept = fstat(&file)?.st_mode & Mode::S_ISUID.bits() != 0;
    fchmod(&file, before)?;
    if kept { Ok(Tried::Done) } else { Err(Errno::EPERM) }
}

/// Sets an attribute of the file and removes it.
pub fn extended_attribute(path: &OsStr) -> Met {
    crate::sys::probe::extended_attribute(path).map(|()| Tried::Done)
}

/// Opens the kernel's core pattern for writing, through which root's next crash anywhere runs a program.
pub fn core_pattern() -> Met {
    write(OsStr::new("/proc/sys/kernel/core_pattern"))
}

/// A terminal, opened; it never becomes ours.
pub(super) fn terminal(path: &OsStr) -> Result<OwnedFd, Errno> {
    open_as(path, OFlag::O_RDWR)
}

/// Opens a terminal for reading and writing.
pub fn open_tty(path: Option<&OsString>) -> Met {
    let path = path.map_or(OsStr::new("/dev/tty"), OsString::as_os_str);
    let mut terminal = std::fs::File::from(terminal(path)?);
    // A terminal cannot be sought in; a file that only bears its name can.
    if terminal.stream_position().is_ok() {
        Err(Errno::ENOTTY)
    } else {
        Ok(Tried::Done)
    }
}
