//! Starts that are ended on the way, and starts that meet.

use crate::agent::fake;
use crate::pane::{Terminal, Tmux};
use crate::place::{LIMIT, Place, bridge_of, finished, pinfold, signal, until};
use nix::sys::signal::Signal;
use rand::RngExt as _;
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// `start` in the terminal, under way.
fn begin(place: &Place, terminal: &mut Terminal, binary: &Path, more: &[&str]) -> i32 {
    let program = pinfold();
    let words = ["start", "--host", "terminal", "--binary"].map(OsStr::new);
    let words = [&[program.as_os_str()], &words[..], &[binary.as_os_str()]].concat();
    let more = more.iter().map(OsStr::new).collect();
    terminal.lead(place, &[words, more].concat())
}

#[test]
fn a_start_that_is_interrupted_leaves_nothing_and_says_so() {
    // While the version is asked for, and while the server is waited for.
    for behaviour in ["mute", "deaf"] {
        for how in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            let place = Place::new();
            let mut terminal = Terminal::open();
            let before = terminal.modes();
            let pid = begin(&place, &mut terminal, &fake(&place, behaviour), &[]);
            let held = |session: &Value| behaviour == "mute" || session["server"].is_object();
            until(LIMIT, "the bridge is at work", || {
                let session = place
                    .sessions()
                    .pop()
                    .filter(|s| s["lifecycleState"] == "starting" && held(s));
                // The bridge, and a sandbox that has its command.
                session.filter(|_| place.left().len() >= 3)
            });
            let begun = Instant::now();
            match how {
                // As a person would: the terminal makes the signal.
                Signal::SIGINT => terminal.write(b"\x03"),
                other => signal(pid, other),
            }
            assert_eq!(terminal.status(), Some(125), "{}", terminal.text());
            assert!(
                begun.elapsed() < Duration::from_secs(3),
                "{behaviour} {how}: {:?}",
                begun.elapsed()
            );
            assert_eq!(terminal.modes(), before);
            let record = place.session();
            assert_eq!(record["lifecycleState"], "failed");
            let message = format!("the start was interrupted ({how})");
            assert_eq!(
                record["lastError"]["message"].as_str(),
                Some(message.as_str()),
                "{record:#}"
            );
            place.nothing_is_left();
        }
    }
}

#[test]
fn stop_and_a_closed_pane_end_a_start() {
    for close in [false, true] {
        let place = Place::new();
        let tmux = Tmux::start(&place);
        let mut command = tmux.pinfold();
        command.args(["start", "--json", "--binary"]).arg(fake(&place, "deaf"));
        let said = finished(command);
        assert_eq!(said.status, Some(0), "{}", said.stderr);
        let session = place.session_of(&said.stdout, "starting");
        let pane = Tmux::pane_of(&session);
        let early = place.pinfold(["verify"]);
        assert_eq!(early.status, Some(1), "{}", early.stdout);
        assert!(early.stderr.contains("is still starting"), "{}", early.stderr);
        let begun = Instant::now();
        if close {
            tmux.run(["kill-pane", "-t", &pane]);
        } else {
            let said = place.pinfold(["stop"]);
            assert_eq!(said.status, Some(0), "{}", said.stderr);
        }
        let record = place.session_in("failed");
        assert!(
            record["lastError"]["message"]
                .as_str()
                .unwrap()
                .contains("the start was interrupted"),
            "{record:#}"
        );
        until(LIMIT, "the pane is closed", || {
            (!tmux.panes().contains(&pane)).then_some(())
        });
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        place.nothing_is_left();
    }
}

#[test]
fn a_bridge_that_is_killed_at_any_moment_of_a_start_leaves_no_process() {
    let place = Place::new();
    let binary = fake(&place, "stray");
    for attempt in 0..12 {
        let mut terminal = Terminal::open();
        let pid = begin(&place, &mut terminal, &binary, &[]);
        // The whole start takes some hundred milliseconds; half of the tries are in its first fifty.
        let most = if attempt % 2 == 0 { 50 } else { 500 };
        let delay = Duration::from_millis(rand::rng().random_range(0..most));
        std::thread::sleep(delay);
        signal(pid, Signal::SIGKILL);
        terminal.status();
        place.nothing_is_left();
        for session in place.sessions() {
            let state = session["lifecycleState"].as_str().unwrap();
            // One that no bridge has taken yet waits for it for a minute.
            assert!(
                state == "failed" || state == "provisional" && session["bridge"].is_null(),
                "{delay:?}: {session:#}"
            );
        }
        forget(&place);
    }
}

