//! Every way in which a session can end: nothing runs afterwards, the record is right, the terminal as before.

use crate::agent::{fake, skip};
use crate::intruder::Intruder;
use crate::pane::{Terminal, Tmux};
use crate::place::{LIMIT, Place, bridge_of, command_of, finished, pinfold, signal, until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::ffi::OsStr;
use std::time::Duration;

/// `start` in a terminal of its own, until the client is up.
struct Session {
    place: Place,
    terminal: Terminal,
    before: String,
    record: Value,
}

impl Session {
    #[track_caller]
    fn start(behaviour: &str) -> Session {
        let place = Place::new();
        let binary = fake(&place, behaviour);
        let mut terminal = Terminal::open();
        let before = terminal.modes();
        let program = pinfold();
        let words = ["start", "--host", "terminal", "--binary"].map(OsStr::new);
        let words = [&[program.as_os_str()], &words[..], &[binary.as_os_str()]].concat();
        terminal.lead(&place, &words);
        terminal.shows("CLIENT READY");
        let record = place.session_in("running");
        assert_ne!(terminal.modes(), before, "the keys go to the client as they are");
        Session {
            place,
            terminal,
            before,
            record,
        }
    }

    /// Ended by now: with this status, in that state; returns the record.
    #[track_caller]
    fn has_ended(&mut self, status: i32, state: &str) -> Value {
        assert_eq!(self.terminal.status(), Some(status), "{}", self.terminal.text());
        assert_eq!(self.terminal.modes(), self.before);
        let shown = self.terminal.text();
        let (_, last) = shown.rsplit_once("CLIENT READY").unwrap();
        for off in ["\x1b[?1049l", "\x1b[?1003l", "\x1b[?1006l", "\x1b[?2004l", "\x1b[?25h"] {
            assert!(last.contains(off), "{off:?} was not sent: {last:?}");
        }
        self.place.nothing_is_left();
        let record = self.place.session();
        assert_eq!(record["lifecycleState"], state, "{record:#}");
        assert_eq!(record["bridge"], Value::Null);
        assert!(record["exitedAt"].is_string());
        record
    }
}

#[test]
fn the_clients_own_exit_is_passed_on_and_ends_everything() {
    let mut session = Session::start("stray");
    let processes = session.place.left().len();
    assert!(
        processes >= 6,
        "bridge, door, two first processes, server, its stray child, client: {processes}"
    );
    assert!(
        session.terminal.text().contains("JOINED"),
        "the client reaches the server"
    );
    session.terminal.write(b"q");
    let record = session.has_ended(7, "exited");
    assert_eq!(
        (&record["lastExitCode"], &record["lastError"]),
        (&Value::from(7), &Value::Null)
    );
}

#[test]
fn stop_ends_everything_also_where_nobody_listens_to_signals() {
    for (behaviour, status) in [("stray", 143), ("stubborn", 137)] {
        let mut session = Session::start(behaviour);
        let said = session.place.pinfold(["stop", "--json"]);
        assert_eq!(said.status, Some(0), "{}", said.stderr);
        let answer: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(
            (&answer["ended"], &answer["state"]),
            (&Value::from(true), &Value::from("exited"))
        );
        let record = session.has_ended(status, "exited");
        assert_eq!(record["lastExitCode"], status);
        let again = session.place.pinfold(["stop"]);
        assert_eq!(again.status, Some(1));
        assert!(again.stderr.contains("no session is running"), "{}", again.stderr);
    }
}

#[test]
fn the_end_of_the_server_ends_the_client_and_is_told() {
    let mut session = Session::start("stray");
    signal(command_of(&session.record, "server"), Signal::SIGKILL);
    let record = session.has_ended(125, "failed");
    let error = &record["lastError"];
    assert_eq!(error["kind"], "startup");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("the server ended while the client was up (signal 9)")
    );
    assert!(
        session
            .terminal
            .text()
            .contains("the server ended while the client was up")
    );
}

#[test]
fn the_end_of_a_sandbox_itself_is_told() {
    for side in ["server", "client"] {
        let mut session = Session::start("good");
        let init = session.record[side]["init"]["pid"].as_i64().unwrap();
        signal(i32::try_from(init).unwrap(), Signal::SIGKILL);
        let record = session.has_ended(125, "failed");
        let message = record["lastError"]["message"].as_str().unwrap();
        assert!(message.contains("its sandbox was ended from outside"), "{message}");
    }
}

