//! The one decision about a call: pure.

use super::destination::Destination;
use crate::base::Port;
use nix::errno::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which network a sandbox stands in, and what of it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Net {
    /// A namespace of its own: every address is its own loopback, every abstract name its own.
    Private {
        /// Ports that nothing inside may connect to.
        closed: Vec<Port>,
    },
    /// The host's, as in reduced mode: nothing but what is named here.
    Host {
        /// Ports of the host's loopback that may be connected to: the broker's listener, and granted ones.
        reach: Vec<Port>,
        /// Where something inside may listen, on loopback only.
        listen: Listen,
    },
}

/// Ports of loopback that something inside may bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    Any,
    /// These, and any that the kernel chooses (port 0).
    Only(Vec<Port>),
}

/// What a call does with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Connect,
    Bind,
    /// A datagram with an address.
    Send,
    /// The address is the socket's own.
    Listen,
}

/// Whether a socket keeps a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Stream,
    Datagram,
}

/// The decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    CarryOut,
    /// Only to a socket that was made inside or is granted: look which one it is.
    IfKnown,
    /// Only in a folder that is granted for writing: look which one it is.
    IfWritable,
    Refuse(Errno),
}

/// Decides by what the address says; the socket that a path or a name leads to is looked at next.
pub fn decide(net: &Net, act: Act, kind: Kind, destination: &Destination) -> Verdict {
    match (net, destination) {
        // IPv4 takes an address of no family for one of its own, but for a connect (ip(7)).
        (Net::Host { .. }, Destination::Nowhere) if act != Act::Connect => Verdict::Refuse(Errno::EACCES),
        (_, Destination::Nowhere | Destination::Netlink) => Verdict::CarryOut,
        // Where a socket file can be made is decided by its folder.
        (_, Destination::Path(_)) if act == Act::Bind => Verdict::IfWritable,
        (_, Destination::Path(_) | Destination::Abstract(_)) if act == Act::Listen => Verdict::CarryOut,
        (_, Destination::Path(_)) => Verdict::IfKnown,
        (Net::Private { .. }, Destination::Abstract(_)) => Verdict::CarryOut,
        // Anybody on the machine could connect to it.
        (Net::Host { .. }, Destination::Abstract(_)) if act == Act::Bind => Verdict::Refuse(Errno::EACCES),
        (Net::Host { .. }, Destination::Abstract(_)) => Verdict::IfKnown,
        (Net::Private { closed }, Destination::Internet { port, .. }) => match act {
            Act::Connect | Act::Send if has(closed, *port) => Verdict::Refuse(Errno::EACCES),
            _ => Verdict::CarryOut,
        },
        (Net::Host { reach, listen }, Destination::Internet { ip, port }) => {
            let open = is_own_loopback(*ip)
                && match act {
                    Act::Connect | Act::Send => has(reach, *port),
                    Act::Bind => *listen == Listen::Any || *port == 0 || listen.has(*port),
                    // Without a port of its own the kernel would choose one, on every address (listen(2)).
                    Act::Listen => *port != 0 && (*listen == Listen::Any || listen.has(*port)),
                };
            // A datagram's socket hears from anybody, and a granted port is one of TCP.
            if open && kind == Kind::Stream {
                Verdict::CarryOut
            } else {
                Verdict::Refuse(Errno::EACCES)
            }
        }
    }
}

impl Listen {
    fn has(&self, port: u16) -> bool {
        matches!(self, Listen::Only(ports) if has(ports, port))
    }
}

/// A server that wants to be reached on every address gets loopback: the address instead, for a port that it may have.
/// `only_six`: the socket takes no IPv4 (ipv6(7), IPV6_V6ONLY).
pub fn on_loopback(net: &Net, destination: &Destination, only_six: bool) -> Option<IpAddr> {
    let (Net::Host { listen, .. }, Destination::Internet { ip, port }) = (net, destination) else {
        return None;
    };
    match ip {
        _ if !listen.has(*port) => None,
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Some(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) if only_six => Some(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Some(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into()),
        _ => None,
    }
}

fn has(ports: &[Port], port: u16) -> bool {
    ports.iter().any(|known| known.get() == port)
}

/// The addresses that the broker and granted services have; not the rest of 127.0.0.0/8, where others may listen.
fn is_own_loopback(ip: IpAddr) -> bool {
    ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST
}

#[cfg(test)]
mod tests;
