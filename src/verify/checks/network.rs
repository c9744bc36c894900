//! The sandbox's network namespace holds a loopback and nothing else, its ports belong to whom they should, and no
//! connection leaves it. In one network with the machine's own, the same of the sockets that its processes hold.

use super::{Moment, finding, shared};
use crate::base::Port;
use crate::verify::Finding;
use crate::verify::facts::Facts;
use crate::verify::proc::net::{Socket, Tables};
use crate::verify::subject::{Listen, NetSubject, Stage, Subject, Walls};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

const NAME: &str = "network";

pub fn check(facts: &Facts, subject: &Subject, _: Moment) -> Vec<Finding> {
    let tables = match shared(NAME, facts) {
        Ok(shared) => &shared.network,
        Err(findings) => return findings,
    };
    let held = facts.held_sockets();
    let expected = &subject.network;
    let of_machine = tables;
    let own;
    let tables = match subject.walls {
        Walls::Namespaces => of_machine,
        Walls::Descent { .. } => {
            own = of_machine.of(&held);
            &own
        }
    };
    let mut problems = walls(tables);
    problems.extend(expected.listens.and_then(|listen| served(of_machine, &held, listen)));
    problems.extend(handed_out(tables, &held, expected));
    problems.extend(
        expected
            .connects_only
            .map(|port| straying(tables, port))
            .unwrap_or_default(),
    );
    problems
        .into_iter()
        .map(|problem| finding(NAME, None, problem))
        .collect()
}

fn walls(tables: &Tables) -> Vec<String> {
    let mut problems = Vec::new();
    for name in tables.interfaces.iter().filter(|name| name.as_slice() != b"lo") {
        problems.push(format!(
            "there is a network interface {}",
            String::from_utf8_lossy(name).escape_debug()
        ));
    }
    for (table, sockets) in &tables.forbidden {
        problems.push(format!("{sockets} sockets in {table}, where there should be none"));
    }
    let remote = |socket: &&Socket| !socket.remote.ip().is_unspecified() && !is_loopback(socket.remote.ip());
    // With nothing but `lo` a datagram socket may still carry any address: it is a name without a way.
    let only_loopback = tables.interfaces.iter().all(|name| name.as_slice() == b"lo");
    let datagrams = tables.udp.iter().filter(|_| !only_loopback);
    for socket in tables.connections.iter().chain(datagrams).filter(remote) {
        problems.push(format!("a socket is connected to {}", socket.remote));
    }
    problems
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whoever listens on the served port must be of the tree; once it has answered, somebody must.
fn served(tables: &Tables, held: &BTreeSet<u64>, listen: Listen) -> Option<String> {
    let port = listen.port.get();
    let mut listeners = tables.listeners.iter().filter(|s| s.local.port() == port).peekable();
    match (listen.stage, listeners.peek()) {
        (Stage::Ready, None) => Some(format!("nothing listens on port {port}")),
        (Stage::Starting, None) => None,
        (_, Some(_)) => listeners
            .any(|s| !held.contains(&s.inode))
            .then(|| format!("port {port} is held by a process that is not in the sandbox")),
    }
}

/// The broker's and the join's listeners were made inside and handed out: no copy may stay, and no other may answer.
fn handed_out(tables: &Tables, held: &BTreeSet<u64>, expected: &NetSubject) -> Vec<String> {
    let kept = tables.listeners.iter().filter(|s| held.contains(&s.inode));
    let kept = kept.filter(|s| s.local.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST));
    let kept = kept.filter(|s| Port::new(s.local.port()).is_some_and(|port| expected.handed_out.contains(&port)));
    kept.map(|s| {
        format!(
            "port {} of the supervisor is held by a process in the sandbox",
            s.local.port()
        )
    })
    .collect()
}

/// Each connection has the private port on one end: the far one for the client's socket, the near one for the join's.
fn straying(tables: &Tables, port: Port) -> Vec<String> {
    let strays = tables.connections.iter().filter(|s| {
        let is_it = |end: std::net::SocketAddr| is_loopback(end.ip()) && end.port() == port.get();
        !is_it(s.remote) && !is_it(s.local)
    });
    strays
        .map(|s| format!("a connection goes to {}, not to port {port}", s.remote))
        .collect()
}
