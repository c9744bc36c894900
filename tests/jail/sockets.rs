//! P4: sockets of the host are not there; one's own work.

use crate::harness::{Attempt, Verdict};
use crate::mode::{by_mode, left_out};
use crate::place::{Mode, Place, Started, eventually, finish, marker, mode};
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
    place.denies(
        &[],
        &connect(&format!("@{name}"), 1),
        by_mode(&["ECONNREFUSED", "EPERM"], &["EACCES"]),
    );
}

#[test]
fn an_abstract_socket_made_inside_is_not_reachable_from_the_host() {
    let place = Place::new();
    let name = format!("pinfold-{}", marker());
    let body = "import socket, sys, time\ns = socket.socket(socket.AF_UNIX); s.bind('\\0' + sys.argv[1]); s.listen(); open('up', 'w'); time.sleep(60)";
    let argv = ["/usr/bin/python3", "-I", "-c", body, &name];
    let connects = || UnixStream::connect_addr(&SocketAddr::from_abstract_name(&name).unwrap()).is_ok();
    if mode() == Mode::Reduced {
        // Anybody could connect to it, so that it cannot be made.
        let refused = finish(&mut place.run::<&str, _>(&[], &argv)).expect(1);
        assert!(refused.err().contains("PermissionError"), "{}", refused.err());
    } else {
        let inside = Started::new(&mut place.run::<&str, _>(&[], &argv));
        eventually("the socket is up", || place.work.join("up").exists());
        assert!(!connects(), "an abstract socket came out");
        drop(inside);
    }
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
    let folders = [place.work.to_str().unwrap(), "$TMPDIR", ".", "/tmp"];
    for folder in by_mode(&folders[..], &folders[..3]) {
        let body = "
argv[1] = argv[1].replace('$TMPDIR', os.environ.get('TMPDIR', '/tmp'))
l = socket.socket(socket.AF_UNIX); l.bind(argv[1] + '/own'); l.listen()
c = socket.socket(socket.AF_UNIX); c.connect(argv[1] + '/own'); a, _ = l.accept()
socket.send_fds(c, [b'x'], [0]); os.close(socket.recv_fds(a, 9, 1)[1][0]); os.unlink(argv[1] + '/own')
d, e = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); d.send(b'x'); e.recv(1)
if argv[2] == 'full': n = socket.socket(socket.AF_UNIX); n.bind('\\0own'); n.listen(); socket.socket(socket.AF_UNIX).connect('\\0own')
socket.socketpair()";
        let attempt = Attempt::python(body).with(folder).with(by_mode("full", "reduced"));
        place.allows(&[], &attempt);
    }
}

/// Names of a socket file `own` in the working folder, as only the one who uses them can follow them.
const NAMES: [&str; 12] = [
    "'own'",
    "'./deep/../own'",
    "argv[1] + '/own'",
    "'link'",
    "'/proc/self/cwd/own'",
    "'/proc/self/cwd/deep/../link'",
    "'/proc/self/root' + argv[1] + '/own'",
    "f'/proc/{os.getpid()}/cwd/own'",
    "'/proc/%d/cwd/own' % subprocess.Popen(['sleep', '2'], stdout=-3, stderr=-3).pid",
    "'/proc/thread-self/cwd/own'",
    "'/dev/fd/%d/own' % os.open('.', os.O_RDONLY)",
    "'/proc/self/fd/%d' % os.open('own', os.O_PATH)",
];

#[test]
fn a_socket_of_ones_own_is_found_by_every_name_that_its_user_has_for_it() {
    let place = Place::new();
    for name in NAMES {
        let body = format!(
            "
os.makedirs('deep', exist_ok=True); os.path.lexists('link') or os.symlink('own', 'link')
l = socket.socket(socket.AF_UNIX); l.bind('own'); l.listen()
socket.socket(socket.AF_UNIX).connect({name}); os.unlink('own')"
        );
        place.allows(&[], &Attempt::python(&body).with(&place.work));
        let _ = std::fs::remove_file(place.work.join("own"));
    }
}

