//! P3: the broker leads to what is allowed, on the ports that are allowed, and to nothing of the host but granted
//! services; ports that are opened or published are the ones that were named.

use crate::harness::{Attempt, PYTHON, is_root, skip};
use crate::mode::{by_mode, left_out};
use crate::network::service;
use crate::place::{Mode, Place, Started, eventually, finish, mode};
use nix::sys::signal::Signal;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// Asks the broker for a tunnel to `argv[1]`; without one it goes there directly, which is the control.
const TUNNEL: &str = "
host, port = argv[1].rsplit(':', 1)
proxy = os.environ.get('http_proxy')
if not proxy:
    s = socket.create_connection((host.strip('[]'), int(port)), 10)
else:
    s = socket.create_connection(('127.0.0.1', int(proxy.rsplit(':', 1)[1].strip('/'))), 10)
    s.settimeout(20)
    s.sendall(('CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' % (argv[1], argv[1])).encode())
    answer = s.recv(4096)
    if not answer: deny('ECONNRESET')
    if b' 200 ' not in answer.split(b'\\r\\n')[0]: deny('EACCES')
s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
b'hello' in s.recv(4096) or deny('EIO')";

/// A tunnel or an absolute-form request for each name, in one sandbox; prints the status of each, and what was said.
const ASK: &str = "
import os, socket, sys
port = int(os.environ['http_proxy'].rsplit(':', 1)[1].strip('/'))
for line in sys.argv[1:]:
    s = socket.create_connection(('127.0.0.1', port), 10); s.settimeout(20)
    host = line.split()[1].removeprefix('http://').split('/')[0]
    s.sendall(('%s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' % (line, host)).encode())
    answer = b''
    try:
        while part := s.recv(4096): answer += part
    except ConnectionResetError: pass
    said = answer.partition(b'\\r\\n\\r\\n')[2].decode().strip()
    print(line, '->', (answer.split(b' ') + [b'', b'closed'])[1].decode() or 'closed', said, flush=True)
";

fn asking(place: &Place, options: &[&str], requests: &[String]) -> Command {
    let mut argv = [PYTHON, "-I", "-S", "-c", ASK].map(str::to_owned).to_vec();
    argv.extend(requests.iter().cloned());
    place.run(options, &argv)
}

fn answers(command: &mut Command) -> Vec<String> {
    let ended = finish(command).expect(0);
    ended.out().lines().map(str::to_owned).collect()
}

fn ask(place: &Place, options: &[&str], requests: &[String]) -> Vec<String> {
    answers(&mut asking(place, options, requests))
}

/// The command on a machine whose `/etc/hosts` is this one, in a mount namespace of its own.
fn with_hosts(place: &Place, hosts: &str, command: &Command) -> Command {
    let (file, runtime) = (place.path().join("hosts"), place.path().join("runtime"));
    std::fs::write(&file, hosts).unwrap();
    let _ = std::fs::create_dir(&runtime);
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut changed = place.command("unshare");
    let script = "mount --bind \"$1\" /etc/hosts && shift && exec \"$@\"";
    let kind = if is_root() { "-m" } else { "-Urm" };
    changed.args([kind, "sh", "-c", script, "sh"]).arg(file);
    changed.env("XDG_RUNTIME_DIR", runtime);
    changed.arg(command.get_program()).args(command.get_args());
    changed
}

#[test]
fn nothing_of_the_host_is_reached_through_the_broker() {
    let place = Place::new();
    let port = service();
    let tunnel = |host: &str| Attempt::python(TUNNEL).with(format!("{host}:{port}"));
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        place.denies(&[], &tunnel(host), &["EACCES", "ECONNRESET"]);
    }
    let hostname = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let names = [
        "127.0.0.1",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "[::1]",
        "0.0.0.0",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "127.1",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "metadata.google.internal",
        &hostname,
        "a.localhost",
        "%6cocalhost",
        "x@127.0.0.1",
        "127.0.0.1 ",
    ];
    let mut requests: Vec<String> = names.iter().map(|name| format!("CONNECT {name}:{port}")).collect();
    requests.extend(names.iter().map(|name| format!("GET http://{name}:{port}/")));
    requests.push("CONNECT 127.0.0.1:3129".into());
    requests.push("GET http://127.0.0.1:3129/".into());
    requests.push(format!("GET /{port}"));
    for options in [
        &[][..],
        &["--allow-domain", "*.example.com"][..],
        &["--service", "demo.pinfold=127.0.0.1:1"][..],
        &["--allow-domain", "*"][..],
    ] {
        for line in ask(&place, options, &requests) {
            // Where every public name is allowed, one that nobody knows is looked up, and not found.
            let unknown = options.contains(&"*") && line.contains("-> 502 ");
            assert!(line.contains("-> 4") || line.contains("closed") || unknown, "{line}");
        }
    }
}

