//! P8: the listener on P belongs to the server's tree, and the client talks to P and to nothing else; broken for real.

use crate::agent::{fake, skip};
use crate::pane::Terminal;
use crate::place::{LIMIT, Place, pinfold, until};
use serde_json::Value;
use std::ffi::OsStr;
use std::process::Child;
use std::time::Duration;

/// A `start` in a terminal of its own.
fn start(place: &Place, behaviour: &str) -> Terminal {
    let mut terminal = Terminal::open();
    let (program, binary) = (pinfold(), fake(place, behaviour));
    let words = ["start", "--ready-timeout", "30", "--host", "terminal", "--binary"].map(OsStr::new);
    let words = [&[program.as_os_str()], &words[..], &[binary.as_os_str()]].concat();
    terminal.lead(place, &words);
    terminal
}

/// Listens at the port in its first argument, and answers as a server would that knows no password.
const LISTENER: &str = "
import socket, sys, time
s = socket.create_server(('127.0.0.1', int(sys.argv[1])))
print('listens', flush=True)
time.sleep(20)";

/// A process of the host, in the server's network and in nothing else of it, that takes P before the server does.
fn usurper(place: &Place, session: &Value) -> Option<Child> {
    let first = session["server"]["init"]["pid"].to_string();
    let mut nsenter = place.command("nsenter");
    nsenter.args(["-t", &first, "-U", "--preserve-credentials", "-n", "--"]);
    nsenter.args(["/usr/bin/python3", "-I", "-c", LISTENER, &session["port"].to_string()]);
    let mut child = nsenter.stdout(std::process::Stdio::piped()).spawn().ok()?;
    let mut said = [0; 8];
    let read = std::io::Read::read(child.stdout.as_mut()?, &mut said);
    if read.is_ok_and(|count| count > 0) {
        return Some(child);
    }
    child.wait().ok()?;
    None
}

#[test]
fn a_listener_on_the_port_that_is_not_the_servers_ends_the_start() {
    let place = Place::new();
    let mut terminal = start(&place, "deaf");
    let session = until(LIMIT, "the server's sandbox is there", || {
        place.sessions().pop().filter(|session| session["server"].is_object())
    });
    let Some(mut usurper) = usurper(&place, &session) else {
        return skip("this user may not step into the server's network");
    };
    let status = terminal.status();
    usurper.kill().unwrap();
    usurper.wait().unwrap();
    assert_eq!(status, Some(126), "{}", terminal.text());
    let record = place.session();
    assert_eq!(record["lastError"]["kind"], "unconfined", "{record:#}");
    let message = record["lastError"]["message"].as_str().unwrap();
    assert!(
        message.contains("is held by a process that is not in the sandbox"),
        "{message}"
    );
    place.nothing_is_left();
}

#[test]
fn a_client_that_talks_to_anything_but_its_port_is_ended() {
    let place = Place::new();
    let mut terminal = start(&place, "good");
    terminal.shows("CLIENT READY");
    // The control: what it calls itself is its own affair, and it stays.
    terminal.write(b"t");
    terminal.shows("RETITLED");
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(place.session()["lifecycleState"], "running");
    let said = place.pinfold(["verify"]);
    assert_eq!(said.status, Some(0), "{} {}", said.stdout, said.stderr);
    terminal.write(b"w");
    assert_eq!(terminal.status(), Some(126), "{}", terminal.text());
    assert!(terminal.text().contains("WANDERS"));
    let record = place.session();
    assert_eq!(record["lastError"]["kind"], "unconfined", "{record:#}");
    let message = record["lastError"]["message"].as_str().unwrap();
    assert!(message.contains("a connection goes to 127.0.0.1:"), "{message}");
    place.nothing_is_left();
}