#[test]
fn an_unconfined_process_in_either_sandbox_ends_both_and_is_recorded() {
    for side in ["server", "client"] {
        let mut session = Session::start("good");
        // The control: it is verified again and again, and stays.
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(session.place.session()["lifecycleState"], "running");
        let first = session.record[side]["init"]["pid"].to_string();
        let intruder = match Intruder::enter(session.place.command("nsenter"), &first) {
            Ok(intruder) => intruder,
            Err(reason) => return skip(reason),
        };
        let record = session.has_ended(126, "failed");
        drop(intruder);
        let error = &record["lastError"];
        assert_eq!(error["kind"], "unconfined", "{side}: {error}");
        assert!(
            session.terminal.text().contains("verification failed"),
            "{side}: {}",
            session.terminal.text()
        );
    }
}

#[test]
fn a_killed_client_ends_the_server() {
    let mut session = Session::start("stray");
    signal(command_of(&session.record, "client"), Signal::SIGKILL);
    let record = session.has_ended(137, "exited");
    assert_eq!(record["lastExitCode"], 137);
}

#[test]
fn a_killed_bridge_takes_everything_with_it_and_the_next_list_says_so() {
    let session = Session::start("stray");
    signal(bridge_of(&session.record), Signal::SIGKILL);
    session.place.nothing_is_left();
    let record = session.place.session();
    assert_eq!(record["lifecycleState"], "failed");
    assert_eq!(
        record["lastError"]["message"],
        "the bridge ended without recording its exit"
    );
    let said = session.place.pinfold(["stop"]);
    assert_eq!(said.status, Some(1), "{}", said.stdout);
}

#[test]
fn a_window_that_is_closed_ends_everything() {
    // The terminal's session leader is told; and where that is a shell that does not pass it on, the hang-up is seen.
    for through_a_shell in [false, true] {
        let place = Place::new();
        let binary = fake(&place, "stray");
        let program = pinfold();
        let mut terminal = Terminal::open();
        let line = format!(
            "trap '' HUP; '{}' start --host terminal --binary '{}'; sleep 1",
            program.display(),
            binary.display()
        );
        let direct = ["start", "--host", "terminal", "--binary"].map(OsStr::new);
        let words = match through_a_shell {
            true => ["sh", "-c", &line].map(OsStr::new).to_vec(),
            false => [&[program.as_os_str()], &direct[..], &[binary.as_os_str()]].concat(),
        };
        terminal.lead(&place, &words);
        terminal.shows("CLIENT READY");
        place.session_in("running");
        let mut leader = terminal.close().unwrap();
        until(LIMIT, "the session is over", || place.left().is_empty().then_some(()));
        until(LIMIT, "the leader ends", || leader.try_wait().unwrap());
        let record = place.session();
        assert_eq!(record["lifecycleState"], "exited", "{record:#}");
    }
}

#[test]
fn a_closed_tmux_pane_and_a_tmux_that_ends_end_everything() {
    for whole_server in [false, true] {
        let place = Place::new();
        let binary = fake(&place, "stray");
        let tmux = Tmux::start(&place);
        let mut command = tmux.pinfold();
        command.args(["start", "--json", "--binary"]).arg(binary);
        let said = finished(command);
        assert_eq!(said.status, Some(0), "{}", said.stderr);
        let session = place.session_of(&said.stdout, "running");
        let pane = Tmux::pane_of(&session);
        tmux.shows(&pane, "CLIENT READY");
        match whole_server {
            true => tmux.run(["kill-server"]),
            false => tmux.run(["kill-pane", "-t", &pane]),
        };
        let record = place.session_in("exited");
        assert_eq!(record["launchId"], session["launchId"]);
        place.nothing_is_left();
    }
}

#[test]
fn a_server_that_its_own_tool_stops_does_not_stop_the_supervisor() {
    let session = Session::start("good");
    let bridge = bridge_of(&session.record);
    signal(command_of(&session.record, "server"), Signal::SIGSTOP);
    // It still verifies, and takes keys.
    let answer = session.place.json(["verify", "--json"]);
    assert_eq!(answer["verified"], true, "{answer:#}");
    let state = std::fs::read_to_string(format!("/proc/{bridge}/status")).unwrap();
    assert!(!state.contains("State:\tT"), "{state}");
    let mut session = session;
    session.terminal.write(b"q");
    session.has_ended(7, "exited");
}