#[test]
fn an_allowed_name_that_leads_to_the_host_is_refused_for_its_address() {
    let place = Place::new();
    let port = service();
    let names = [
        ("loop.example.com", "127.0.0.1"),
        ("mapped.example.com", "::ffff:127.0.0.1"),
    ];
    let hosts = names.map(|(name, address)| format!("{address} {name}\n")).concat();
    let connect = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)";
    for (name, _) in names {
        let mut direct = place.command(PYTHON);
        direct.args(["-I", "-c", connect, name, &port.to_string()]);
        let control = finish(&mut with_hosts(&place, &hosts, &direct));
        if control.code() != 0 {
            return skip(&format!("{name} leads nowhere outside: {}", control.err()));
        }
    }
    for (name, address) in names {
        let grant = format!("{name}:{port}");
        let requests = [format!("CONNECT {name}:{port}"), format!("GET http://{name}:{port}/")];
        let mut inside = asking(&place, &["--allow-domain", &grant], &requests);
        inside = with_hosts(&place, &hosts, &inside);
        let said = answers(&mut inside);
        assert_eq!(said.len(), requests.len());
        let reason = format!("-> 403 pinfold: {grant} is refused: its address {address} is ");
        for line in said {
            assert!(line.contains(&reason), "{line}");
        }
    }
}

#[test]
fn a_grant_of_a_name_that_leads_to_the_host_is_refused() {
    let place = Place::new();
    let (private, address) = ("is never a public name", "this is an address, not a name");
    for (name, reason) in [
        ("localhost", private),
        ("*.localhost", private),
        ("x.pinfold", private),
        ("host.local", private),
        ("127.0.0.1", address),
        ("169.254.169.254", address),
        ("[::1]", address),
    ] {
        let grant = format!("{name}:8080");
        let ended = finish(&mut place.run(&["--allow-domain", &grant], &["true"])).expect(125);
        let text = ended.err();
        assert!(text.contains(&format!("{grant:?}")) && text.contains(reason), "{text}");
        assert!(text.contains("--service NAME.pinfold="), "{text}");
    }
    let form = "it must be NAME.pinfold=ADDRESS:PORT";
    for (service, reason) in [
        ("demo=127.0.0.1:1", form),
        ("demo.pinfold", form),
        ("demo.pinfold=127.0.0.1", form),
        ("demo.pinfold=localhost:1", form),
        ("demo.pinfold=127.0.0.1:0", "port 0 is no port"),
        ("demo.pinfold=8.8.8.8:1", "public: allow its name instead"),
        (".pinfold=127.0.0.1:1", "the name has an empty label"),
    ] {
        let ended = finish(&mut place.run(&["--service", service], &["true"])).expect(125);
        assert!(ended.err().contains(reason), "{service}: {}", ended.err());
    }
}

#[test]
fn one_service_is_reached_by_its_name_and_no_other() {
    let place = Place::new();
    let (port, other) = (service(), service());
    let grant = format!("demo.pinfold=127.0.0.1:{port}");
    let options = ["--service", grant.as_str()];
    for command in [
        &["curl", "-sSf", "--max-time", "20", "http://demo.pinfold/"][..],
        &["curl", "-sSf", "--max-time", "20", "-p", "http://demo.pinfold/"],
        &[
            "python3",
            "-c",
            "import urllib.request as u; print(u.urlopen('http://demo.pinfold/', timeout=20).read().decode(), end='')",
        ],
    ] {
        let ended = finish(&mut place.run(&options, command)).expect(0);
        assert_eq!(ended.out(), "hello!\n", "{command:?}");
        let denied = finish(&mut place.run::<&str, _>(&[], command));
        assert_ne!(denied.code(), 0, "{command:?} without the grant");
    }
    let requests = [
        format!("CONNECT 127.0.0.1:{port}"),
        format!("CONNECT localhost:{port}"),
        format!("CONNECT demo.pinfold:{other}"),
        "CONNECT demo.pinfold:22".into(),
        format!("CONNECT other.pinfold:{port}"),
        format!("CONNECT xdemo.pinfold:{port}"),
        format!("CONNECT demo.pinfold.example.com:{port}"),
    ];
    for line in ask(&place, &options, &requests) {
        assert!(line.contains("-> 4") || line.contains("closed"), "{line}");
    }
    let direct = Attempt::python("socket.create_connection(('127.0.0.1', int(argv[1])), 10)").with(port.to_string());
    place.denies(&options, &direct, nobody());
}

#[test]
fn a_name_that_is_not_allowed_is_refused_on_every_port() {
    let place = Place::new();
    let names = [
        "denied.example.com",
        "example.com.denied.test",
        "evilexample.org",
        "example.org.",
        "a.example.org",
    ];
    let mut requests: Vec<String> = names
        .iter()
        .flat_map(|name| [80, 443, 22].map(|port| format!("CONNECT {name}:{port}")))
        .collect();
    requests.extend(
        [
            "CONNECT example.org:22",
            "CONNECT example.org:0443",
            "CONNECT example.org:+443",
            "CONNECT example.org",
            "CONNECT example.org:99999",
        ]
        .map(str::to_owned),
    );
    // `example.org.` is the same name: with its ports it may be tried, and is not in this list's denials.
    requests.retain(|request| !request.contains("example.org.:80") && !request.contains("example.org.:443"));
    for line in ask(&place, &["--allow-domain", "example.org"], &requests) {
        assert!(line.contains("-> 4") || line.contains("closed"), "{line}");
    }
}

