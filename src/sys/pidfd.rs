//! Processes by descriptor (pidfd_open(2), Linux 5.3; pidfd_getfd(2), 5.6; setns by pidfd, 5.8).

use nix::sched::CloneFlags;
use nix::sys::signal::Signal;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// PIDFD_THREAD (Linux 6.9): refer to one thread instead of a process.
const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;

/// A descriptor for the process with this id.
pub fn open(pid: i32) -> nix::Result<OwnedFd> {
    // SAFETY: plain integers.
    super::owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// A descriptor for one thread; `EINVAL` before Linux 6.9.
pub fn open_thread(tid: i32) -> nix::Result<OwnedFd> {
    // SAFETY: plain integers.
    super::owned(unsafe { libc::syscall(libc::SYS_pidfd_open, tid, PIDFD_THREAD) })
}

/// A duplicate of that process's descriptor `fd`, close-on-exec.
pub fn duplicate(pidfd: impl AsFd, fd: RawFd) -> nix::Result<OwnedFd> {
    // SAFETY: plain integers; the pidfd lives over the call.
    super::owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_fd().as_raw_fd(), fd, 0) })
}

/// Sends a signal to exactly that process.
pub fn signal(pidfd: impl AsFd, signal: Signal) -> nix::Result<()> {
    // SAFETY: plain integers; a null siginfo means the kernel fills it as for kill(2).
    super::check(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_fd().as_raw_fd(),
            signal as libc::c_int,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    })
    .map(drop)
}

/// Moves this (single-threaded) process into namespaces of that process.
pub fn enter(pidfd: impl AsFd, kinds: CloneFlags) -> nix::Result<()> {
    nix::sched::setns(pidfd, kinds)
}
