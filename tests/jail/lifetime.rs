//! P5: everything inside ends with the launch, however the launch ends, and nothing is left behind.

use crate::mode::{by_mode, only_in_full};
use crate::place::{Place, Started, eventually, finish, marker, processes_with, program};
use crate::refusal::first;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

fn gone(word: &str) {
    eventually("nothing of the launch is left", || processes_with(word).is_empty());
}

#[test]
fn background_children_end_with_the_command() {
    let place = Place::new();
    for how in [
        "sleep $0 &",
        "nohup sleep $0 >/dev/null 2>&1 &",
        "setsid sleep $0 &",
        "(setsid sh -c 'trap \"\" TERM HUP INT; sleep $0' $0 &) &",
        "tmux new-session -d \"sleep $0\"",
    ] {
        let word = marker();
        let script = format!(
            "{how}\ni=0; until grep -zqs -e $0 /proc/[2-9]*/cmdline || [ $i -gt 50 ]; do i=$((i+1)); sleep 0.02; done; exit 3"
        );
        finish(&mut place.run::<&str, _>(&[], &["sh", "-c", &script, &word])).expect(3);
        // At once: the launcher collects the whole namespace before it ends itself.
        assert_eq!(processes_with(&word), Vec::<i32>::new(), "{how}");
    }
}

#[test]
fn a_background_child_outside_would_live() {
    let place = Place::new();
    let word = marker();
    finish(
        place
            .command("sh")
            .args(["-c", "sleep $0 >/dev/null 2>&1 & exit 3", &word]),
    )
    .expect(3);
    let left = processes_with(&word);
    assert_eq!(left.len(), 1);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(left[0]), Signal::SIGKILL).unwrap();
    gone(&word);
}

#[test]
fn nothing_survives_a_killed_launcher_at_any_moment() {
    let place = Place::new();
    let temporary = || -> BTreeSet<_> {
        std::fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect()
    };
    let before = temporary();
    for moment in [0, 1, 2, 4, 7, 10, 14, 19, 25, 32, 40, 50, 70, 100, 150, 250] {
        let word = marker();
        let options = ["--service", "a.pinfold=127.0.0.1:9", "--open-port", "9"];
        let mut command = place.run(&options, &["sh", "-c", "sleep $0 & setsid sleep $0 & sleep $0", &word]);
        let run = Started::new(command.env("TMPDIR", place.path()));
        std::thread::sleep(Duration::from_millis(moment));
        run.signal(Signal::SIGKILL);
        drop(run);
        gone(&word);
    }
    assert_eq!(before, temporary());
}

#[test]
fn a_signal_for_the_launcher_is_for_the_command() {
    let place = Place::new();
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
        (Signal::SIGQUIT, 131),
    ] {
        let word = marker();
        let run = Started::new(&mut place.run::<&str, _>(&[], &["sleep", &word]));
        eventually("the command runs", || {
            processes_with(&word).len() >= 3 && is_released(&word)
        });
        run.signal(signal);
        run.finish().expect(code);
        assert_eq!(processes_with(&word), Vec::<i32>::new());
    }
}

/// Whether the command itself runs: its program is no longer Pinfold's.
fn is_released(word: &str) -> bool {
    processes_with(word).iter().any(|pid| {
        let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        name == b"sleep\n" || name == b"sh\n"
    })
}

#[test]
fn the_command_decides_what_a_signal_does() {
    let place = Place::new();
    let script = "trap 'echo caught; exit 9' TERM; echo ready > ready; sleep $0 & wait";
    let run = Started::new(&mut place.run::<&str, _>(&[], &["sh", "-c", script, &marker()]));
    eventually("the trap is set", || place.work.join("ready").exists());
    run.signal(Signal::SIGTERM);
    assert_eq!(run.finish().expect(9).out(), "caught\n");
}

#[test]
fn a_command_that_ignores_the_end_is_ended() {
    let place = Place::new();
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let word = marker();
        let _ = std::fs::remove_file(place.work.join("ready"));
        let script = "trap '' TERM HUP INT; echo > ready; while :; do sleep $0; done";
        let run = Started::new(&mut place.run::<&str, _>(&[], &["sh", "-c", script, &word]));
        eventually("the signals are ignored", || place.work.join("ready").exists());
        run.signal(signal);
        run.finish().expect(137);
        gone(&word);
    }
}

#[test]
fn a_signal_at_any_moment_ends_the_launch() {
    let place = Place::new();
    for moment in [0, 2, 5, 9, 14, 20, 30, 60] {
        let signals = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
        for signal in signals
            .into_iter()
            .filter(|signal| !pinfold::sys::clone::is_ignored(*signal))
        {
            let word = marker();
            let run = Started::new(&mut place.run::<&str, _>(&[], &["sleep", &word]));
            std::thread::sleep(Duration::from_millis(moment));
            run.signal(signal);
            let ended = run.finish();
            assert_eq!(
                ended.code(),
                128 + signal as i32,
                "{signal} after {moment} ms: {}",
                ended.err()
            );
            gone(&word);
        }
    }
}

