//! Addresses as the kernel takes them, made from others.

use nix::errno::Errno;
use nix::libc;
use std::net::IpAddr;

/// A sockaddr of a path (unix(7)), which may be 107 bytes long.
pub fn unix_address(path: &[u8]) -> Result<Vec<u8>, Errno> {
    const LONGEST: usize = 107;
    if path.len() > LONGEST {
        return Err(Errno::ENAMETOOLONG);
    }
    let family = u16::try_from(libc::AF_UNIX).map_err(|_| Errno::EINVAL)?;
    Ok([&family.to_ne_bytes()[..], path, &[0]].concat())
}

/// The same internet address with another host (ip(7), ipv6(7)).
pub fn with_ip(address: &[u8], ip: IpAddr) -> Vec<u8> {
    let mut changed = address.to_vec();
    let (at, bytes) = match ip {
        IpAddr::V4(ip) => (4, ip.octets().to_vec()),
        IpAddr::V6(ip) => (8, ip.octets().to_vec()),
    };
    if let Some(place) = changed.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(&bytes);
    }
    changed
}

/// The same internet address with another port (ip(7), ipv6(7): after the family, in network order).
pub fn with_port(address: &[u8], port: u16) -> Vec<u8> {
    let mut changed = address.to_vec();
    if let Some(place) = changed.get_mut(2..4) {
        place.copy_from_slice(&port.to_be_bytes());
    }
    changed
}
