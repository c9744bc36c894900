//! P6, P8: ctrl-Z and `fg`, ctrl-C and who decides, and that nothing inside runs while nobody looks.

use crate::harness::PYTHON;
use crate::pane::{Pane, size};
use crate::place::{LIMIT, Place, eventually, finish, marker, processes_with};
use crate::terminal::{pane, shell};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt as _;
use std::time::{Duration, Instant};

/// A process in a session of its own that no key reaches: it writes a byte every ten milliseconds.
const BEATS: &str = "setsid sh -c 'while :; do printf x >> beats; sleep 0.01; done' &";

/// Whether it beats.
fn beats(place: &Place) -> bool {
    let count = || std::fs::metadata(place.work.join("beats")).map_or(0, |file| file.len());
    let before = count();
    std::thread::sleep(Duration::from_millis(400));
    count() > before
}

#[test]
fn nothing_inside_runs_while_the_launcher_is_stopped() {
    let place = Place::new();
    let mut shell = shell(&place);
    let script = format!("\"$PF\" run -- bash -c \"{BEATS} echo READY; exec cat\"\n");
    shell.write(script.as_bytes());
    shell.expect("READY\r\n");
    for _ in 0..2 {
        eventually("the control: it beats", || beats(&place));
        shell.write(b"\x1a");
        shell.expect("Stopped");
        shell.expect("PROMPT> ");
        assert!(!beats(&place), "something runs, and the launcher is stopped");
        shell.write(b"fg\n");
        shell.expect("exec cat");
        shell.write(b"typed\n");
        shell.expect("typed\r\ntyped\r\n");
    }
    shell.write(b"\x04");
    shell.expect("PROMPT> ");
    shell.write(b"exit\n");
    shell.finish();
}

#[test]
fn a_launcher_that_is_asked_to_stop_stops_the_sandbox_first() {
    let place = Place::new();
    let mut command = place.run(&[] as &[&str], &["bash", "-c", &format!("{BEATS} cat; echo end")]);
    // In its own group, as a shell would start it: one that nobody could continue is not stopped.
    let mut run = command
        .process_group(0)
        // It lasts until this is closed, however long the looks at it take.
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(run.id()).unwrap());
    eventually("the control: it beats", || beats(&place));
    kill(pid, Signal::SIGTSTP).unwrap();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    };
    eventually("the launcher is stopped", || state() == 'T');
    assert!(!beats(&place), "something runs, and the launcher is stopped");
    kill(pid, Signal::SIGCONT).unwrap();
    eventually("it goes on", || beats(&place));
    drop(run.stdin.take());
    let end = Instant::now() + LIMIT;
    while run.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(run.wait_with_output().unwrap().stdout, b"end\n");
}

#[test]
fn what_waited_in_the_kernel_when_all_was_stopped_goes_on_afterwards() {
    let place = Place::new();
    // A parent that waits as in vfork(2), until its child ends.
    let script = format!(
        "import ctypes, os, time\n\
         if ctypes.CDLL(None).syscall({}, 0x4000 | 17, 0, 0, 0, 0) == 0:\n    open('held', 'w')\n    \
         while not os.path.exists('go'): time.sleep(0.01)\n    os._exit(0)\n\
         open('on', 'w')",
        nix::libc::SYS_clone
    );
    std::fs::write(place.work.join("waits.py"), script).unwrap();
    // Not the command itself, which is continued in any case.
    let mut command = place.run(&[] as &[&str], &["bash", "-c", "setsid python3 waits.py; true"]);
    let mut run = command.process_group(0).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(run.id()).unwrap());
    eventually("the parent waits", || place.work.join("held").exists());
    kill(pid, Signal::SIGTSTP).unwrap();
    eventually("the launcher is stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    });
    std::fs::write(place.work.join("go"), "").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(
        !place.work.join("on").exists(),
        "something runs, and the launcher is stopped"
    );
    kill(pid, Signal::SIGCONT).unwrap();
    let goes_on = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        place.work.join("on").exists()
    });
    if !goes_on {
        run.kill().unwrap();
    }
    run.wait().unwrap();
    assert!(goes_on, "the parent does not go on");
}

#[test]
fn what_a_shell_inside_had_stopped_stays_stopped_after_fg() {
    let place = Place::new();
    let mut shell = shell(&place);
    // A job in a group of its own that was stopped before, and the command that is stopped by the key.
    let inner = "setsid sh -c 'while :; do printf x >> beats; sleep 0.01; done' & sleep 0.3; kill -STOP -- $!; sleep 0.1; echo READY; exec cat";
    std::fs::write(place.work.join("inner.sh"), inner).unwrap();
    shell.write(b"\"$PF\" run -- bash inner.sh\n");
    shell.expect("READY\r\n");
    let stopped = std::fs::metadata(place.work.join("beats")).unwrap().len();
    assert!(stopped > 0, "the control: it beat before");
    shell.write(b"\x1a");
    shell.expect("Stopped");
    shell.write(b"fg\n");
    shell.expect("inner.sh");
    shell.write(b"typed\n");
    shell.expect("typed\r\ntyped\r\n");
    assert!(!beats(&place));
    shell.write(b"\x04");
    shell.expect("PROMPT> ");
    shell.write(b"exit\n");
    shell.finish();
}

