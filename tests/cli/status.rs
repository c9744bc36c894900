//! Exit statuses, what is said on which stream, and the events for scripts.

use crate::place::{Ended, Place, Started, eventually, finish, marker, processes_with, program};
use nix::sys::signal::Signal;
use serde_json::Value;

#[test]
fn the_commands_own_status_is_passed_on() {
    let place = Place::new();
    for code in [0, 1, 2, 42, 125, 126, 127, 255] {
        let ended = finish(&mut place.sh(&[], &format!("exit {code}"))).expect(code);
        assert_eq!((ended.out(), ended.err()), (String::new(), String::new()));
    }
}

#[test]
fn a_signal_is_128_and_its_number() {
    let place = Place::new();
    for (name, number) in [
        ("HUP", 1),
        ("INT", 2),
        ("TERM", 15),
        ("KILL", 9),
        ("SEGV", 11),
        ("ABRT", 6),
        ("USR1", 10),
        ("PIPE", 13),
        ("ALRM", 14),
    ] {
        finish(&mut place.sh(&[], &format!("kill -{name} $$"))).expect(128 + number);
    }
}

#[test]
fn a_missing_command_is_127_and_one_that_cannot_be_run_126() {
    let place = Place::new();
    std::fs::write(place.work.join("plain"), "no program").unwrap();
    for (command, code) in [
        ("no-such-command", 127),
        ("./no-such-file", 127),
        ("/no/such/file", 127),
        ("./plain", 126),
        ("/tmp", 126),
        (".", 126),
        ("./plain/below", 126),
        ("", 127),
    ] {
        let ended = finish(&mut place.run::<&str, _>(&[], &[command])).expect(code);
        assert_eq!(ended.out(), "");
        assert!(
            ended.err().starts_with("pinfold: ") && ended.err().contains("cannot be run inside"),
            "{command}: {}",
            ended.err()
        );
    }
}

#[test]
fn a_script_without_an_interpreter_and_one_with_a_missing_one_are_told_apart_from_silence() {
    let place = Place::new();
    let script = place.work.join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    finish(place.command("chmod").args(["+x", "script"])).expect(0);
    let ended = finish(&mut place.run::<&str, _>(&[], &["./script"]));
    assert!((126..=127).contains(&ended.code()), "{}", ended.code());
    assert_ne!(ended.err(), "");
}

#[test]
fn wrong_usage_is_2() {
    let place = Place::new();
    let calls: [&[&str]; 7] = [
        &["run"],
        &["run", "true"],
        &["run", "--no-such-option", "--", "true"],
        &["run", "--listen-port", "0", "--", "true"],
        &["run", "--listen-port", "65536", "--", "true"],
        &["run", "--status-fd", "x", "--", "true"],
        &["no-such-verb"],
    ];
    for call in calls {
        let ended = finish(place.command(program()).args(call)).expect(2);
        assert_eq!(ended.out(), "", "{call:?}");
        assert!(
            ended.err().contains("--help") || ended.err().contains("Usage"),
            "{call:?}: {}",
            ended.err()
        );
    }
}

#[test]
fn everything_after_the_two_dashes_is_the_command() {
    let place = Place::new();
    for word in ["--help", "-x", "--version", "--"] {
        finish(&mut place.run::<&str, _>(&[], &[word])).expect(127);
    }
    let ended = finish(&mut place.run::<&str, _>(&[], &["echo", "--read", "/", "--", "-n"])).expect(0);
    assert_eq!(ended.out(), "--read / -- -n\n");
}

#[test]
fn a_failure_is_told_once_with_what_to_do() {
    let place = Place::new();
    let ended = finish(&mut place.run(&["--read", "/no/such\x1b[31m/path"], &["true"])).expect(125);
    assert_eq!(ended.err().matches("pinfold: ").count(), 1, "{}", ended.err());
    assert!(!ended.err().contains('\x1b'), "a control character is shown as it is");
    assert_eq!(ended.out(), "");
    let ended = finish(&mut place.run(&["--json", "--read", "/no/such/path"], &["true"])).expect(125);
    let told: Value = serde_json::from_slice(&ended.out).unwrap();
    assert_eq!(told["ok"], false);
    assert_eq!(told["errorKind"], "not-found");
    assert!(told["message"].as_str().unwrap().contains("/no/such/path"));
}

fn events(script: &str) -> (Ended, Vec<Value>) {
    let place = Place::new();
    let mut command = place.command("bash");
    let ended = finish(
        command
            .args(["-c", "exec \"$0\" run --status-fd 5 -- sh -c \"$1\" 5>events"])
            .arg(program())
            .arg(script),
    );
    let text = std::fs::read_to_string(place.work.join("events")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (ended, lines)
}

#[test]
fn events_come_in_order_on_their_own_descriptor() {
    let (ended, events) = events("echo out; exit 7");
    assert_eq!(ended.expect(7).out(), "out\n");
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["resolved", "held", "verified", "released", "changed", "ended"]);
    assert_eq!(events[5]["status"], 7);
    assert_eq!(events[5]["signal"], Value::Null);
    assert_eq!(events[2]["report"]["findings"], serde_json::json!([]));
    assert!(events[1]["first"].as_i64().unwrap() > 1 && events[1]["command"].as_i64().unwrap() > 1);
}

#[test]
fn events_tell_a_signal_from_a_status() {
    let (ended, events) = events("kill -TERM $$");
    ended.expect(143);
    assert_eq!(events.last().unwrap()["signal"], 15);
    let place = Place::new();
    for fd in ["0", "1", "2", "77", "-1"] {
        let option = format!("--status-fd={fd}");
        let ended = finish(&mut place.run(&[option.as_str()], &["true"]));
        assert!(ended.code() == 125 || ended.code() == 2, "{fd}: {}", ended.code());
        assert_ne!(ended.err(), "");
    }
}

#[test]
fn the_events_descriptor_is_not_inside() {
    let (ended, _) = events("ls /proc/self/fd | tr '\\n' ' '");
    assert_eq!(ended.expect(0).out(), "0 1 2 3 ");
}

#[test]
fn a_status_descriptor_that_nobody_reads_does_not_hold_the_command() {
    let place = Place::new();
    let script = "exec \"$0\" run --status-fd 5 -- sh -c 'exit 6' 5> >(exit 0)";
    let mut command = place.command("bash");
    finish(command.args(["-c", script]).arg(program())).expect(6);
}

#[test]
fn a_launcher_that_is_stopped_and_continued_goes_on() {
    let place = Place::new();
    let word = marker();
    let run = Started::new(&mut place.sh(&[], &format!("sleep 0.4; echo end # {word}")));
    eventually("it runs", || !processes_with(&word).is_empty());
    run.signal(Signal::SIGSTOP);
    std::thread::sleep(std::time::Duration::from_millis(600));
    run.signal(Signal::SIGCONT);
    assert_eq!(run.finish().expect(0).out(), "end\n");
}
