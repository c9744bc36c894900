//! P6: the sandbox has a terminal of its own, the pane's is restored on every exit, and keys reach the command.

use crate::harness::{PYTHON, covered_by_root};
use crate::mode::{by_mode, only_in_full};
use crate::pane::{Pane, size};
use crate::place::{Place, eventually, marker, processes_with, program};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::process::ExitStatusExt as _;

pub fn pane(place: &Place, script: &str) -> Pane {
    Pane::new(&place.sh(&[], script), &size(100, 30))
}

/// An interactive shell in the pane, as a person has it.
pub fn shell(place: &Place) -> Pane {
    let mut command = place.command("bash");
    command
        .args(["--norc", "--noprofile", "-i"])
        .env("PS1", "PROMPT> ")
        .env("PF", program());
    let mut pane = Pane::new(&command, &size(100, 30));
    pane.expect("PROMPT> ");
    pane
}

#[test]
fn the_command_has_a_terminal_and_it_is_not_the_panes() {
    let place = Place::new();
    let mut outside = Pane::new(place.command("tty").arg("--"), &size(100, 30));
    let (_, name) = outside.finish();
    let mut inside = pane(
        &place,
        "test -t 0 && test -t 1 && test -t 2 && tty && stty size && echo to-tty >/dev/tty && echo /dev/pts/*",
    );
    let (status, text) = inside.finish();
    assert!(status.success(), "{text}");
    assert!(text.contains("30 100") && text.contains("to-tty"), "{text}");
    only_in_full!("terminals have the machine's numbers");
    assert!(text.contains("/dev/pts/0"), "{text}");
    assert!(
        !text.contains(name.trim()) || name.trim() == "/dev/pts/0",
        "{name} {text}"
    );
    assert!(
        text.ends_with("to-tty\r\n/dev/pts/0 /dev/pts/ptmx\r\n"),
        "another terminal is there: {text:?}"
    );
}

/// Waits for the path of a terminal to be typed, opens it by its name and puts a byte into its input.
const OPEN: &str = "
import fcntl, os, sys
try: fd = os.open(sys.stdin.readline().strip(), os.O_RDWR | os.O_NOCTTY)
except OSError as e: print('OPENED', e.errno, flush=True); sys.exit()
print('OPENED', 0, flush=True)
os.write(fd, b'WRITTEN')";

#[test]
fn the_panes_terminal_cannot_be_opened() {
    let place = Place::new();
    let small = size(80, 24);
    // The sandbox's own terminal is number 0 there, so the pane's must have another number to tell them apart.
    let first = Pane::new(place.command("sleep").arg("60"), &small);
    let open = |mut pane: Pane| {
        let name = pane.terminal();
        assert_ne!(name.to_str(), Some("/dev/pts/0"), "two terminals have one name");
        pane.write(format!("{}\n", name.display()).as_bytes());
        pane.expect("OPENED ");
        pane.finish().1
    };
    let argv = [PYTHON, "-I", "-S", "-c", OPEN];
    let outside = open(Pane::new(place.command(argv[0]).args(&argv[1..]), &small));
    assert_eq!(outside, "0\r\nWRITTEN");
    let inside = open(Pane::new(&place.run::<&str, _>(&[], &argv), &small));
    assert_eq!(inside, format!("{}\r\n", by_mode(nix::libc::ENOENT, nix::libc::EACCES)));
    drop(first);
}

#[test]
fn nothing_can_be_typed_into_a_terminal() {
    let place = Place::new();
    let inject = "
import fcntl, os, sys
def attempt(number):
    try: fcntl.ioctl(0, number, b'x')
    except OSError as e: return e.errno
    return 0
print('RESULT', [attempt(n) for n in (0x5412, 0x541c, 0x541d, 0x5423)])
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print('HIGH', libc.ioctl(0, ctypes.c_ulong(0x100005412), b'x'), ctypes.get_errno())";
    let mut inside = Pane::new(&place.run::<&str, _>(&[], &[PYTHON, "-c", inject]), &size(80, 24));
    inside.expect("RESULT [1, 1, 1, 1]\r\n");
    inside.expect("HIGH -1 1\r\n");
    let (_, rest) = inside.finish();
    assert_eq!(rest, "");
    let mut control = Pane::new(place.command(PYTHON).args(["-c", inject]), &size(80, 24));
    let text = {
        control.expect("RESULT [");
        control.expect("]\r\n")
    };
    if text.starts_with("5,") {
        return covered_by_root("this kernel lets only root type into a terminal (dev.tty.legacy_tiocsti=0)");
    }
    assert!(text.starts_with("0,"), "the control cannot type: {text}");
}