#[test]
fn after_fg_the_command_is_told_to_draw_anew_and_has_the_panes_size() {
    let place = Place::new();
    let mut shell = shell(&place);
    let script =
        "trap 'stty size' WINCH; trap 'echo GOES-ON' CONT; echo READY; while read word; do echo got $word; done";
    std::fs::write(place.work.join("inner.sh"), script).unwrap();
    // `sh` tells nothing while it reads, so Bash.
    shell.write(b"\"$PF\" run -- bash inner.sh\n");
    shell.expect("READY\r\n");
    shell.write(b"\x1a");
    shell.expect("Stopped");
    shell.expect("PROMPT> ");
    shell.write(b"fg\n");
    shell.expect("inner.sh");
    shell.expect("GOES-ON");
    shell.expect("30 100");
    shell.write(b"\x1a");
    shell.expect("Stopped");
    shell.resize(&size(91, 33));
    shell.write(b"fg\n");
    shell.expect("33 91");
    shell.write(b"\x04");
    shell.expect("PROMPT> ");
    shell.write(b"exit\n");
    shell.finish();
}

#[test]
fn where_nobody_could_type_fg_control_z_stops_nothing() {
    let place = Place::new();
    // The first process of its pane: its process group is an orphan.
    let mut inside = pane(&place, "echo READY; exec cat");
    inside.expect("READY\r\n");
    inside.write(b"\x1a");
    std::thread::sleep(Duration::from_millis(300));
    inside.write(b"typed\n");
    inside.expect("typed\r\n");
    inside.expect("typed\r\n");
    inside.write(b"\x04");
    assert!(inside.finish().0.success());
}

#[test]
fn jobs_go_to_the_background_and_come_back_inside() {
    let place = Place::new();
    let argv = ["bash", "--norc", "--noprofile", "-i"];
    let mut inside = Pane::new(&place.run(&["--env", "PS1=inner> "], &argv), &size(100, 30));
    inside.expect("inner> ");
    for line in [&b"sleep 61 & jobs\n"[..], b"fg\n"] {
        inside.write(line);
        inside.expect("sleep 61");
    }
    std::thread::sleep(Duration::from_millis(200));
    inside.write(b"\x1a");
    inside.expect("Stopped");
    inside.write(b"bg; jobs -r; kill %1; wait; echo over-$((1+1))\n");
    inside.expect("Running");
    inside.expect("over-2");
    inside.write(b"exit 4\n");
    assert_eq!(inside.finish().0.code(), Some(4));
}

#[test]
fn each_press_of_control_c_is_the_commands_and_the_second_may_end_it() {
    let place = Place::new();
    let cooked =
        "n=0; trap 'n=$((n+1)); echo press-$n; test $n -lt 2 || exit 9' INT; echo READY; while :; do sleep 0.02; done";
    let raw = "
import os, sys, termios, tty
before = termios.tcgetattr(0); tty.setraw(0)
os.write(1, b'READY'); n = 0
while os.read(0, 1) == b'\\x03':
    n += 1; os.write(1, b'press-%d' % n)
    if n == 2: termios.tcsetattr(0, 1, before); sys.exit(9)";
    let argv: [&[&str]; 2] = [&["bash", "-c", cooked], &[PYTHON, "-I", "-S", "-c", raw]];
    for argv in argv {
        let mut inside = Pane::new(&place.run::<&str, _>(&[], argv), &size(80, 24));
        inside.expect("READY");
        inside.write(b"\x03");
        inside.expect("press-1");
        inside.write(b"\x03");
        inside.expect("press-2");
        assert_eq!(inside.finish().0.code(), Some(9));
    }
}

#[test]
fn a_command_that_ignores_control_c_is_ended_by_other_means() {
    let place = Place::new();
    let word = marker();
    let mut inside = pane(&place, &format!("trap '' INT; echo READY; exec sleep {word}"));
    inside.expect("READY");
    inside.write(b"\x03\x03\x03");
    std::thread::sleep(Duration::from_millis(300));
    assert!(inside.child.try_wait().unwrap().is_none(), "its own decision");
    kill(
        Pid::from_raw(i32::try_from(inside.child.id()).unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    assert_eq!(inside.finish().0.code(), Some(143));
    assert_eq!(processes_with(&word), Vec::<i32>::new());
}

#[test]
fn a_killed_launcher_leaves_a_terminal_that_reset_repairs() {
    let place = Place::new();
    let mut inside = pane(&place, "printf '\\033[?1003hREADY'; exec cat");
    let before = inside.modes();
    inside.expect("READY");
    kill(
        Pid::from_raw(i32::try_from(inside.child.id()).unwrap()),
        Signal::SIGKILL,
    )
    .unwrap();
    inside.finish();
    assert_ne!(
        inside.modes(),
        before,
        "the documentation says what to type only because of this"
    );
    let mut reset = place.command("stty");
    finish(reset.arg("sane").stdin(inside.stream())).expect(0);
    let cooked = |modes: &str| modes.contains("ICANON") && modes.contains("ECHO") && modes.contains("ISIG");
    assert!(cooked(&before) && cooked(&inside.modes()), "{}", inside.modes());
}
