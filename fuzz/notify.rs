//! What a trapped call names: socket addresses, message headers, their pieces and control data.

use crate::harness::Random;
use pinfold::sandbox::mediate::destination::Destination;
use pinfold::sandbox::mediate::request::{Parts, pieces, rights};
use std::net::{IpAddr, Ipv6Addr};

/// Reads an address, and compares with what its bytes say where that is simple.
pub fn address(input: &[u8], _: &mut Random) -> Result<(), String> {
    let family = input.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes));
    let parsed = Destination::parse(input);
    let fits = match (&parsed, family) {
        (Ok(Destination::Internet { port, .. }), Some(2 | 10)) => input[2..4] == port.to_be_bytes(),
        (Ok(Destination::Path(path)), Some(1)) => {
            !path.is_empty() && !path.contains(&0) && input[2..].starts_with(path)
        }
        (Ok(Destination::Abstract(name)), Some(1)) => {
            input.get(2).is_none_or(|first| *first == 0) && input.ends_with(name)
        }
        (Ok(Destination::Nowhere), Some(0)) | (Ok(Destination::Netlink), Some(16)) => true,
        (Err(_), Some(2)) => input.len() < 8,
        (Err(_), Some(10)) => input.len() < 24,
        (Err(_), family) => !matches!(family, Some(0 | 1 | 16)),
        (Ok(_), _) => false,
    };
    if !fits {
        return Err(format!("read as {parsed:?}"));
    }
    mapped_is_v4(input, |ip| match Destination::parse(&v6(ip)) {
        Ok(Destination::Internet { ip, .. }) => ip,
        _ => ip,
    })
}

fn v6(ip: IpAddr) -> Vec<u8> {
    let IpAddr::V6(ip) = ip else { return Vec::new() };
    [&10_u16.to_ne_bytes()[..], &[0; 6], &ip.octets(), &[0; 4]].concat()
}

/// An IPv4 address in IPv6 clothes, taken from the input, is that IPv4 address.
pub fn mapped_is_v4(input: &[u8], read: impl Fn(IpAddr) -> IpAddr) -> Result<(), String> {
    let Some(four) = input.last_chunk::<4>() else {
        return Ok(());
    };
    let plain = std::net::Ipv4Addr::from(*four);
    let mapped: Ipv6Addr = plain.to_ipv6_mapped();
    let seen = read(mapped.into());
    if seen == IpAddr::V4(plain) {
        Ok(())
    } else {
        Err(format!("v4-mapped {mapped} was read as {seen}"))
    }
}

/// Reads a header, then the rest as pieces and as control data: bounded, whatever they claim.
pub fn message(input: &[u8], _: &mut Random) -> Result<(), String> {
    let (header, rest) = input.split_at(input.len().min(56));
    if let Ok(parts) = Parts::parse(header) {
        if parts.pieces.length > 16 * 1024 || parts.control.length > 4096 || parts.address.length > u64::from(u32::MAX)
        {
            return Err(format!("more than a message may have: {parts:?}"));
        }
    }
    if let Ok(found) = pieces(rest) {
        if found.len() != rest.len().div_ceil(16) {
            return Err(format!("{} pieces from {} bytes", found.len(), rest.len()));
        }
    }
    match rights(rest) {
        Ok(numbers) if numbers.len() > 253 || numbers.len() * 4 > rest.len() => {
            Err(format!("{} descriptors from {} bytes", numbers.len(), rest.len()))
        }
        _ => Ok(()),
    }
}