#[test]
fn modes_are_restored_after_every_end() {
    let place = Place::new();
    for end in [
        "exit 3",
        "kill -9 $$",
        "stty raw -echo; kill -9 $$",
        "stty sane -icanon; kill -SEGV $$",
        "exec no-such-command",
    ] {
        let mut command = place.command("sleep");
        command.arg("60");
        let before = Pane::new(&command, &size(80, 24)).modes();
        let mut inside = pane(&place, end);
        inside.finish();
        assert_eq!(inside.modes(), before, "{end}");
    }
}

#[test]
fn modes_are_restored_when_the_launcher_is_asked_to_end() {
    let place = Place::new();
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let word = marker();
        let mut inside = pane(&place, &format!("stty raw; echo READY; exec sleep {word}"));
        let before = inside.modes();
        inside.expect("READY");
        eventually("keys are passed on", || inside.modes() != before);
        kill(Pid::from_raw(i32::try_from(inside.child.id()).unwrap()), signal).unwrap();
        let (status, _) = inside.finish();
        assert_eq!(status.code(), Some(128 + signal as i32));
        assert_eq!(inside.modes(), before);
        assert_eq!(processes_with(&word), Vec::<i32>::new());
    }
}

#[test]
fn what_a_program_left_on_is_switched_off() {
    let place = Place::new();
    let mut inside = pane(
        &place,
        "printf '\\033[?1049h\\033[?1003h\\033[?2004h\\033[>1u\\033[?25lX'; kill -9 $$",
    );
    inside.expect("X");
    let (_, rest) = inside.finish();
    for code in ["\x1b[?1049l", "\x1b[?1003l", "\x1b[?2004l", "\x1b[<1u", "\x1b[?25h"] {
        assert!(rest.contains(code), "{code:?} in {rest:?}");
    }
}

#[test]
fn a_change_of_size_reaches_the_command() {
    let place = Place::new();
    let mut inside = pane(
        &place,
        "trap 'stty size' WINCH; echo READY; while :; do sleep 0.05; done",
    );
    inside.expect("READY");
    inside.resize(&size(123, 45));
    inside.expect("45 123");
}

#[test]
fn a_terminal_without_columns_is_taken_for_one_of_eighty() {
    let place = Place::new();
    let mut inside = Pane::new(&place.sh(&[], "stty size"), &size(0, 0));
    inside.expect("24 80");
    assert!(inside.finish().0.success());
}

#[test]
fn control_c_reaches_the_command_and_only_it_decides() {
    let place = Place::new();
    let mut inside = pane(
        &place,
        "trap 'echo CAUGHT' INT; echo READY; until test \"$line\" = word; do read line; done; echo \"GOT $line\"; exit 6",
    );
    inside.expect("READY");
    inside.write(b"\x03");
    inside.expect("CAUGHT");
    inside.write(b"a\nword\n");
    inside.expect("GOT word");
    assert_eq!(inside.finish().0.code(), Some(6));
    let mut default = pane(&place, "echo READY; exec sleep 60");
    default.expect("READY");
    default.write(b"\x03\x03");
    assert_eq!(default.finish().0.code(), Some(130));
}

#[test]
fn control_c_while_starting_ends_the_launch() {
    let place = Place::new();
    for moment in [0, 5, 15, 30] {
        let word = marker();
        let mut inside = pane(&place, &format!("exec sleep {word}"));
        std::thread::sleep(std::time::Duration::from_millis(moment));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(15);
        // A key that came before the pane's program was there is lost, as anywhere.
        while inside.child.try_wait().unwrap().is_none() {
            inside.write(b"\x03");
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(std::time::Instant::now() < end, "still running");
        }
        eventually("nothing is left", || processes_with(&word).is_empty());
    }
}

#[test]
fn control_z_stops_the_launch_and_fg_goes_on() {
    let place = Place::new();
    let mut shell = shell(&place);
    let before = shell.modes();
    shell.write(b"\"$PF\" run -- sh -c 'echo READY; cat; echo END'\n");
    shell.expect("READY\r\n");
    let typed = |shell: &mut Pane| {
        shell.write(b"typed\n");
        shell.expect("typed\r\ntyped\r\n");
    };
    // Not before cat reads: a stop that meets a shell in the middle of vfork(2) is seen by nobody, its parent waits.
    typed(&mut shell);
    for _ in 0..2 {
        shell.write(b"\x1a");
        shell.expect("Stopped");
        shell.expect("PROMPT> ");
        shell.write(b"echo shell-$((1+1))\n");
        shell.expect("shell-2");
        shell.expect("PROMPT> ");
        shell.write(b"fg\n");
        shell.expect("sh -c");
        typed(&mut shell);
    }
    shell.write(b"\x04");
    shell.expect("END");
    shell.expect("PROMPT> ");
    assert_eq!(shell.modes(), before);
    shell.write(b"exit\n");
    shell.finish();
}

