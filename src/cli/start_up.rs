//! Putting this process in order before it reads a word of its arguments.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use std::os::fd::IntoRawFd as _;

/// Descriptors 0, 1 and 2 are open, and everything above them ends at an exec: nothing is handed on by accident.
pub fn sanitise() -> nix::Result<()> {
    for stream in 0..3 {
        open_if_closed(stream)?;
    }
    crate::sys::descriptor::close_on_exec_from(3)
}

/// The lowest free number is the one that the kernel gives, so opening until `stream` is taken fills the gap.
fn open_if_closed(stream: i32) -> nix::Result<()> {
    let file = nix::fcntl::open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
    let raw = std::os::fd::AsRawFd::as_raw_fd(&file);
    if raw == stream {
        // It stays open for the life of this process.
        fcntl(&file, FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))?;
        let _ = file.into_raw_fd();
        return Ok(());
    }
    if raw < stream { Err(Errno::EBADF) } else { Ok(()) }
}
