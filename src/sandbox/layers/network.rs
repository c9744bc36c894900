//! Network: a namespace with nothing but its own loopback; listeners that the supervisor serves are made here and
//! handed out, so that the host's network is never named inside.

use crate::base::Port;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrIn, bind, listen, socket};
use std::os::fd::{AsRawFd, OwnedFd};

/// Brings up `lo`.
pub fn loopback() -> nix::Result<()> {
    crate::sys::interface::loopback_up()
}

/// A listener on 127.0.0.1:`port` of this namespace, non-blocking.
pub fn inlet(port: Port) -> nix::Result<OwnedFd> {
    let listener = stream()?;
    bind(listener.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, port.get()))?;
    listen(&listener, Backlog::MAXCONN)?;
    Ok(listener)
}

/// An unconnected TCP socket of this namespace, non-blocking.
pub fn stream() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Inet, SockType::Stream, flags, SockProtocol::Tcp)
}
