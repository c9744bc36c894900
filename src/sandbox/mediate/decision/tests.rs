use super::{Act, Kind, Listen, Net, Verdict, decide, on_loopback};
use crate::base::Port;
use crate::sandbox::mediate::destination::Destination;
use nix::errno::Errno;

const OPEN: Verdict = Verdict::CarryOut;
const SHUT: Verdict = Verdict::Refuse(Errno::EACCES);
const ACTS: [Act; 4] = [Act::Connect, Act::Bind, Act::Send, Act::Listen];
const KINDS: [Kind; 2] = [Kind::Stream, Kind::Datagram];

fn ports(ports: &[u16]) -> Vec<Port> {
    ports.iter().map(|port| Port::new(*port).unwrap()).collect()
}

fn at(ip: &str, port: u16) -> Destination {
    Destination::Internet {
        ip: ip.parse().unwrap(),
        port,
    }
}

fn private() -> Net {
    Net::Private {
        closed: ports(&[20_000]),
    }
}

fn host(listen: Listen) -> Net {
    Net::Host {
        reach: ports(&[18_999, 5432]),
        listen,
    }
}

#[test]
fn a_closed_port_is_refused_whatever_the_address() {
    for ip in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "192.0.2.1"] {
        for kind in KINDS {
            let decide = |act, port| decide(&private(), act, kind, &at(ip, port));
            assert_eq!(decide(Act::Connect, 20_000), SHUT, "{ip}");
            assert_eq!(decide(Act::Send, 20_000), SHUT, "{ip}");
            assert_eq!(decide(Act::Connect, 20_001), OPEN, "{ip}");
            assert_eq!(decide(Act::Bind, 20_000), OPEN, "the server itself listens there");
        }
    }
}

#[test]
fn of_the_hosts_network_only_named_ports_of_its_loopback_are_reached() {
    let table = [
        ("127.0.0.1", 18_999, OPEN),
        ("::1", 5432, OPEN),
        ("127.0.0.1", 5433, SHUT),
        ("127.0.0.2", 5432, SHUT),
        ("0.0.0.0", 5432, SHUT),
        ("::", 5432, SHUT),
        ("192.168.1.1", 5432, SHUT),
        ("169.254.169.254", 80, SHUT),
        ("2001:db8::1", 443, SHUT),
    ];
    for (ip, port, verdict) in table {
        let seen = |kind| decide(&host(Listen::Any), Act::Connect, kind, &at(ip, port));
        assert_eq!(seen(Kind::Stream), verdict, "{ip} {port}");
        assert_eq!(seen(Kind::Datagram), SHUT, "no datagram leaves: {ip} {port}");
    }
}

#[test]
fn on_the_hosts_network_only_loopback_is_listened_on() {
    let (any, only) = (Listen::Any, Listen::Only(ports(&[3000])));
    let table = [
        (&any, "127.0.0.1", 3000, OPEN),
        (&any, "127.0.0.1", 4000, OPEN),
        (&any, "0.0.0.0", 3000, SHUT),
        (&any, "::", 3000, SHUT),
        (&any, "192.168.1.1", 3000, SHUT),
        (&only, "127.0.0.1", 3000, OPEN),
        (&only, "::1", 0, OPEN),
        (&only, "127.0.0.1", 4000, SHUT),
        (&only, "0.0.0.0", 0, SHUT),
    ];
    for (listen, ip, port, verdict) in table {
        let seen = decide(&host(listen.clone()), Act::Bind, Kind::Stream, &at(ip, port));
        assert_eq!(seen, verdict, "{listen:?} {ip} {port}");
    }
}

#[test]
fn a_unix_name_is_followed_to_the_socket_behind_it() {
    let (path, name) = (Destination::Path(b"/s".to_vec()), Destination::Abstract(b"s".to_vec()));
    for (kind, act) in KINDS.into_iter().flat_map(|kind| ACTS.map(|act| (kind, act))) {
        let (known, shared) = match act {
            Act::Bind => (Verdict::IfWritable, SHUT),
            Act::Listen => (OPEN, OPEN),
            Act::Connect | Act::Send => (Verdict::IfKnown, Verdict::IfKnown),
        };
        assert_eq!(decide(&private(), act, kind, &path), known);
        assert_eq!(decide(&host(Listen::Any), act, kind, &path), known);
        assert_eq!(decide(&host(Listen::Any), act, kind, &name), shared);
        assert_eq!(decide(&private(), act, kind, &name), OPEN, "the namespace is the wall");
    }
}

#[test]
fn forgetting_a_peer_and_asking_for_routes_harms_nobody() {
    for net in [private(), host(Listen::Any)] {
        for destination in [Destination::Nowhere, Destination::Netlink] {
            assert_eq!(decide(&net, Act::Connect, Kind::Datagram, &destination), OPEN);
        }
    }
    for act in [Act::Bind, Act::Send] {
        let seen = decide(&host(Listen::Any), act, Kind::Datagram, &Destination::Nowhere);
        assert_eq!(seen, SHUT, "IPv4 takes it for an address of its own");
    }
}

#[test]
fn on_the_hosts_network_only_a_granted_port_of_loopback_is_listened_on() {
    let net = host(Listen::Only(ports(&[3000])));
    for (ip, port, expected) in [
        ("127.0.0.1", 3000, OPEN),
        ("::1", 3000, OPEN),
        ("127.0.0.1", 3001, SHUT),
        ("0.0.0.0", 3000, SHUT),
        ("::", 3000, SHUT),
        ("192.0.2.1", 3000, SHUT),
        ("127.0.0.1", 0, SHUT),
        ("0.0.0.0", 0, SHUT),
    ] {
        assert_eq!(
            decide(&net, Act::Listen, Kind::Stream, &at(ip, port)),
            expected,
            "{ip} {port}"
        );
    }
    for own in [
        Destination::Path(b"/w/s".to_vec()),
        Destination::Abstract(b"n".to_vec()),
    ] {
        assert_eq!(decide(&net, Act::Listen, Kind::Stream, &own), OPEN, "{own:?}");
    }
}

#[test]
fn a_server_for_every_address_gets_loopback_on_a_port_that_is_granted() {
    let net = host(Listen::Only(ports(&[3000])));
    let found = |ip: &str, port, only_six| on_loopback(&net, &at(ip, port), only_six).map(|ip| ip.to_string());
    assert_eq!(found("0.0.0.0", 3000, false).as_deref(), Some("127.0.0.1"));
    assert_eq!(found("::", 3000, false).as_deref(), Some("::ffff:127.0.0.1"));
    assert_eq!(found("::", 3000, true).as_deref(), Some("::1"));
    assert_eq!(found("0.0.0.0", 3001, false), None);
    assert_eq!(found("192.0.2.1", 3000, false), None);
    assert_eq!(on_loopback(&private(), &at("0.0.0.0", 3000), false), None);
}
