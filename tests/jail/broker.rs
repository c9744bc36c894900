//! P3: the broker leads to what is allowed, on the ports that are allowed, and to nothing of the host but granted
//! services; ports that are opened or published are the ones that were named.

use crate::harness::Attempt;
use crate::network::service;
use crate::place::{Place, Started, eventually, finish};
use nix::sys::signal::Signal;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

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

/// A tunnel or an absolute-form request for each name, in one sandbox; prints the status of each.
const ASK: &str = "
import os, socket, sys
port = int(os.environ['http_proxy'].rsplit(':', 1)[1].strip('/'))
for line in sys.argv[1:]:
    s = socket.create_connection(('127.0.0.1', port), 10); s.settimeout(20)
    host = line.split()[1].removeprefix('http://').split('/')[0]
    s.sendall(('%s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' % (line, host)).encode())
    try: answer = s.recv(4096)
    except ConnectionResetError: answer = b''
    print(line, '->', (answer.split(b' ') + [b'', b'closed'])[1].decode() or 'closed', flush=True)
";

fn ask(place: &Place, options: &[&str], requests: &[String]) -> Vec<String> {
    let mut argv = vec![
        "/usr/bin/python3".to_owned(),
        "-I".into(),
        "-S".into(),
        "-c".into(),
        ASK.into(),
    ];
    argv.extend(requests.iter().cloned());
    let ended = finish(&mut place.run(options, &argv)).expect(0);
    ended.out().lines().map(str::to_owned).collect()
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
    ] {
        for line in ask(&place, options, &requests) {
            assert!(!line.contains("-> 2"), "{line}");
            assert!(line.contains("-> 4") || line.contains("closed"), "{line}");
        }
    }
}

#[test]
fn a_grant_of_a_name_that_leads_to_the_host_is_refused() {
    let place = Place::new();
    let port = service();
    for name in [
        "localhost",
        "127.0.0.1",
        "*.localhost",
        "x.pinfold",
        "169.254.169.254",
        "host.local",
        "[::1]",
    ] {
        let ended = finish(&mut place.run(&["--allow-domain", &format!("{name}:{port}")], &["true"]));
        assert_eq!(ended.code(), 125, "{name}: {}", ended.err());
        assert_ne!(ended.err(), "");
    }
    for service in [
        "demo=127.0.0.1:1",
        "demo.pinfold",
        "demo.pinfold=127.0.0.1",
        "demo.pinfold=localhost:1",
        "demo.pinfold=127.0.0.1:0",
        ".pinfold=127.0.0.1:1",
    ] {
        let ended = finish(&mut place.run(&["--service", service], &["true"]));
        assert!(ended.code() == 125 || ended.code() == 2, "{service}: {}", ended.err());
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
    place.denies(&options, &direct, &["ECONNREFUSED"]);
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
    place.denies(&[], &Attempt::python(body).with(&text), &["ECONNREFUSED"]);
    place.denies(
        &["--open-port", &text],
        &Attempt::python(body).with(other.to_string()),
        &["ECONNREFUSED"],
    );
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
    let server = ["/usr/bin/python3", "-I", "-c", SERVER, &text];
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
    let hidden = Started::new(&mut place.run::<&str, _>(
        &[],
        &[
            "sh",
            "-c",
            "\"$@\" & echo up; wait",
            "sh",
            server[0],
            server[1],
            server[2],
            server[3],
            &text,
        ],
    ));
    std::thread::sleep(std::time::Duration::from_millis(700));
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
    let verdict = place.compare(&control, &["--block-net"], &connect, &["ECONNREFUSED"]);
    assert_eq!(verdict, crate::harness::Verdict::Held);
}

#[test]
fn decisions_go_to_a_log_and_not_to_the_command() {
    let place = Place::new();
    let ended = finish(&mut place.sh(&[], "curl -s http://denied.example.com/ >/dev/null; exit 0")).expect(0);
    assert_eq!(ended.out() + &String::from_utf8_lossy(&ended.err), "");
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
