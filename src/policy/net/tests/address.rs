//! Which addresses are public.

use super::*;

#[test]
fn refuses_every_address_that_is_not_public() {
    for (address, reason) in [
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("10.1.2.3", "private"),
        ("100.64.0.1", "carrier-grade"),
        ("100.100.100.200", "metadata"),
        ("100.127.255.255", "carrier-grade"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("168.63.129.16", "metadata"),
        ("169.254.1.1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.8", "protocol"),
        ("192.0.2.1", "documentation"),
        ("192.168.1.1", "private"),
        ("198.18.0.1", "benchmarking"),
        ("198.19.255.255", "benchmarking"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::7f00:1", "compatible"),
        ("::ffff:127.0.0.1", "mapped"),
        ("::ffff:8.8.8.8", "mapped"),
        ("::ffff:0:127.0.0.1", "translated"),
        ("64:ff9b::7f00:1", "NAT64"),
        ("64:ff9b::a9fe:a9fe", "NAT64"),
        ("64:ff9b:1::1", "NAT64"),
        ("2001:0:1::1", "Teredo"),
        ("2001:db8::1", "documentation"),
        ("2002:7f00:1::", "6to4"),
        ("3fff::1", "documentation"),
        ("fc00::1", "unique local"),
        ("fd00:ec2::254", "metadata"),
        ("fe80::1", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
    ] {
        let refused = address_allowed(address.parse().unwrap());
        assert!(
            refused.is_err_and(|found| found.contains(reason)),
            "{address}: {refused:?}, not {reason}"
        );
    }
}

#[test]
fn lets_public_addresses_pass_up_to_the_edges_of_the_ranges() {
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450::1",
        "2001:4860::8888",
        "2003::1",
        "64:ff9a::1",
    ] {
        assert_eq!(address_allowed(address.parse().unwrap()), Ok(()), "{address}");
    }
}
