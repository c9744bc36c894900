//! Every system call that has no safe wrapper in nix; the only unsafe code of the project. Each function is safe to
//! call: the invariant that makes it so stands at its block.
#![allow(unsafe_code)]

pub mod capability;
pub mod clone;
pub mod descriptor;
pub mod interface;
pub mod interrupt;
pub mod mount;
pub mod names;
pub mod object;
pub mod pidfd;
pub mod probe;
pub mod seccomp;
pub mod socket;
pub mod support;
pub mod terminal;

/// Turns a raw return value into a result.
fn check(ret: libc::c_long) -> nix::Result<libc::c_long> {
    nix::errno::Errno::result(ret)
}

/// A raw non-negative descriptor number as the kernel returned it, owned from here on.
fn owned(ret: libc::c_long) -> nix::Result<std::os::fd::OwnedFd> {
    let raw = i32::try_from(check(ret)?).map_err(|_| nix::errno::Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor for us and nobody else owns it.
    Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(raw) })
}
