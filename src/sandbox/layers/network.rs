//! Network: a namespace with nothing but its own loopback; listeners that the supervisor serves are made here and
//! handed out, so that the host's network is never named inside.

use crate::base::Port;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrIn, bind, listen, socket};
use std::os::fd::{AsRawFd, OwnedFd};

/// Brings up `lo`.
pub fn loopback() -> nix::Result<()> {
    crate::sys::interface::loopback_up()
}

/// Lets a command without capabilities listen on every port of this namespace, as a dev server on port 80 wants to
/// (ip(7)). Must run while the host's /proc still stands. Where /proc/sys is read-only, as in some containers, ports
/// below 1024 stay closed to the command; nothing else depends on it.
pub fn free_low_ports() {
    let _ = std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
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
