//! What an address says, and the one decision about it.

use super::diag::SocketFile;
use crate::base::Port;
use nix::errno::Errno;
use nix::libc;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Where a connect wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Any IPv4 or IPv6 address; every address of a sandbox's namespace is its own loopback.
    Internet { port: u16 },
    /// A Unix socket by path, absolute or relative.
    Path(PathBuf),
    /// A Unix socket of the sandbox's own network namespace, by abstract name.
    Abstract,
    /// AF_UNSPEC: forget the peer.
    Nowhere,
    /// Netlink, which seccomp has narrowed to routes.
    Netlink,
}

/// The decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    CarryOut,
    Refuse(Errno),
}

/// Nothing inside connects to a closed port, whatever the address; the rest stays within the sandbox's own namespaces.
pub fn decide(closed: &[Port], destination: &Destination) -> Verdict {
    match destination {
        Destination::Internet { port } if closed.iter().any(|closed| closed.get() == *port) => {
            Verdict::Refuse(Errno::EACCES)
        }
        _ => Verdict::CarryOut,
    }
}

/// A socket file is connected to if the policy grants it, or if a socket made inside is bound to it.
pub fn decide_file(file: SocketFile, granted: &[SocketFile], inside: &BTreeSet<SocketFile>) -> Verdict {
    if granted.contains(&file) || inside.contains(&file) {
        Verdict::CarryOut
    } else {
        Verdict::Refuse(Errno::EACCES)
    }
}

impl Destination {
    /// Reads a sockaddr as the kernel does (unix(7), ip(7), ipv6(7)).
    pub fn parse(address: &[u8]) -> Result<Destination, Errno> {
        let family = address
            .first_chunk()
            .map(|bytes| i32::from(u16::from_ne_bytes(*bytes)))
            .ok_or(Errno::EINVAL)?;
        let rest = address.get(2..).unwrap_or_default();
        match family {
            libc::AF_INET | libc::AF_INET6 => {
                let port = rest
                    .first_chunk()
                    .map(|bytes| u16::from_be_bytes(*bytes))
                    .ok_or(Errno::EINVAL)?;
                Ok(Destination::Internet { port })
            }
            libc::AF_UNIX => match rest {
                [] => Err(Errno::EINVAL),
                [0, ..] => Ok(Destination::Abstract),
                name => {
                    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                    let name = name.get(..end).unwrap_or_default();
                    Ok(Destination::Path(OsString::from_vec(name.to_vec()).into()))
                }
            },
            libc::AF_UNSPEC => Ok(Destination::Nowhere),
            libc::AF_NETLINK => Ok(Destination::Netlink),
            _ => Err(Errno::EAFNOSUPPORT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Destination, SocketFile, Verdict, decide, decide_file};
    use crate::base::Port;
    use nix::errno::Errno;
    use std::collections::BTreeSet;

    fn address(family: i32, rest: &[u8]) -> Vec<u8> {
        [&u16::try_from(family).unwrap().to_ne_bytes()[..], rest].concat()
    }

    #[test]
    fn a_closed_port_is_refused_by_every_family_and_address() {
        let closed = [Port::new(20_000).unwrap()];
        let port = 20_000_u16.to_be_bytes();
        let v4 = address(nix::libc::AF_INET, &[&port[..], &[127, 0, 0, 1]].concat());
        let v6 = address(nix::libc::AF_INET6, &[&port[..], &[0; 20]].concat());
        for bytes in [v4, v6] {
            let destination = Destination::parse(&bytes).unwrap();
            assert_eq!(decide(&closed, &destination), Verdict::Refuse(Errno::EACCES));
            assert_eq!(decide(&[], &destination), Verdict::CarryOut);
        }
        let other = Destination::Internet { port: 20_001 };
        assert_eq!(decide(&closed, &other), Verdict::CarryOut);
    }

    #[test]
    fn a_socket_file_needs_a_grant_or_a_socket_inside() {
        let file = |ino| SocketFile { dev: 1, ino };
        let inside = BTreeSet::from([file(2)]);
        assert_eq!(decide_file(file(1), &[file(1)], &inside), Verdict::CarryOut);
        assert_eq!(decide_file(file(2), &[file(1)], &inside), Verdict::CarryOut);
        assert_eq!(
            decide_file(file(3), &[file(1)], &inside),
            Verdict::Refuse(Errno::EACCES)
        );
        assert_eq!(
            decide_file(SocketFile { dev: 2, ino: 2 }, &[], &inside),
            Verdict::Refuse(Errno::EACCES)
        );
    }

    #[test]
    fn unix_names_are_told_apart() {
        let unix = |rest: &[u8]| Destination::parse(&address(nix::libc::AF_UNIX, rest));
        assert_eq!(unix(b"/run/x\0junk"), Ok(Destination::Path("/run/x".into())));
        assert_eq!(unix(b"rel/x"), Ok(Destination::Path("rel/x".into())));
        assert_eq!(unix(b"\0name"), Ok(Destination::Abstract));
        assert_eq!(unix(b""), Err(Errno::EINVAL));
    }

    #[test]
    fn short_and_foreign_addresses_are_errors() {
        assert_eq!(Destination::parse(&[]), Err(Errno::EINVAL));
        assert_eq!(Destination::parse(&[2]), Err(Errno::EINVAL));
        assert_eq!(
            Destination::parse(&address(nix::libc::AF_INET, &[1])),
            Err(Errno::EINVAL)
        );
        assert_eq!(
            Destination::parse(&address(nix::libc::AF_VSOCK, &[0; 14])),
            Err(Errno::EAFNOSUPPORT)
        );
    }
}
