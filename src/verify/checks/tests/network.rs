//! Checks of the network that all processes of a sandbox share.

use super::*;

#[test]
fn finds_what_is_wrong_with_the_network() {
    spoiled("network", |f, _| shared(f).network.interfaces.push(b"eth0".to_vec()));
    spoiled("network", |f, _| shared(f).network.forbidden.push(("net/raw", 1)));
    spoiled("network", |f, _| {
        shared(f)
            .network
            .connections
            .push(socket("10.0.0.2:5", "10.0.0.1:80", 9))
    });
    spoiled("network", |f, _| {
        shared(f).network.interfaces.push(b"eth0".to_vec());
        shared(f).network.udp.push(socket("0.0.0.0:5", "8.8.8.8:53", 9))
    });
    // The port of the server: nobody there, or somebody else.
    spoiled("network", |f, _| shared(f).network.listeners.retain(|s| s.inode != 500));
    spoiled("network", |f, _| shared(f).network.listeners[0].inode = OUTSIDE);
    spoiled("network", |f, _| {
        shared(f)
            .network
            .listeners
            .push(socket("[::1]:4096", "[::]:0", OUTSIDE))
    });
    // The broker's port answered from inside.
    spoiled("network", |f, _| {
        shared(f)
            .network
            .listeners
            .push(socket("127.0.0.1:3128", "0.0.0.0:0", 500))
    });
}

#[test]
fn a_server_that_starts_need_not_listen_yet() {
    let (mut facts, mut subject) = (facts(), subject());
    subject.network.listens = Some(Listen {
        port: Port::new(SERVED).unwrap(),
        stage: Stage::Starting,
    });
    facts.shared.as_mut().unwrap().network.listeners.remove(0);
    assert_eq!(run(&facts, &subject, Moment::Running), []);
}

fn as_client(facts: &mut Facts, subject: &mut Subject) {
    subject.network = NetSubject {
        connects_only: Port::new(SERVED),
        ..NetSubject::default()
    };
    facts.shared.as_mut().unwrap().network.connections = vec![
        socket("127.0.0.1:50000", "127.0.0.1:4096", 502),
        socket("[::ffff:127.0.0.1]:4096", "[::ffff:127.0.0.1]:50000", OUTSIDE),
    ];
}

#[test]
fn a_client_connects_to_its_port_only() {
    spoiled("network", |f, s| {
        as_client(f, s);
        assert_eq!(run(f, s, Moment::Running), []);
        shared(f)
            .network
            .connections
            .push(socket("127.0.0.1:50001", "127.0.0.1:8000", 503));
    });
}

#[test]
fn what_a_client_calls_itself_is_no_evidence() {
    for argument in [&b"http://127.0.0.1:40961"[..], b"node: idle", b"", b"\xff\0\n"] {
        let (mut facts, mut subject) = (facts(), subject());
        as_client(&mut facts, &mut subject);
        facts.members[1].arguments = argument.to_vec();
        assert_eq!(run(&facts, &subject, Moment::Running), [], "{argument:?}");
    }
}
