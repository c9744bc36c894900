//! P3: the sandbox has a private loopback and nothing else.

use crate::harness::{Attempt, Verdict, is_root, not_in_this_kernel, skip};
use crate::mode::{by_mode, only_in_full};
use crate::place::{Place, finish};
use nix::libc;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, ToSocketAddrs as _, UdpSocket};

/// What a connect in an empty network namespace comes to.
const NOBODY: &[&str] = &["ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL", "EHOSTUNREACH"];

/// The same in reduced mode: refused by whoever decides.
fn nobody() -> &'static [&'static str] {
    by_mode(NOBODY, &["EACCES"])
}

/// What a kernel answers that does not know a family, a kind or a protocol.
const ABSENT: &[&str] = &["EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EACCES"];

/// A service of the host on every address: answers with a word, once per connection.
pub fn service() -> u16 {
    let listener = TcpListener::bind("[::]:0")
        .or_else(|_| TcpListener::bind("0.0.0.0:0"))
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 4096];
            let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(300)));
            let _ = stream.read(&mut request);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nhello!\n");
        }
    });
    port
}

/// An address of this machine that is not loopback, if it has one.
fn own_address() -> Option<Ipv4Addr> {
    let addresses = nix::ifaddrs::getifaddrs()
        .unwrap()
        .filter_map(|interface| interface.address);
    let mut v4 = addresses.filter_map(|address| Some(address.as_sockaddr_in()?.ip()));
    v4.find(|address| !address.is_loopback() && !address.is_unspecified())
}

fn connect(host: &str, port: u16) -> Attempt {
    Attempt::python("socket.create_connection((argv[1], int(argv[2])), 10)")
        .with(host)
        .with(port.to_string())
}

#[test]
fn the_hosts_loopback_is_not_reachable_by_any_name() {
    let place = Place::new();
    let port = service();
    let mut names = vec![
        "127.0.0.1".to_owned(),
        "0.0.0.0".into(),
        "127.1.2.3".into(),
        "localhost".into(),
        "::ffff:127.0.0.1".into(),
    ];
    names.extend(own_address().map(|address| address.to_string()));
    if TcpListener::bind("[::1]:0").is_ok() {
        names.extend(["::1".to_owned(), "::".into()]);
    }
    for name in names {
        place.denies_if_here(&[], &connect(&name, port), nobody());
        place.denies_if_here(&["--block-net"], &connect(&name, port), nobody());
    }
}

#[test]
fn the_hosts_own_name_does_not_lead_to_it() {
    let place = Place::new();
    let port = service();
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let reachable = (host.as_str(), port)
        .to_socket_addrs()
        .is_ok_and(|mut all| all.any(|one| std::net::TcpStream::connect(one).is_ok()));
    if !reachable {
        return skip("this machine's own name leads to no address of its own");
    }
    let body = "
try: socket.create_connection((argv[1], int(argv[2])), 10)
except socket.gaierror: deny('ECONNREFUSED')";
    place.denies(&[], &Attempt::python(body).with(host).with(port.to_string()), nobody());
}

#[test]
fn datagrams_do_not_reach_the_host() {
    let place = Place::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&bytes[..length], from);
        }
    });
    let body = "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.connect((argv[1], int(argv[2])))
s.send(b'x'); s.send(b'x'); s.recv(9)";
    place.denies(
        &[],
        &Attempt::python(body).with("127.0.0.1").with(port.to_string()),
        nobody(),
    );
    if let Some(address) = own_address() {
        let body = "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (argv[1], 9))";
        place.denies(&[], &Attempt::python(body).with(address.to_string()), nobody());
    }
}

