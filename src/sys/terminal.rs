//! Terminals: the few ioctls that nix has no function for (ioctl_tty(2)).

use nix::pty::Winsize;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The size in cells and pixels.
pub fn size(terminal: impl AsFd) -> nix::Result<Winsize> {
    let mut size = Winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let raw = terminal.as_fd().as_raw_fd();
    // SAFETY: TIOCGWINSZ writes one winsize, which lives over the call.
    let ret = unsafe { libc::ioctl(raw, libc::TIOCGWINSZ, std::ptr::from_mut(&mut size)) };
    super::check(ret.into())?;
    Ok(size)
}

/// Sets the size; the foreground group gets SIGWINCH.
pub fn set_size(terminal: impl AsFd, size: &Winsize) -> nix::Result<()> {
    let raw = terminal.as_fd().as_raw_fd();
    // SAFETY: TIOCSWINSZ reads one winsize, which lives over the call.
    let ret = unsafe { libc::ioctl(raw, libc::TIOCSWINSZ, std::ptr::from_ref(size)) };
    super::check(ret.into()).map(drop)
}

/// Makes the terminal the controlling one of this session leader.
pub fn make_controlling(terminal: impl AsFd) -> nix::Result<()> {
    // SAFETY: the argument is a plain 0: do not steal.
    super::check(unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCSCTTY, 0) }.into()).map(drop)
}

/// Unlocks the other side of a freshly opened `/dev/ptmx` and gives its number in `/dev/pts`.
pub fn unlock(master: impl AsFd) -> nix::Result<u32> {
    let lock: libc::c_int = 0;
    let raw = master.as_fd().as_raw_fd();
    // SAFETY: TIOCSPTLCK reads one int, which lives over the call.
    super::check(unsafe { libc::ioctl(raw, libc::TIOCSPTLCK, std::ptr::from_ref(&lock)) }.into())?;
    number(master)
}

/// The other side's number in its `/dev/pts`.
pub fn number(master: impl AsFd) -> nix::Result<u32> {
    let raw = master.as_fd().as_raw_fd();
    let mut number: libc::c_uint = 0;
    // SAFETY: TIOCGPTN writes one unsigned int, which lives over the call.
    super::check(unsafe { libc::ioctl(raw, libc::TIOCGPTN, std::ptr::from_mut(&mut number)) }.into())?;
    Ok(number)
}

/// Has the command lead a session of its own whose controlling terminal is its standard input; without a terminal there,
/// starting it fails.
pub fn lead_session(command: &mut Command) -> &mut Command {
    let lead = || {
        nix::unistd::setsid()?;
        // SAFETY: the argument is a plain 0: do not steal.
        super::check(unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) }.into())?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls, allocates nothing and takes no lock.
    unsafe { command.pre_exec(lead) }
}