#[test]
fn the_first_process_inside_is_no_way_to_stay() {
    let place = Place::new();
    let word = marker();
    let run = Started::new(&mut place.run::<&str, _>(&[], &["sleep", &word]));
    eventually("the command runs", || is_released(&word));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first(&run)), Signal::SIGKILL).unwrap();
    run.finish().expect(125);
    gone(&word);
}

#[test]
fn a_reader_that_leaves_ends_the_writer() {
    let place = Place::new();
    let mut command = place.command("bash");
    let script = "\"$0\" run -- yes | head -n 2; echo ${PIPESTATUS[0]}";
    let ended = finish(command.args(["-c", script]).arg(program())).expect(0);
    assert_eq!(ended.out(), "y\ny\n141\n");
}

#[test]
fn streams_are_passed_as_they_are() {
    let place = Place::new();
    let mut command = place.command("bash");
    let script = "printf 'a\\nb' | \"$0\" run -- sh -c 'cat; echo err >&2; exit 4' 2>errors; echo \" $?\"; cat errors";
    let ended = finish(command.args(["-c", script]).arg(program())).expect(0);
    assert_eq!(ended.out(), "a\nb 4\nerr\n");
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = format!("\"$0\" run -- sh -c 'cat; echo x; echo y >&2; exit 5' {closed}");
        let mut command = place.command("bash");
        let ended = finish(command.args(["-c", &script]).arg(program()));
        assert!(ended.code() == 5, "{closed}: {} {}", ended.code(), ended.err());
    }
}

#[test]
fn thirty_two_at_once_all_end_well() {
    let place = Place::new();
    let word = marker();
    let run = || Started::new(&mut place.run::<&str, _>(&[], &["sh", "-c", "echo fine; exit 7", &word]));
    let all: Vec<Started> = (0..32).map(|_| run()).collect();
    for one in all {
        assert_eq!(one.finish().expect(7).out(), "fine\n");
    }
    gone(&word);
}

#[test]
fn a_hundred_in_a_row_never_hang() {
    let place = Place::new();
    for _ in 0..100 {
        let mut command = place.command("timeout");
        command
            .arg("10")
            .arg(program())
            .args(["run", "--", "true"])
            .stdout(Stdio::null());
        finish(&mut command).expect(0);
    }
}

#[test]
fn a_launch_inside_a_launch_is_refused_cleanly() {
    let place = Place::new();
    let folder = program();
    let options = ["--read", folder.to_str().unwrap()];
    let ended = finish(&mut place.run(&options, &[folder.to_str().unwrap(), "run", "--", "touch", "made"])).expect(126);
    let reason = by_mode("cannot enclose the command", "cannot use the folder");
    assert!(ended.err().contains(reason), "{}", ended.err());
    assert!(!place.work.join("made").exists());
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let place = Place::new();
    let script = "trap '' HUP; exec \"$0\" run -- sh -c 'echo > ready; sleep 0.5; kill -HUP $$; echo survived'";
    let mut command = place.command("sh");
    command.args(["-c", script, crate::place::program().to_str().unwrap()]);
    let run = Started::new(&mut command);
    eventually("the command runs", || place.work.join("ready").exists());
    run.signal(Signal::SIGHUP);
    assert_eq!(run.finish().expect(0).out(), "survived\n");
}

/// The child of the supervisor that is in no PID namespace of its own.
fn door_of(run: &Started) -> Option<i32> {
    let pid = run.pid();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<i32> = children
        .flat_map(|all| all.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    children.into_iter().find(|pid| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.is_some_and(|numbers| numbers.split_whitespace().count() == 1)
    })
}

#[test]
fn a_door_that_is_killed_ends_the_launch_with_a_word() {
    only_in_full!("in one network with the machine's there is no door to kill");
    let place = Place::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
        .to_string();
    let run = Started::new(&mut place.run(&["--listen-port", &port], &["sh", "-c", "echo > ready; sleep 60"]));
    eventually("the command runs", || place.work.join("ready").exists());
    let door = door_of(&run).expect("there is no door");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(door), nix::sys::signal::Signal::SIGKILL).unwrap();
    let ended = run.finish().expect(125);
    assert!(ended.err().contains("the door"), "{}", ended.err());
    let other = finish(&mut place.run(&["--listen-port", &port], &["sh", "-c", "sleep 0.3"]));
    other.expect(0);
}
