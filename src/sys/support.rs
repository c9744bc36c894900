//! Asking the kernel what it knows, by the system call itself and never by a file or a version. Nothing is changed.

use nix::errno::Errno;
use std::os::fd::AsFd as _;

/// landlock_create_ruleset(2) with LANDLOCK_CREATE_RULESET_VERSION: the highest ABI. `ENOSYS`: built without it;
/// `EOPNOTSUPP`: built in, but not switched on at boot.
pub fn landlock_abi() -> nix::Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel wants a null pointer and no size.
    let abi = super::check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    })?;
    u32::try_from(abi).map_err(|_| Errno::EINVAL)
}

/// The same with LANDLOCK_CREATE_RULESET_ERRATA (Linux 6.15): which known flaws of older kernels are mended, a bit each.
/// `EINVAL`: the kernel does not tell.
pub fn landlock_errata() -> nix::Result<u32> {
    const ERRATA: u32 = 2;
    // SAFETY: with this flag the kernel wants a null pointer and no size.
    let bits = super::check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            ERRATA,
        )
    })?;
    u32::try_from(bits).map_err(|_| Errno::EINVAL)
}

/// Whether a filter may return this action (seccomp(2), SECCOMP_GET_ACTION_AVAIL).
fn seccomp_action(action: u32) -> nix::Result<()> {
    const GET_ACTION_AVAIL: u32 = 2;
    // SAFETY: the kernel reads one word, which lives over the call.
    super::check(unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0_u32, std::ptr::from_ref(&action)) })
        .map(drop)
}

/// Filters that fail a call.
pub fn seccomp_filter() -> nix::Result<()> {
    seccomp_action(libc::SECCOMP_RET_ERRNO)
}

/// Filters that hand a call to a supervisor.
pub fn seccomp_notification() -> nix::Result<()> {
    seccomp_action(libc::SECCOMP_RET_USER_NOTIF)
}

/// Waits of a trapped call that only a fatal signal ends (Linux 5.19). The kernel looks at the flags first and then at
/// the program, which is not there: `EFAULT` means that it knows the flags.
pub fn seccomp_killable_wait() -> nix::Result<()> {
    const SET_MODE_FILTER: u32 = 1;
    const NEW_LISTENER: u64 = 1 << 3;
    const WAIT_KILLABLE: u64 = 1 << 5;
    // SAFETY: a null program is never installed: the kernel answers with an error before that.
    let answer = super::check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            SET_MODE_FILTER,
            NEW_LISTENER | WAIT_KILLABLE,
            std::ptr::null::<u8>(),
        )
    });
    match answer {
        Err(Errno::EFAULT) => Ok(()),
        other => other.map(drop),
    }
}

/// A duplicate of one's own standard input by pidfd_getfd(2), Linux 5.6.
pub fn pidfd_getfd() -> nix::Result<()> {
    let own = i32::try_from(std::process::id()).map_err(|_| Errno::EINVAL)?;
    let own = super::pidfd::open(own)?;
    super::pidfd::duplicate(own.as_fd(), 0).map(drop)
}

/// The newer calls for mounts, of which mount_setattr(2) is the youngest (Linux 5.12). Without a structure it is
/// `EINVAL` where the kernel has it.
pub fn new_mounts() -> nix::Result<()> {
    // SAFETY: the path is a NUL-terminated constant; the kernel looks at the size, which is 0, before the pointer.
    let answer = super::check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            -1_i32,
            c"".as_ptr(),
            0_u32,
            std::ptr::null::<u8>(),
            0_usize,
        )
    });
    match answer {
        Err(Errno::EINVAL | Errno::EBADF) => Ok(()),
        other => other.map(drop),
    }
}