#[test]
fn one_port_of_the_hosts_loopback_can_be_opened() {
    let place = Place::new();
    let (port, other) = (service(), service());
    let text = port.to_string();
    let body = "
s = socket.create_connection(('127.0.0.1', int(argv[1])), 10); s.settimeout(20); s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
b'hello' in s.recv(4096) or deny('EIO')";
    place.allows(&["--open-port", &text], &Attempt::python(body).with(&text));
    place.denies(&[], &Attempt::python(body).with(&text), nobody());
    place.denies(
        &["--open-port", &text],
        &Attempt::python(body).with(other.to_string()),
        nobody(),
    );
}

/// What the answer is where nobody listens in the sandbox's own network, and on the host's where a port is closed to it.
fn nobody() -> &'static [&'static str] {
    by_mode(&["ECONNREFUSED"], &["EACCES"])
}

/// A free port of this machine, a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

const SERVER: &str = "
import socket, sys
l = socket.create_server(('127.0.0.1', int(sys.argv[1])))
open('up', 'w').close()
while True:
    c, _ = l.accept(); c.sendall(b'from inside'); c.close()
";

#[test]
fn one_port_inside_can_be_published() {
    let place = Place::new();
    let port = free_port();
    let text = port.to_string();
    let answers = |port: u16| {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            return false;
        };
        let mut answer = Vec::new();
        let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(5)));
        let _ = stream.read_to_end(&mut answer);
        answer == b"from inside"
    };
    let server = [PYTHON, "-I", "-c", SERVER, &text];
    let run = Started::new(&mut place.run(&["--listen-port", &text], &server));
    eventually("the published port answers", || answers(port));
    let taken = finish(&mut place.run(&["--listen-port", &text], &["true"])).expect(125);
    assert!(
        taken.err().contains(&text) && taken.err().contains("another program has it"),
        "{}",
        taken.err()
    );
    run.signal(Signal::SIGKILL);
    eventually("the port is closed", || {
        TcpStream::connect(("127.0.0.1", port)).is_err()
    });
    let up = place.work.join("up");
    std::fs::remove_file(&up).unwrap();
    if mode() == Mode::Reduced {
        // There it cannot even listen.
        let refused = finish(&mut place.run::<&str, _>(&[], &server)).expect(1);
        assert!(refused.err().contains("PermissionError"), "{}", refused.err());
        return left_out("a port that is not published cannot be listened on");
    }
    let hidden = Started::new(&mut place.run::<&str, _>(&[], &server));
    eventually("the server inside listens", || up.exists());
    assert!(
        TcpStream::connect(("127.0.0.1", port)).is_err(),
        "a port that was not published is reachable"
    );
    drop(hidden);
}

#[test]
fn without_a_network_there_is_no_broker() {
    let place = Place::new();
    let ended = finish(&mut place.sh(&["--block-net"], "env | grep -i proxy; exit 0")).expect(0);
    assert_eq!(ended.out(), "");
    let connect = Attempt::python("socket.create_connection(('127.0.0.1', 3129), 5)");
    place.allows(&[], &connect);
    let control = Attempt::python("pass");
    let verdict = place.compare(&control, &["--block-net"], &connect, nobody());
    assert_eq!(verdict, crate::harness::Verdict::Held);
}

#[test]
fn decisions_go_to_a_log_and_not_to_the_command() {
    let place = Place::new();
    let ended = finish(&mut place.sh(&[], "curl -s http://denied.example.com/ >/dev/null; exit 0")).expect(0);
    // What a mode cannot keep is told before the command runs, in every launch.
    let (out, err) = (ended.out(), ended.err());
    let said = out
        .lines()
        .chain(err.lines())
        .filter(|line| !line.starts_with("pinfold: reduced mode"));
    assert_eq!(said.collect::<Vec<_>>(), [""; 0]);
    let logs = place.home.join(".local/state/pinfold/logs");
    let texts = std::fs::read_dir(logs)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    assert!(texts.into_iter().any(|text| text.contains("denied.example.com")));
}

#[test]
fn many_requests_at_once_and_one_after_the_other_get_their_answers() {
    let place = Place::new();
    let port = service();
    let grant = format!("demo.pinfold=127.0.0.1:{port}");
    let script = "for i in 1 2 3 4 5 6 7 8; do curl -s --max-time 25 http://demo.pinfold/ & done; wait; curl -s http://demo.pinfold/ http://demo.pinfold/";
    let ended = finish(&mut place.sh(&["--service", &grant], script)).expect(0);
    assert_eq!(ended.out(), "hello!\n".repeat(10));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"x").unwrap();
}