#[test]
fn a_socket_of_the_host_in_the_workspace_is_refused_by_every_name() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.work.join("own")).unwrap();
    std::os::unix::fs::symlink("own", place.work.join("link")).unwrap();
    std::fs::create_dir(place.work.join("deep")).unwrap();
    for name in NAMES {
        // Outside it stands in the workspace itself, not in its copy.
        let body = format!("os.chdir(argv[1]); socket.socket(socket.AF_UNIX).connect({name})");
        place.denies(&[], &Attempt::python(&body).with(&place.work), &["EACCES"]);
    }
    // Nor by what is Pinfold's own inside; outside, the shell above stands for it.
    let control = connect(place.work.join("own").to_str().unwrap(), 1);
    for name in ["cwd", "root"] {
        let name = format!("/proc/1/{name}{}/own", place.work.display());
        let verdict = place.compare(&control, &[], &connect(&name, 1), &["EACCES"]);
        assert_eq!(verdict, Verdict::Held, "{name}");
    }
}

#[test]
fn a_socket_file_is_made_where_a_file_can_be_made_and_nowhere_else() {
    let place = Place::new();
    let (secrets, read_only) = (place.secrets.to_str().unwrap(), &["EROFS", "EACCES"]);
    const BIND: &str = "socket.socket(socket.AF_UNIX).bind(argv[1]); os.unlink(argv[1])";
    let bind = |path: &str| Attempt::python(BIND).with(path);
    let beside = format!("{secrets}/new");
    place.denies(&[], &bind(&beside), &["ENOENT", "EACCES"]);
    place.denies(&["--read", secrets], &bind(&beside), read_only);
    std::os::unix::fs::symlink(&place.secrets, place.work.join("way")).unwrap();
    for path in ["way/new", "/proc/self/cwd/way/new", "/proc/self/cwd/../secrets/new"] {
        let there = Attempt::python(&format!("os.chdir('{}')\n{BIND}", place.work.display())).with(path);
        place.denies(&["--read", secrets], &there, read_only);
    }
    place.allows(&["--allow", secrets], &bind(&beside));
    place.allows(&[], &bind("new"));
}

#[test]
fn message_queues_of_ones_own_work_and_the_hosts_are_not_there() {
    let place = Place::new();
    let name = format!("/pinfold-{}", marker());
    let open = "
import ctypes.util
rt = ctypes.CDLL(ctypes.util.find_library('rt') or 'librt.so.1', use_errno=True)
def queue(flags):
    number = rt.mq_open(argv[1].encode(), flags, 0o600, None)
    if number < 0: deny(errno.errorcode[ctypes.get_errno()])
    return number
";
    let make = Attempt::python(&format!("{open}queue(os.O_CREAT | os.O_RDWR)")).with(&name);
    let host = finish(
        place
            .command(crate::harness::PYTHON)
            .args(["-I", "-c", &HOST_QUEUE.replace('%', &name)]),
    );
    if host.code() != 0 {
        return crate::harness::not_in_this_kernel("POSIX message queues");
    }
    place.denies(
        &[],
        &Attempt::python(&format!("{open}queue(os.O_RDWR)")).with(&name),
        by_mode(&["ENOENT"], &["EACCES"]),
    );
    if mode() == Mode::Reduced {
        place.denies(&[], &make, &["EACCES"]);
        return left_out("POSIX message queues and System V IPC are refused");
    }
    place.allows(&[], &make);
    let send = "q = queue(os.O_CREAT | os.O_RDWR); assert rt.mq_send(q, b'x', 1, 0) == 0, ctypes.get_errno()
b = ctypes.create_string_buffer(8192); assert rt.mq_receive(q, b, 8192, None) == 1; rt.mq_unlink(argv[1].encode())";
    place.allows(&[], &Attempt::python(&format!("{open}{send}")).with(&name));
    finish(place.command(crate::harness::PYTHON).args([
        "-I",
        "-c",
        &HOST_QUEUE.replace("open(b", "unlink(b").replace('%', &name),
    ]));
}

/// Makes a queue on the host.
const HOST_QUEUE: &str = "import ctypes, os
rt = ctypes.CDLL('librt.so.1'); exit(rt.mq_open(b'%', os.O_CREAT | os.O_RDWR, 0o600, None) < 0)";

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
