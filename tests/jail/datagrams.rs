//! P4 for profiles that ask for Unix datagram sockets: sends with an address are decided like connects.

use crate::harness::{Attempt, Verdict};
use crate::mode::by_mode;
use crate::place::Place;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// A profile that asks for datagram sockets, with what is granted beside.
fn wishing(place: &Place, sockets: &[&PathBuf]) -> String {
    let file = place.home.join("datagrams.json");
    let profile = serde_json::json!({
        "extends": "default",
        "filesystem": {"unix_socket": sockets},
        "pinfold": {"unix_datagrams": true},
    });
    std::fs::write(&file, profile.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Every way to send a datagram to an address; `%` stands for it.
const SENDS: [&str; 6] = [
    "s.sendto(b'x', %)",
    "s.sendmsg([b'x', b'y'], [], 0, %)",
    "s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('i', os.pipe()[0]))], 0, %)",
    "s.connect(%); s.send(b'x')",
    "many(s, %)",
    "s.bind('named'); os.unlink('named'); s.sendto(b'x', %)",
];

/// sendmmsg of two messages to one address, by number.
fn many() -> String {
    format!(
        "
import struct
def many(s, path):
    name = struct.pack('H', 1) + path.encode() + b'\\0'
    name, data = ctypes.create_string_buffer(name, len(name)), ctypes.create_string_buffer(b'x', 1)
    piece = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(data), 1))
    one = struct.pack('QIxxxxQQQQixxxxIxxxx', ctypes.addressof(name), len(name), ctypes.addressof(piece), 1, 0, 0, 0, 0)
    both = ctypes.create_string_buffer(one + one)
    sent = call({}, s.fileno(), ctypes.addressof(both), 2, 0)
    assert 1 <= sent <= 2 and struct.unpack_from('I', both, 56) == (1,), sent
",
        nix::libc::SYS_sendmmsg
    )
}

#[test]
fn a_host_datagram_socket_in_a_granted_folder_is_reached_only_if_it_is_named() {
    for make in [
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "s, e = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    ] {
        for send in SENDS {
            if make.contains("pair") && send.contains("bind") {
                continue;
            }
            let place = Place::new();
            let path = place.work.join("d");
            let _host = UnixDatagram::bind(&path).unwrap();
            for name in ["argv[1]", "'d'", "'/proc/self/cwd/d'"] {
                let body = format!("{}os.chdir(argv[2]); {make}; {}", many(), send.replace('%', name));
                let attempt = Attempt::python(&body).with(&path).with(&place.work);
                let with = wishing(&place, &[]);
                let verdict = place.compare(&attempt, &["--profile", &with], &attempt, &["EACCES"]);
                assert_eq!(verdict, Verdict::Held, "{body}");
                if name == "argv[1]" {
                    let with = wishing(&place, &[&path]);
                    place.allows(&["--profile", &with], &attempt);
                }
            }
        }
    }
}

#[test]
fn datagrams_of_ones_own_arrive_whole_with_what_goes_along() {
    let place = Place::new();
    let body = format!(
        "{}
r = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); r.bind('own'); r.settimeout(5)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind('from')
s.sendto(b'one', 'own'); data, name = r.recvfrom(9); assert data == b'one' and (name == 'from' or argv[1] == 'reduced')
s.sendmsg([b'tw', b'o' * 1000, b'.'], [], 0, 'own'); assert r.recv(2000) == b'tw' + b'o' * 1000 + b'.'
many(s, 'own'); assert r.recv(9) == b'x'
read, write = os.pipe()
s.sendmsg([b'fd'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('i', write))], 0, 'own'); data, fds, _, _ = socket.recv_fds(r, 9, 1)
os.write(fds[0], b'through'); assert os.read(read, 9) == b'through'
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendmsg([b'pair']); assert b.recv(9) == b'pair'
c, d = socket.socketpair(); assert c.sendmsg([b'x' * 100000]) > 0
socket.send_fds(c, [b'y'], [write]); d.recv(100000)
d.close()
import signal
got = []; signal.signal(signal.SIGPIPE, lambda *_: got.append(1))
try: c.sendmsg([b'x']); deny('EIO')
except BrokenPipeError: pass
time.sleep(0.1); assert got == [1], got
if argv[1] == 'full': u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0)); u.sendto(b'u', u.getsockname()); u.recv(9)
try: s.sendto(b'x' * (1 << 21), 'own'); deny('EIO')
except OSError as error: assert error.errno in (errno.EMSGSIZE, errno.ENOBUFS), error",
        many()
    );
    let attempt = Attempt::python(&body).with(by_mode("full", "reduced"));
    place.allows(&["--profile", &wishing(&place, &[])], &attempt);
}
