//! Installing filters and answering notifications (seccomp(2), seccomp_unotify(2)).

use nix::errno::Errno;
use seccompiler::sock_filter;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

const SET_MODE_FILTER: libc::c_uint = 1;
const NEW_LISTENER: libc::c_ulong = 1 << 3;
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;
/// SECCOMP_IOCTL_NOTIF_SET_FLAGS, and its one flag (linux/seccomp.h, Linux 6.6).
const SET_FLAGS: u64 = 0x4008_2104;
const SYNC_WAKE_UP: u64 = 1;

#[repr(C)]
struct Program {
    length: libc::c_ushort,
    filter: *const sock_filter,
}

/// Installs a filter on the calling thread; no_new_privs must be set.
pub fn install(filter: &[sock_filter]) -> nix::Result<()> {
    load(filter, 0).map(drop)
}

/// Installs a filter whose `USER_NOTIF` results go to the returned listener. The wait is killable where the kernel
/// can do that (Linux 5.19), so that a signal does not restart a call that was already carried out.
pub fn install_listener(filter: &[sock_filter]) -> nix::Result<OwnedFd> {
    match load(filter, NEW_LISTENER | WAIT_KILLABLE) {
        Err(Errno::EINVAL) => super::owned(load(filter, NEW_LISTENER)?),
        other => super::owned(other?),
    }
}

fn load(filter: &[sock_filter], flags: libc::c_ulong) -> nix::Result<libc::c_long> {
    let length = libc::c_ushort::try_from(filter.len()).map_err(|_| Errno::E2BIG)?;
    let program = Program {
        length,
        filter: filter.as_ptr(),
    };
    // SAFETY: `program` has the layout of struct sock_fprog and points at `length` filters; both live over the call,
    // and the kernel copies them.
    super::check(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, std::ptr::from_ref(&program)) })
}

/// Asks the kernel to run supervisor and caller in turns on one processor, which is what they do anyway: a mediated call
/// then costs a good third less. `EINVAL` before Linux 6.6.
pub fn in_turns(listener: impl AsFd) -> nix::Result<()> {
    // SAFETY: this ioctl takes its flags by value.
    let ret = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) };
    super::check(ret.into()).map(drop)
}

/// One trapped call.
#[derive(Debug, Clone, Copy)]
pub struct Notification {
    pub id: u64,
    /// The calling thread, in the receiver's PID namespace.
    pub tid: i32,
    pub number: i32,
    pub args: [u64; 6],
}

/// Waits for the next trapped call. `ENOENT`: the caller died meanwhile; try again.
pub fn receive(listener: impl AsFd) -> nix::Result<Notification> {
    // SAFETY: all-zero bytes are a valid seccomp_notif, and the kernel demands zeroes.
    let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    let raw_fd = listener.as_fd().as_raw_fd();
    // SAFETY: the ioctl writes one seccomp_notif, which lives over the call.
    let ret = unsafe {
        libc::ioctl(
            raw_fd,
            libc::SECCOMP_IOCTL_NOTIF_RECV as _,
            std::ptr::from_mut(&mut raw),
        )
    };
    super::check(ret.into())?;
    let tid = i32::try_from(raw.pid).map_err(|_| Errno::ESRCH)?;
    Ok(Notification {
        id: raw.id,
        tid,
        number: raw.data.nr,
        args: raw.data.args,
    })
}

/// Whether the trapped call still waits; only then was what we read of the caller really the caller's.
pub fn still_waits(listener: impl AsFd, id: u64) -> bool {
    // SAFETY: the ioctl reads one u64, which lives over the call.
    let ret = unsafe {
        libc::ioctl(
            listener.as_fd().as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _,
            std::ptr::from_ref(&id),
        )
    };
    ret == 0
}

/// Ends a trapped call with what it returns or an error number. There is no way to say "continue" here, on purpose.
pub fn answer(listener: impl AsFd, id: u64, result: Result<i64, Errno>) -> nix::Result<()> {
    let error = result.err().map_or(0, |errno| -(errno as i32));
    let response = libc::seccomp_notif_resp {
        id,
        val: result.unwrap_or(0),
        error,
        flags: 0,
    };
    let raw_fd = listener.as_fd().as_raw_fd();
    // SAFETY: the ioctl reads one seccomp_notif_resp, which lives over the call.
    let ret = unsafe {
        libc::ioctl(
            raw_fd,
            libc::SECCOMP_IOCTL_NOTIF_SEND as _,
            std::ptr::from_ref(&response),
        )
    };
    super::check(ret.into()).map(drop)
}
