//! Agents that are missing, broken or not what they say: each gets a clear error and a true record, and leaves nothing.

use crate::agent::fake;
use crate::pane::{Terminal, Tmux};
use crate::place::{LIMIT, Place, finished, pinfold, until};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};

/// `start` in a terminal of its own, to its end: its status and what it showed.
#[track_caller]
fn start(place: &Place, binary: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut terminal = Terminal::open();
    let before = terminal.modes();
    let program = pinfold();
    let words = ["start", "--host", "terminal", "--binary"].map(OsString::from);
    let words: Vec<OsString> = std::iter::once(program.into_os_string())
        .chain(words)
        .chain([binary.into()])
        .chain(more.iter().map(OsString::from))
        .collect();
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    terminal.lead(place, &words);
    let status = terminal.status();
    assert_eq!(terminal.modes(), before);
    (status, terminal.text())
}

#[test]
fn an_agent_that_cannot_be_used_is_told_from_every_other() {
    // Behaviour, kind in the record, and the words that say what is wrong.
    let table = [
        (
            "exits",
            "startup",
            "the agent's server ended before it was ready: exit status 3",
        ),
        ("deaf", "startup", "was not ready after 2 seconds: nothing listens yet"),
        (
            "silent",
            "startup",
            "was not ready after 2 seconds: it took a request and did not answer it",
        ),
        // Its backlog is full after the first tries: a connect then hangs, which must not outlast the limit.
        ("full", "startup", "was not ready after 2 seconds"),
        ("open", "startup", "answers without the password"),
        ("html", "startup", "it answered with \"text/html\" instead of JSON"),
        ("old", "target", "says version 2.0.1, but 1.x was started"),
        (
            "unknown",
            "target",
            "says version \"lildax vlocal\", which Pinfold does not know",
        ),
        ("crash", "startup", "did not tell its version: signal 6"),
        ("mute", "startup", "did not tell its version within 2 seconds"),
        ("babble", "startup", "did not tell its version within 2 seconds"),
    ];
    for (behaviour, kind, message) in table {
        let place = Place::new();
        let begun = Instant::now();
        let (status, shown) = start(&place, &fake(&place, behaviour), &["--ready-timeout", "2"]);
        assert!(begun.elapsed() < Duration::from_secs(20), "{behaviour}");
        assert_eq!(status, Some(125), "{behaviour}: {shown}");
        assert!(
            shown.starts_with("pinfold: ") && shown.contains(message),
            "{behaviour}: {shown}"
        );
        // What happened, and a line on what to do about it.
        let is_progress = |line: &&str| line.contains(" is granted; ") || line.contains("it starts now");
        let lines = shown
            .trim_end()
            .lines()
            .filter(|line| !is_progress(line))
            .collect::<Vec<_>>();
        assert!(lines.len() == 2 && lines[1].starts_with("  "), "{behaviour}: {shown}");
        let record = place.session();
        assert_eq!(record["lifecycleState"], "failed", "{behaviour}");
        assert_eq!(record["lastError"]["kind"], kind, "{behaviour}");
        assert!(
            record["lastError"]["message"].as_str().unwrap().contains(message),
            "{behaviour}: {record:#}"
        );
        assert_eq!(record["bridge"], Value::Null);
        place.nothing_is_left();
    }
}

#[test]
fn the_servers_last_words_are_in_its_log() {
    let place = Place::new();
    start(&place, &fake(&place, "exits"), &[]);
    let log = place.session()["serverLog"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(log).unwrap(), "it does not like this machine\n");
}

#[test]
fn a_program_that_cannot_run_is_refused_before_anything_is_recorded() {
    let place = Place::new();
    let plain = place.path().join("plain");
    std::fs::write(&plain, "text").unwrap();
    let script = fake(&place, "script");
    std::fs::write(&script, "#!/bin/sh\nexec cat\n").unwrap();
    let in_project = place.project.join("agent");
    std::fs::copy(fake(&place, "good"), &in_project).unwrap();
    for (binary, code, message) in [
        (place.path().join("none"), 127, "cannot be read: No such file"),
        (plain, 126, "is not executable"),
        (place.path().to_owned(), 126, "is not executable"),
        (script, 125, "is no program but a script"),
        (in_project, 126, "lies inside the workspace"),
    ] {
        let (status, shown) = start(&place, &binary, &[]);
        assert_eq!(status, Some(code), "{shown}");
        assert!(shown.contains(message), "{message}: {shown}");
        assert_eq!(shown.trim_end().lines().count(), 2, "{shown}");
        assert!(place.sessions().is_empty());
    }
    // Without --binary: nothing of that name on PATH, nor of Pinfold's own.
    let said = place.pinfold(["start", "--host", "tmux"]);
    assert_eq!(said.status, Some(127));
    assert!(said.stderr.contains("opencode is not installed"), "{}", said.stderr);
    assert!(said.stderr.contains("npm install"), "{}", said.stderr);
}

#[test]
fn a_failure_stays_readable_in_its_pane_until_somebody_has_read_it() {
    let place = Place::new();
    let tmux = Tmux::start(&place);
    for ending in ["Enter", "C-c", "stop"] {
        let mut command = tmux.pinfold();
        // Typed ahead for the agent, that is no answer to the message.
        command.args(["start", "--json", "--binary"]).arg(fake(&place, "exits"));
        let said = finished(command);
        assert_eq!(said.status, Some(0), "{}", said.stderr);
        let session = place.session_of(&said.stdout, "failed");
        let pane = tmux.panes().pop().unwrap();
        tmux.shows(&pane, "ended before it was ready: exit status 3");
        tmux.shows(&pane, "(Enter closes this pane)");
        match ending {
            "stop" => {
                // Nothing of it runs any more, and it says so; the pane is closed by hand.
                let said = place.pinfold(["stop", session["launchId"].as_str().unwrap()]);
                assert!(said.stderr.contains("is not running"), "{}", said.stderr);
                tmux.run(["kill-pane", "-t", &pane])
            }
            key => tmux.run(["send-keys", "-t", &pane, key]),
        };
        until(LIMIT, "the pane is closed", || {
            (!tmux.panes().contains(&pane)).then_some(())
        });
        place.nothing_is_left();
    }
}
