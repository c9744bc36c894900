//! A new process in new namespaces in one call.

use nix::sched::CloneFlags;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd, OwnedFd};

/// clone3(2): the child begins in the control group of a descriptor.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which side of the call this is.
pub enum Side {
    /// The caller: the child's process id and a pidfd for it.
    Parent { pid: i32, pidfd: OwnedFd },
    /// The new process.
    Child,
}

/// clone3(2) without a new stack, like fork, with `flags` (`CLONE_NEW*`). Linux 5.3.
///
/// The caller must have a single thread: the child runs ordinary code (it allocates), which is sound only when no
/// other thread can have held a lock at that moment. `Err(EDEADLK)` if it has more. The child is in `group` from its
/// first instruction on, if there is one (CLONE_INTO_CGROUP, Linux 5.7).
pub fn into_namespaces(flags: CloneFlags, group: Option<BorrowedFd<'_>>) -> nix::Result<Side> {
    if threads() != Some(1) {
        return Err(nix::errno::Errno::EDEADLK);
    }
    let mut pidfd: libc::c_int = -1;
    let bits = u64::try_from(flags.bits()).map_err(|_| nix::errno::Errno::EINVAL)?;
    let pidfd_flag = u64::try_from(libc::CLONE_PIDFD).map_err(|_| nix::errno::Errno::EINVAL)?;
    let signal = u64::try_from(libc::SIGCHLD).map_err(|_| nix::errno::Errno::EINVAL)?;
    let mut args = libc::clone_args {
        flags: bits | pidfd_flag | group.map_or(0, |_| CLONE_INTO_CGROUP),
        pidfd: std::ptr::from_mut(&mut pidfd).expose_provenance() as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: signal,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: group
            .map_or(Ok(0), |group| u64::try_from(group.as_raw_fd()))
            .map_err(|_| nix::errno::Errno::EBADF)?,
    };
    // SAFETY: `args` is a valid clone_args of the size given; with no CLONE_VM and no stack the child continues on a
    // copy of this stack exactly as after fork, and the process has one thread (checked above).
    let ret = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            std::ptr::from_mut(&mut args),
            size_of::<libc::clone_args>(),
        )
    };
    match super::check(ret)? {
        0 => Ok(Side::Child),
        pid => {
            let pid = i32::try_from(pid).map_err(|_| nix::errno::Errno::EINVAL)?;
            // SAFETY: CLONE_PIDFD made the kernel store a new descriptor here; nobody else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Side::Parent { pid, pidfd })
        }
    }
}

/// fork(2), with a pidfd for the child. The caller must have a single thread; see [`into_namespaces`].
pub fn beside() -> nix::Result<Side> {
    match fork()? {
        None => Ok(Side::Child),
        Some(pid) => {
            // Nobody but the caller collects the child, so its number is still its own.
            let pidfd = super::pidfd::open(pid)?;
            Ok(Side::Parent { pid, pidfd })
        }
    }
}

/// fork(2) with one table of descriptors for both: what either opens or closes, the other has too. By clone(2), since
/// containers refuse clone3 as a whole, whose flags a filter cannot see. See [`into_namespaces`] for what the caller
/// must be.
pub fn sharing_descriptors() -> nix::Result<Option<i32>> {
    if threads() != Some(1) {
        return Err(nix::errno::Errno::EDEADLK);
    }
    let flags = libc::c_long::from(libc::CLONE_FILES | libc::SIGCHLD);
    let none: libc::c_long = 0;
    // SAFETY: with no CLONE_VM and no stack the child continues on a copy of this stack exactly as after fork, the
    // process has one thread (checked above), and no flag asks the kernel to store anything.
    let ret = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    match super::check(ret)? {
        0 => Ok(None),
        pid => Ok(Some(i32::try_from(pid).map_err(|_| nix::errno::Errno::EINVAL)?)),
    }
}

/// fork(2) for a process with a single thread; see [`into_namespaces`].
pub fn fork() -> nix::Result<Option<i32>> {
    if threads() != Some(1) {
        return Err(nix::errno::Errno::EDEADLK);
    }
    // SAFETY: the process has one thread, so no lock can be held by a thread that does not exist in the child.
    match unsafe { nix::unistd::fork()? } {
        nix::unistd::ForkResult::Child => Ok(None),
        nix::unistd::ForkResult::Parent { child } => Ok(Some(child.as_raw())),
    }
}

/// Ends the calling process at once, without running destructors or exit handlers of the copied parent.
pub fn leave(code: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// Puts every signal but those in `ignored` back to its default action and unblocks all, as a fresh program expects.
pub fn default_signals(ignored: &[Signal]) -> nix::Result<()> {
    let fixed = |each: &Signal| matches!(each, Signal::SIGKILL | Signal::SIGSTOP) || ignored.contains(each);
    for each in Signal::iterator().filter(|each| !fixed(each)) {
        // SAFETY: the default action installs no code of ours.
        unsafe { signal(each, SigHandler::SigDfl) }?;
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// Whether this process was started with the signal ignored, as `nohup` and background jobs of scripts are.
pub fn is_ignored(each: Signal) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action only asks; the kernel writes one sigaction, which lives over the call.
    let asked = unsafe { libc::sigaction(each as libc::c_int, std::ptr::null(), std::ptr::from_mut(&mut now)) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

fn threads() -> Option<usize> {
    std::fs::read_dir("/proc/self/task").ok().map(Iterator::count)
}
