//! Which addresses are never dialled. The ranges are data: `profiles/addresses.json`.

use ipnet::IpNet;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

#[derive(Debug, Deserialize)]
struct Range {
    #[serde(deserialize_with = "parse_prefix")]
    prefix: IpNet,
    reason: String,
    #[serde(default)]
    service: bool,
}

#[derive(Debug, Deserialize)]
struct Table {
    ranges: Vec<Range>,
}

/// Longest prefix first. Nothing if the data is damaged: then everything is refused.
static RANGES: LazyLock<Option<Vec<Range>>> = LazyLock::new(|| {
    let mut table: Table = serde_json::from_str(include_str!("../../../profiles/addresses.json")).ok()?;
    table
        .ranges
        .sort_by_key(|range| std::cmp::Reverse(range.prefix.prefix_len()));
    Some(table.ranges)
});

const DAMAGED: &str = "the table of addresses is damaged";

/// Whether the broker may dial this address for an allowed name; otherwise which kind of address it is. To be asked
/// about the very address that is dialled, after the one look-up.
pub fn address_allowed(address: IpAddr) -> Result<(), &'static str> {
    match range_of(address)? {
        Some(range) => Err(&range.reason),
        None => Ok(()),
    }
}

/// Whether a service may be granted at this address: the host's loopback or a private network, written exactly.
pub fn service_address(address: SocketAddr) -> Result<(), &'static str> {
    match range_of(address.ip())? {
        _ if address.port() == 0 => Err("port 0 is no port"),
        Some(range) if range.service => Ok(()),
        Some(range) => Err(&range.reason),
        None => Err("public: allow its name instead"),
    }
}

fn parse_prefix<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<IpNet, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(serde::de::Error::custom)
}

fn range_of(address: IpAddr) -> Result<Option<&'static Range>, &'static str> {
    let ranges = RANGES.as_ref().ok_or(DAMAGED)?;
    Ok(ranges.iter().find(|range| range.prefix.contains(&address)))
}