#[test]
fn rare_families_and_protocols_are_refused() {
    let place = Place::new();
    let no_family = &["EAFNOSUPPORT"][..];
    let no_protocol = &["EPROTONOSUPPORT"][..];
    let open = |family: i32, kind: i32, protocol: i32| {
        Attempt::python(&format!("call({}, {family}, {kind}, {protocol})", libc::SYS_socket))
    };
    place.denies(&[], &open(libc::AF_NETLINK, libc::SOCK_RAW, 4), no_protocol);
    place.denies(&[], &open(libc::AF_NETLINK, libc::SOCK_DGRAM, 15), no_protocol);
    place.denies(&[], &open(libc::AF_NETLINK, libc::SOCK_RAW, 16), no_protocol);
    let mut may_be_absent = vec![
        (libc::AF_VSOCK, libc::SOCK_STREAM, 0, no_family),
        (libc::AF_ALG, libc::SOCK_SEQPACKET, 0, no_family),
        (libc::AF_INET, libc::SOCK_STREAM, 262, no_protocol),
        (libc::AF_INET, libc::SOCK_STREAM, 132, no_protocol),
        (libc::AF_INET, libc::SOCK_DGRAM, 1, no_protocol),
        (libc::AF_INET6, libc::SOCK_DGRAM, 58, no_protocol),
    ];
    if is_root() {
        may_be_absent.extend([
            (libc::AF_INET, libc::SOCK_RAW, 1, no_protocol),
            (libc::AF_INET, libc::SOCK_RAW, 255, no_protocol),
            (libc::AF_INET6, libc::SOCK_RAW, 58, no_protocol),
            (libc::AF_PACKET, libc::SOCK_RAW, 0x300, &["EAFNOSUPPORT", "EPERM"]),
            (libc::AF_PACKET, libc::SOCK_DGRAM, 0, no_family),
        ]);
    }
    for (family, kind, protocol, errors) in may_be_absent {
        match place.compare(
            &open(family, kind, protocol),
            &[],
            &open(family, kind, protocol),
            errors,
        ) {
            // EACCES: ping sockets are a setting (net.ipv4.ping_group_range).
            Verdict::NoControl(name) if ABSENT.contains(&name.as_str()) => {
                not_in_this_kernel(&format!("socket({family}, {kind}, {protocol}): {name}"));
            }
            verdict => assert_eq!(verdict, Verdict::Held, "{family} {kind} {protocol}"),
        }
    }
    place.allows(&[], &open(libc::AF_NETLINK, libc::SOCK_RAW, 0));
    place.allows(&[], &Attempt::python("socket.if_nameindex()"));
}

#[test]
fn a_first_send_does_not_connect() {
    let place = Place::new();
    let server = "l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(); s = socket.socket()\n";
    for send in [
        "s.sendto(b'x', 0x20000000, l.getsockname())",
        "s.sendmsg([b'x'], [], 0x20000000, l.getsockname())",
        "s.sendto(b'x', 0x20000000 | 0x4000, l.getsockname())",
    ] {
        let attempt = Attempt::python(&format!("{server}{send}"));
        match place.compare(&attempt, &[], &attempt, &["EACCES"]) {
            Verdict::NoControl(name) => skip(&format!("fast open is off here: {name}")),
            verdict => assert_eq!(verdict, Verdict::Held, "{send}"),
        }
    }
}

#[test]
fn the_private_loopback_works() {
    only_in_full!("there is no loopback of its own, and no UDP");
    let place = Place::new();
    for options in [&[][..], &["--block-net"][..]] {
        place.allows(
            options,
            &Attempt::python(
                "
for family, address in [(socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')]:
    try: l = socket.socket(family)
    except OSError: continue
    l.bind((address, 0)); l.listen()
    c = socket.create_connection(l.getsockname()[:2], 5); a, _ = l.accept(); c.send(b'x'); a.recv(1)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0)); u.sendto(b'x', u.getsockname()); u.recv(1)
socket.create_server(('127.0.0.1', 80)); socket.getaddrinfo('localhost', 1)",
            ),
        );
    }
}

#[test]
fn two_sandboxes_do_not_share_a_loopback() {
    only_in_full!("there is no loopback of its own, and no UDP");
    let place = Place::new();
    let script = "python3 -c \"import socket,time; s=socket.create_server(('127.0.0.1', 4567)); print('up', flush=True); time.sleep(60)\"";
    let mut command = place.sh(&[], script);
    let mut first = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut word = [0; 2];
    first.stdout.take().unwrap().read_exact(&mut word).unwrap();
    let ended = finish(&mut place.sh(
        &[],
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 4567))\"",
    ));
    let from_host = std::net::TcpStream::connect((IpAddr::from([127, 0, 0, 1]), 4567)).is_ok();
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(ended.err().contains("ConnectionRefusedError"), "{}", ended.err());
    assert!(!from_host, "a port inside is reachable from the host");
}
