//! P4: sockets of the host are not there; one's own work.

use crate::harness::{Attempt, Verdict};
use crate::place::{Place, Started, eventually, marker};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};

const CONNECT: &str = "s = socket.socket(socket.AF_UNIX, int(argv[2])); s.connect(argv[1].replace('@', '\\0', 1))";

fn connect(name: &str, kind: i32) -> Attempt {
    Attempt::python(CONNECT).with(name).with(kind.to_string())
}

#[test]
fn abstract_sockets_do_not_cross() {
    let place = Place::new();
    let name = format!("pinfold-{}", marker());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _stream = UnixListener::bind_addr(&address).unwrap();
    place.denies(&[], &connect(&format!("@{name}"), 1), &["ECONNREFUSED", "EPERM"]);
}

#[test]
fn an_abstract_socket_made_inside_is_not_reachable_from_the_host() {
    let place = Place::new();
    let name = format!("pinfold-{}", marker());
    let body = "import socket, sys, time\ns = socket.socket(socket.AF_UNIX); s.bind('\\0' + sys.argv[1]); s.listen(); open('up', 'w'); time.sleep(60)";
    let argv = ["/usr/bin/python3", "-I", "-c", body, &name];
    let connects = || UnixStream::connect_addr(&SocketAddr::from_abstract_name(&name).unwrap()).is_ok();
    let inside = Started::new(&mut place.run::<&str, _>(&[], &argv));
    eventually("the socket is up", || place.work.join("up").exists());
    assert!(!connects(), "an abstract socket came out");
    drop(inside);
    let outside = Started::new(place.command(argv[0]).args(&argv[1..]));
    eventually("the control connects", connects);
    drop(outside);
}

#[test]
fn a_socket_file_outside_every_grant_is_not_there() {
    let place = Place::new();
    let stream = place.secrets.join("s");
    let datagram = place.secrets.join("d");
    let _listener = UnixListener::bind(&stream).unwrap();
    let _datagram = UnixDatagram::bind(&datagram).unwrap();
    let body = "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', argv[1])";
    place.denies(&[], &Attempt::python(body).with(&datagram), &["ENOENT", "EACCES"]);
    let missing = &["ENOENT", "EACCES"];
    for name in [stream.to_str().unwrap(), "../secrets/s", "/proc/self/cwd/../secrets/s"] {
        place.denies(&[], &connect(name, 1), missing);
    }
    std::os::unix::fs::symlink(&stream, place.work.join("link")).unwrap();
    let linked = connect("../garden/link", 1);
    let verdict = place.compare(&linked, &[], &linked, missing);
    assert_eq!(verdict, Verdict::Held);
}

#[test]
fn sockets_of_ones_own_work() {
    let place = Place::new();
    for folder in [place.work.to_str().unwrap(), "/tmp", "."] {
        let body = "
l = socket.socket(socket.AF_UNIX); l.bind(argv[1] + '/own'); l.listen()
c = socket.socket(socket.AF_UNIX); c.connect(argv[1] + '/own'); a, _ = l.accept()
socket.send_fds(c, [b'x'], [0]); os.close(socket.recv_fds(a, 9, 1)[1][0]); os.unlink(argv[1] + '/own')
d, e = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); d.send(b'x'); e.recv(1)
n = socket.socket(socket.AF_UNIX); n.bind('\\0own'); n.listen(); socket.socket(socket.AF_UNIX).connect('\\0own')
socket.socketpair()";
        place.allows(&[], &Attempt::python(body).with(folder));
    }
}

#[test]
fn a_socket_of_the_host_inside_a_grant_is_not_reachable_unless_it_is_named() {
    let granted = Place::new();
    let folder = granted.secrets.to_str().unwrap();
    let beside = format!("{folder}/s");
    let cases = [
        ("s", vec![]),
        (&beside, vec!["--read", folder]),
        (&beside, vec!["--allow", folder]),
    ];
    for (name, options) in cases {
        let place = Place::new();
        let path = place.work.join(name);
        let _ = std::fs::remove_file(&path);
        let _listener = UnixListener::bind(&path).unwrap();
        let attempt = connect(path.to_str().unwrap(), 1);
        let verdict = place.compare(&attempt, &options, &attempt, &["EACCES"]);
        assert_eq!(verdict, Verdict::Held, "{name} {options:?}");
        let profile = place.home.join("named.json");
        let named = serde_json::json!({"extends": "default", "filesystem": {"unix_socket": [path]}});
        std::fs::write(&profile, named.to_string()).unwrap();
        let mut options = options.clone();
        options.extend(["--profile", profile.to_str().unwrap()]);
        place.allows(&options, &attempt);
    }
}

#[test]
fn a_unix_datagram_socket_cannot_be_made_so_none_sends_to_the_host() {
    let place = Place::new();
    let path = place.work.join("d");
    let _listener = UnixDatagram::bind(&path).unwrap();
    let kinds = ["SOCK_DGRAM", "SOCK_DGRAM | socket.SOCK_NONBLOCK", "SOCK_RAW"];
    let makes = ["s = socket.socket", "s, _ = socket.socketpair"]
        .map(|make| kinds.map(|kind| format!("{make}(socket.AF_UNIX, socket.{kind})")));
    for make in makes.into_iter().flatten() {
        place.denies(&[], &Attempt::python(&make), &["EACCES"]);
        let send = Attempt::python(&format!("{make}; s.sendto(b'x', argv[1])")).with(&path);
        place.denies(&[], &send, &["EACCES"]);
    }
}
