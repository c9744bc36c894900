//! What an address says.

use nix::errno::Errno;
use nix::libc;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where a call wants to go, or what it wants to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// An IPv4 or IPv6 address; a v4-mapped one is the IPv4 address that it stands for.
    Internet { ip: IpAddr, port: u16 },
    /// A Unix socket by path, absolute or relative.
    Path(Vec<u8>),
    /// A Unix socket of a network namespace, by abstract name; empty where the kernel is to choose one.
    Abstract(Vec<u8>),
    /// AF_UNSPEC: forget the peer.
    Nowhere,
    /// Netlink, which seccomp has narrowed to routes.
    Netlink,
}

impl Destination {
    /// Reads a sockaddr as the kernel does (unix(7), ip(7), ipv6(7)).
    pub fn parse(address: &[u8]) -> Result<Destination, Errno> {
        let family = first(address).map(|bytes| i32::from(u16::from_ne_bytes(bytes)))?;
        let rest = address.get(2..).unwrap_or_default();
        match family {
            libc::AF_INET => Ok(Destination::Internet {
                port: port(rest)?,
                ip: Ipv4Addr::from(first::<4>(rest.get(2..).unwrap_or_default())?).into(),
            }),
            libc::AF_INET6 => {
                // The flow's label stands between port and address.
                let ip = Ipv6Addr::from(first::<16>(rest.get(6..).unwrap_or_default())?);
                Ok(Destination::Internet {
                    port: port(rest)?,
                    ip: ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
                })
            }
            libc::AF_UNIX => match rest {
                [] => Ok(Destination::Abstract(Vec::new())),
                [0, name @ ..] => Ok(Destination::Abstract(name.to_vec())),
                name => {
                    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                    Ok(Destination::Path(name.get(..end).unwrap_or_default().to_vec()))
                }
            },
            libc::AF_UNSPEC => Ok(Destination::Nowhere),
            libc::AF_NETLINK => Ok(Destination::Netlink),
            _ => Err(Errno::EAFNOSUPPORT),
        }
    }
}

fn port(rest: &[u8]) -> Result<u16, Errno> {
    first(rest).map(u16::from_be_bytes)
}

fn first<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Errno> {
    bytes.first_chunk().copied().ok_or(Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::Destination;
    use nix::errno::Errno;
    use nix::libc;

    fn address(family: i32, rest: &[u8]) -> Vec<u8> {
        [&u16::try_from(family).unwrap().to_ne_bytes()[..], rest].concat()
    }

    #[test]
    fn one_service_has_one_name_in_every_family() {
        let port = 8080_u16.to_be_bytes();
        let v4 = address(libc::AF_INET, &[&port[..], &[127, 0, 0, 1], &[0; 8]].concat());
        let mapped = [&[0; 10][..], &[255, 255, 127, 0, 0, 1]].concat();
        let mapped = address(libc::AF_INET6, &[&port[..], &[0; 4], &mapped, &[0; 4]].concat());
        let expected = Destination::Internet {
            ip: [127, 0, 0, 1].into(),
            port: 8080,
        };
        assert_eq!(Destination::parse(&v4), Ok(expected.clone()));
        assert_eq!(Destination::parse(&mapped), Ok(expected));
        let own = [&port[..], &[9; 4], &[0; 15], &[1], &[0; 4]].concat();
        let own = Destination::parse(&address(libc::AF_INET6, &own));
        assert!(matches!(own, Ok(Destination::Internet { ip, port: 8080 }) if ip.is_loopback()));
    }

    #[test]
    fn unix_names_are_told_apart() {
        let unix = |rest: &[u8]| Destination::parse(&address(libc::AF_UNIX, rest));
        assert_eq!(unix(b"/run/x\0junk"), Ok(Destination::Path(b"/run/x".to_vec())));
        assert_eq!(unix(b"rel/x"), Ok(Destination::Path(b"rel/x".to_vec())));
        assert_eq!(unix(b"\0name\0"), Ok(Destination::Abstract(b"name\0".to_vec())));
        assert_eq!(unix(b""), Ok(Destination::Abstract(Vec::new())));
    }

    #[test]
    fn short_and_foreign_addresses_are_errors() {
        let port = [1, 2];
        for bytes in [
            vec![],
            vec![2],
            address(libc::AF_INET, &[1]),
            address(libc::AF_INET, &port),
            address(libc::AF_INET, &[&port[..], &[127, 0, 0]].concat()),
            address(libc::AF_INET6, &[&port[..], &[0; 19]].concat()),
        ] {
            assert_eq!(Destination::parse(&bytes), Err(Errno::EINVAL), "{bytes:?}");
        }
        assert_eq!(
            Destination::parse(&address(libc::AF_VSOCK, &[0; 14])),
            Err(Errno::EAFNOSUPPORT)
        );
    }
}