/// A provisional record would keep its terminal for a minute.
fn forget(place: &Place) {
    for entry in std::fs::read_dir(place.state().join("panes"))
        .into_iter()
        .flatten()
        .flatten()
    {
        std::fs::remove_file(entry.path()).unwrap();
    }
}

#[test]
fn of_two_starts_in_one_terminal_one_wins_and_the_other_names_it() {
    let place = Place::new();
    let binary = fake(&place, "good");
    let mut terminal = Terminal::open();
    let line = format!(
        "start() {{ '{}' start --host terminal --binary '{}' \"$@\"; echo \"ended $?\"; }}; exec 3<&0; start <&3 & start <&3 & wait",
        pinfold().display(),
        binary.display()
    );
    terminal.lead(&place, &["sh", "-c", &line].map(OsStr::new));
    terminal.shows("CLIENT READY");
    let record = place.session_in("running");
    let name = record["sessionName"].as_str().unwrap();
    terminal.shows("ended 1");
    let shown = terminal.text();
    let by_name = format!("is taken by the launch {name}");
    let by_process = format!("process {}", bridge_of(&record));
    assert!(shown.contains(&by_name) || shown.contains(&by_process), "{shown}");
    assert!(
        shown.contains("use another pane, or end that launch with `pinfold stop`"),
        "{shown}"
    );
    // And one that comes late.
    let mut command = place.command(pinfold());
    command.args(["start", "--host", "terminal", "--binary"]).arg(&binary);
    let stream = || terminal.slave.try_clone().unwrap();
    let late = command
        .stdin(stream())
        .stdout(stream())
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(late.status.code(), Some(125));
    let late = String::from_utf8(late.stderr).unwrap();
    assert!(late.contains(&by_process), "{late}");
    assert_eq!(place.session()["launchId"], record["launchId"]);
    assert_eq!(place.pinfold(["stop"]).status, Some(0));
    place.nothing_is_left();
}

#[test]
fn what_was_asked_for_reaches_the_pane_though_it_has_another_environment_and_folder() {
    let place = Place::new();
    let tmux = Tmux::start(&place);
    let profile = place.path().join("mine.json");
    let text = r#"{"meta": {"name": "mine"}, "extends": "opencode-server", "environment": {"set_vars": {"FROM_PROFILE": "yes"}}}"#;
    std::fs::write(&profile, text).unwrap();
    let mut command = tmux.pinfold();
    command
        .args(["start", "--json", "--workdir"])
        .arg(&place.project)
        .args([
            "--profile",
            "./mine.json",
            "--env",
            "E2E_PASSED",
            "--env",
            "E2E_SET=b",
            "--binary",
            "agents/good",
        ])
        // Neither the tmux server nor its panes have these.
        .env("E2E_PASSED", OsStr::from_bytes(b"a \"$x\" \xff"))
        .env("XDG_STATE_HOME", place.path().join("elsewhere"))
        .current_dir(place.path());
    fake(&place, "good");
    let said = finished(command);
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    let mut elsewhere = Place::new();
    elsewhere.variables.push(("HOME".into(), place.home().into()));
    elsewhere
        .variables
        .push(("XDG_STATE_HOME".into(), place.path().join("elsewhere").into()));
    let session = elsewhere.session_of(&said.stdout, "running");
    let server = crate::place::command_of(&session, "server");
    let environment = std::fs::read(format!("/proc/{server}/environ")).unwrap();
    for variable in [&b"E2E_PASSED=a \"$x\" \xff"[..], b"E2E_SET=b", b"FROM_PROFILE=yes"] {
        let found = environment.split(|b| *b == 0).any(|v| v == variable);
        assert!(
            found,
            "{} is not in {}",
            variable.escape_ascii(),
            environment.escape_ascii()
        );
    }
    // A value that was passed on is not kept.
    let panes = std::fs::read_dir(place.path().join("elsewhere/pinfold/panes"))
        .unwrap()
        .flatten();
    let panes = panes
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new("json")));
    let records: String = panes.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(!records.is_empty() && !records.contains("handover"), "{records}");
    assert_eq!(elsewhere.pinfold(["stop"]).status, Some(0));
    elsewhere.nothing_is_left();
}
