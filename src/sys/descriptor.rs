//! Whole ranges of descriptors, and descriptors over a socket.

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg, sendmsg};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Marks every descriptor from `first` up close-on-exec (close_range(2), Linux 5.11).
pub fn close_on_exec_from(first: u32) -> nix::Result<()> {
    // SAFETY: marking closes nothing, so no owner in this process loses its descriptor.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    super::check(ret).map(drop)
}

/// Closes every descriptor above 2 but those in `keep`.
///
/// For a freshly made child only: values copied from the parent that own other descriptors must never be used or
/// dropped afterwards, so the caller must end in exec or [`super::clone::leave`].
pub fn close_all_but(keep: &[RawFd]) -> nix::Result<()> {
    let mut keep: Vec<u32> = keep
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .filter(|fd| *fd > 2)
        .collect();
    keep.sort_unstable();
    keep.dedup();
    let mut first = 3;
    for fd in keep {
        if fd > first {
            close_range(first, fd - 1)?;
        }
        first = fd + 1;
    }
    close_range(first, libc::c_uint::MAX)
}

fn close_range(first: u32, last: u32) -> nix::Result<()> {
    // SAFETY: the caller's contract (see `close_all_but`): owners of these descriptors are never touched again.
    super::check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// What came over a control socket: the bytes, the descriptors, and the sender's process id in the receiver's PID
/// namespace where the receiver asked for credentials.
pub struct Received {
    pub length: usize,
    pub descriptors: Vec<OwnedFd>,
    pub sender: Option<i32>,
}

/// Most descriptors in one message (SCM_MAX_FD, unix(7)).
pub const MOST: usize = 253;

/// Sends `bytes` and descriptors in one message; never raises SIGPIPE.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[RawFd]) -> nix::Result<()> {
    if descriptors.is_empty() {
        // Never sendmsg where that is not needed: it may be trapped.
        return nix::sys::socket::send(socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL).map(drop);
    }
    sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(bytes)],
        &[ControlMessage::ScmRights(descriptors)],
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
    .map(drop)
}

/// Closes a descriptor without waiting for what its close takes: the kernel does it, a moment later.
///
/// The last reference to it stands in the queue of a socket that only that queue itself refers to, which the kernel's
/// own thread finds and takes apart (unix(7) sockets since Linux 6.9; older ones do it before this returns).
pub fn close_later(descriptor: OwnedFd) -> nix::Result<()> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    let (from, into) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    send(from.as_fd(), &[0], &[into.as_raw_fd(), descriptor.as_raw_fd()])?;
    // Before the sockets: else this reference would be the last one.
    drop(descriptor);
    Ok(())
}

/// Receives one message; every descriptor is close-on-exec. Length 0 means that the other side is gone.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> nix::Result<Received> {
    let mut space = nix::cmsg_space!([RawFd; MOST], UnixCredentials);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let mut received = Received {
        length: message.bytes,
        descriptors: Vec::new(),
        sender: None,
    };
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::ScmRights(raw) => {
                // SAFETY: the kernel has just put these descriptors into our table; nobody else owns them.
                received
                    .descriptors
                    .extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
            }
            ControlMessageOwned::ScmCredentials(credentials) => received.sender = Some(credentials.pid()),
            _ => {}
        }
    }
    Ok(received)
}

/// A descriptor number from the environment or the command line (`--status-fd`), taken over if it is open.
pub fn inherited(raw: RawFd) -> nix::Result<OwnedFd> {
    if raw < 3 {
        return Err(nix::errno::Errno::EBADF);
    }
    // SAFETY: F_GETFD on any number is harmless and fails with EBADF on a closed one.
    super::check(unsafe { libc::fcntl(raw, libc::F_GETFD) }.into())?;
    // SAFETY: called once per number at start, before anything of ours opened descriptors that could have it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: the descriptor is open and ours.
    super::check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) }.into())?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    #[test]
    fn what_is_closed_later_is_closed() {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        let told = |patience| {
            let mut polled = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
            poll(&mut polled, PollTimeout::from(patience)).unwrap()
        };
        assert_eq!(told(50u16), 0, "somebody can write to it");
        close_later(writer).unwrap();
        assert_eq!(told(20_000u16), 1, "nobody can any more");
    }
}
