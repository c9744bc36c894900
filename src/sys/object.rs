//! What a descriptor or path refers to, with the mount it was reached through, and whether two threads share their
//! descriptors: neither `std` nor nix can tell.

use nix::sys::stat::makedev;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// One object of a file system as `statx` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Object {
    /// Device number of the file system, as in `st_dev`.
    pub dev: u64,
    pub ino: u64,
    /// File type and permission bits, as in `st_mode`.
    pub mode: u32,
    /// Device number of a device node, as in `st_rdev`; 0 for anything else.
    pub rdev: u64,
    /// The mount's id as in the first column of mountinfo; 0 where the kernel is older than 5.8.
    pub mount: u64,
}

/// Reads what `path` below `dir` refers to, following links (those of /proc included). One system call.
pub fn object_at(dir: BorrowedFd<'_>, path: &CStr) -> io::Result<Object> {
    look(dir, path, 0)
}

/// What an open descriptor refers to, one that is open as a path only among them.
pub fn object_of(file: BorrowedFd<'_>) -> io::Result<Object> {
    look(file, c"", libc::AT_EMPTY_PATH)
}

fn look(dir: BorrowedFd<'_>, path: &CStr, flags: libc::c_int) -> io::Result<Object> {
    let mask = libc::STATX_BASIC_STATS | libc::STATX_MNT_ID;
    let flags = flags | libc::AT_NO_AUTOMOUNT | libc::AT_STATX_DONT_SYNC;
    let mut seen = std::mem::MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: `path` is NUL-terminated and outlives the call, `dir` is open for its duration, and the kernel writes at
    // most one `struct statx` into the buffer of exactly that type.
    let result = unsafe { libc::statx(dir.as_raw_fd(), path.as_ptr(), flags, mask, seen.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the structure is plain integers, was zeroed, and the successful call filled it.
    let seen = unsafe { seen.assume_init() };
    Ok(Object {
        dev: makedev(seen.stx_dev_major.into(), seen.stx_dev_minor.into()),
        ino: seen.stx_ino,
        mode: seen.stx_mode.into(),
        rdev: makedev(seen.stx_rdev_major.into(), seen.stx_rdev_minor.into()),
        mount: if seen.stx_mask & libc::STATX_MNT_ID == 0 {
            0
        } else {
            seen.stx_mnt_id
        },
    })
}

/// Whether two threads, by the caller's numbers, have one table of descriptors (`kcmp`). A kernel without the call, or
/// a thread that is gone, is an error: look at both then.
pub fn share_descriptors(first: i32, second: i32) -> io::Result<bool> {
    const KCMP_FILES: i32 = 2;
    // SAFETY: the call takes no pointer; the last two arguments are unused for this kind of comparison.
    match unsafe { libc::syscall(libc::SYS_kcmp, first, second, KCMP_FILES, 0_u64, 0_u64) } {
        -1 => Err(io::Error::last_os_error()),
        order => Ok(order == 0),
    }
}

/// A file of memory that even the kernel does not map (memfd_secret(2), Linux 5.14); `ENOSYS` where it is switched off.
pub fn secret_memory() -> nix::Result<std::os::fd::OwnedFd> {
    // SAFETY: the call takes no pointer.
    super::owned(unsafe { libc::syscall(libc::SYS_memfd_secret, libc::O_CLOEXEC) })
}

#[cfg(test)]
mod tests {
    use super::{object_at, share_descriptors};
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn an_object_is_what_stat_says_and_names_its_mount() {
        let root = std::fs::File::open("/dev").unwrap();
        let seen = object_at(root.as_fd(), c"null").unwrap();
        let known = std::fs::metadata("/dev/null").unwrap();
        assert_eq!(
            (seen.dev, seen.ino, seen.mode, seen.rdev),
            (known.dev(), known.ino(), known.mode(), known.rdev())
        );
        assert_ne!(seen.mount, object_at(root.as_fd(), c"/proc").unwrap().mount);
        assert_eq!(
            object_at(root.as_fd(), c"none").unwrap_err().kind(),
            std::io::ErrorKind::NotFound
        );
    }

    #[test]
    fn threads_share_descriptors_and_processes_do_not() {
        let own = std::process::id().try_into().unwrap();
        let shared = std::thread::spawn(move || share_descriptors(own, nix::unistd::gettid().as_raw()));
        assert!(shared.join().unwrap().unwrap());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!share_descriptors(own, child.id().try_into().unwrap()).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
