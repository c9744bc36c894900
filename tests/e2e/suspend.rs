//! A client that suspends itself suspends both sandboxes, the server's tools too, and `fg` goes on with them.

use crate::agent::fake;
use crate::pane::Terminal;
use crate::place::{LIMIT, Place, command_of, pinfold, until};
use serde_json::Value;
use std::ffi::OsStr;
use std::time::Duration;

/// The letter of a process's state.
fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

#[test]
fn a_suspended_client_takes_the_server_along_and_fg_brings_both_back() {
    let place = Place::new();
    let binary = fake(&place, "good");
    let mut terminal = Terminal::open();
    let shell = ["bash", "--norc", "--noprofile", "-i"].map(OsStr::new);
    terminal.lead(&place, &shell);
    let line = format!(
        "{} start --host terminal --binary {}\n",
        pinfold().display(),
        binary.display()
    );
    terminal.write(line.as_bytes());
    terminal.shows("CLIENT READY");
    let session = place.session_in("running");
    let (server, client) = (command_of(&session, "server"), command_of(&session, "client"));
    assert_ne!(state(server), 'T', "the control");
    terminal.write(b"z");
    terminal.shows("Stopped");
    until(LIMIT, "both stand still", || {
        (state(server) == 'T' && state(client) == 'T').then_some(())
    });
    terminal.write(b"fg\n");
    terminal.shows("CLIENT BACK");
    assert_ne!(state(server), 'T');
    // It is looked at again, and holds.
    std::thread::sleep(Duration::from_millis(1500));
    let said = place.pinfold(["verify", "--json"]);
    let answer: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(answer["verified"], true, "{}", said.stderr);
    terminal.write(b"q");
    // What is typed before is the client's.
    terminal.shows(" has ended");
    terminal.write(b"echo status $?; exit\n");
    terminal.shows("status 7");
    place.nothing_is_left();
}