#[test]
fn jobs_of_a_shell_inside_work() {
    let place = Place::new();
    let mut inside = Pane::new(
        &place.run::<&str, _>(&["--env", "PS1=inner> "], &["bash", "--norc", "--noprofile", "-i"]),
        &size(100, 30),
    );
    inside.expect("inner> ");
    inside.write(b"sleep 60\n");
    inside.expect("sleep 60");
    std::thread::sleep(std::time::Duration::from_millis(200));
    inside.write(b"\x1a");
    inside.expect("Stopped");
    inside.expect("inner> ");
    inside.write(b"kill %1; echo done-$((1+1))\n");
    inside.expect("done-2");
    inside.write(b"exit 5\n");
    assert_eq!(inside.finish().0.code(), Some(5));
}

#[test]
fn a_background_launch_does_not_touch_the_pane() {
    let place = Place::new();
    let mut shell = shell(&place);
    shell.write(b"stty -a | tr '\\n' ' ' | md5sum; \"$PF\" run -- sh -c 'sleep 0.3; exit 0' & wait; stty -a | tr '\\n' ' ' | md5sum; echo OVER-$((1+1))\n");
    let text = shell.expect("OVER-2");
    let sums: Vec<&str> = text.lines().filter(|line| line.trim_end().ends_with("  -")).collect();
    assert_eq!(sums.len(), 2, "{text}");
    let sum = |line: &str| {
        line.split_whitespace()
            .rev()
            .nth(1)
            .map(|sum| sum[sum.len() - 32..].to_owned())
    };
    assert_eq!(sum(sums[0]), sum(sums[1]));
}

#[test]
fn a_pane_that_closes_ends_the_launch() {
    let place = Place::new();
    let word = marker();
    let mut inside = pane(
        &place,
        &format!("trap '' HUP TERM; echo READY; while :; do sleep {word}; done"),
    );
    inside.expect("READY");
    let status = close(inside);
    assert!(status.signal().is_none() || status.signal() == Some(1), "{status:?}");
    eventually("nothing is left", || processes_with(&word).is_empty());
}

/// Closes both ends of the pane and waits for its program.
fn close(pane: Pane) -> std::process::ExitStatus {
    let mut child = pane.hang_up();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(15);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(std::time::Instant::now() < end, "the launch outlives its pane");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn much_output_arrives_whole() {
    let place = Place::new();
    let mut inside = pane(&place, "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo LAST");
    let text = inside.expect("LAST");
    assert_eq!(text.matches('x').count(), 3_000_000);
}

#[test]
fn many_keys_arrive_whole() {
    let place = Place::new();
    let mut inside = pane(&place, "stty raw -echo; echo READY; head -c 200000 | md5sum; stty sane");
    inside.expect("READY");
    std::thread::sleep(std::time::Duration::from_millis(100));
    inside.write(&vec![b'k'; 200_000]);
    let sum = "k".repeat(200_000);
    let mut control = place.command("md5sum");
    let file = place.work.join("keys");
    std::fs::write(&file, sum).unwrap();
    let expected = crate::place::finish(control.stdin(std::fs::File::open(file).unwrap())).out();
    inside.expect(expected.trim_end());
}

#[test]
fn a_redirected_stream_stays_what_it_is() {
    let place = Place::new();
    let mut shell = shell(&place);
    shell.write(b"\"$PF\" run -- sh -c 'test -t 0 && ! test -t 1 && echo to-file; tty' > out; cat out; echo x | \"$PF\" run -- sh -c '! test -t 0 && test -t 1 && cat'; echo OVER-$((1+1))\n");
    let text = shell.expect("OVER-2");
    assert!(
        text.contains("to-file") && text.contains("/dev/pts/0") && text.contains("\nx\r\n"),
        "{text}"
    );
}

#[test]
fn without_a_terminal_there_is_none_inside() {
    let place = Place::new();
    let ended =
        crate::place::finish(&mut place.sh(&[], "tty; ls /dev/pts; (: < /dev/tty) 2>/dev/null || echo none")).expect(0);
    assert_eq!(ended.out(), by_mode("not a tty\nptmx\nnone\n", "not a tty\nnone\n"));
}
