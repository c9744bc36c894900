//! Machines that refuse one thing or another: each ends in full mode, in reduced mode where that was accepted by name, or
//! in a refusal that says what failed and what to do.

use crate::harness::{PYTHON, is_root, skip};
use crate::place::{Place, finish, no_namespaces, program};
use nix::libc;
use std::path::Path;
use std::process::Command;

const EPERM: i32 = libc::EPERM;
const ENOSYS: i32 = libc::ENOSYS;

fn run(place: &Place, rules: &str, options: &[&str]) -> Command {
    let mut command = place.filtered(rules);
    command.arg("run").args(options).args(["--", "touch", "ran"]);
    command
}

/// Refused with these words, and with P5 given up by name it runs.
fn ends_in_reduced_mode(place: &Place, mut make: impl FnMut(&[&str]) -> Command, step: &str) {
    let ran = place.work.join("ran");
    let refused = finish(&mut make(&[])).expect(126);
    for words in [step, "P5 processes", "pinfold doctor", "--allow-missing P5"] {
        assert!(refused.err().contains(words), "{step}: {words}: {}", refused.err());
    }
    assert!(!ran.exists(), "{step}");
    let ended = finish(&mut make(&["--allow-missing", "P5"]));
    assert!(ended.code() == 0 && ran.exists(), "{step}: {}", ended.err());
    std::fs::remove_file(ran).unwrap();
}

#[test]
fn every_denied_step_of_the_namespaces_ends_in_reduced_mode_or_a_refusal() {
    let place = Place::new();
    let id = nix::unistd::geteuid();
    // What is written to uid_map and setgroups is known by its length only; nothing else here has that.
    let map = format!("{id} {id} 1").len();
    let cases = [
        (no_namespaces(), "making the namespaces"),
        (
            format!("{}:2~{map}:0!2={EPERM}", libc::SYS_write),
            "mapping the user id",
        ),
        (format!("{}:2~4:0!2={EPERM}", libc::SYS_write), "mapping the user id"),
        (format!("{}={EPERM}", libc::SYS_sethostname), "naming the sandbox"),
        (format!("{}={EPERM}", libc::SYS_fsopen), "mounting /proc"),
        (format!("{}={EPERM}", libc::SYS_open_tree), "showing"),
        (format!("{}={EPERM}", libc::SYS_move_mount), "failed (EPERM"),
        (format!("{}={EPERM}", libc::SYS_mount_setattr), "showing"),
        (format!("{}={EPERM}", libc::SYS_pivot_root), "entering the new root"),
        (
            format!("{}:1~{}={EPERM}", libc::SYS_ioctl, libc::SIOCSIFFLAGS),
            "bringing the loopback up",
        ),
    ];
    for (rules, step) in cases {
        ends_in_reduced_mode(&place, |options| run(&place, &rules, options), step);
    }
}

#[test]
fn what_neither_mode_can_do_without_refuses_the_launch() {
    let place = Place::new();
    // New listeners are asked for by the fourth bit of the flags (SECCOMP_FILTER_FLAG_NEW_LISTENER).
    let both = |call: i64, rule: &str, errno: i32| format!("{call}{rule}={errno}");
    let cases = [
        (libc::SYS_pidfd_getfd, "", EPERM, 126, "(pidfd_getfd) failed", "P4"),
        (libc::SYS_pidfd_getfd, "", ENOSYS, 126, "(pidfd_getfd) failed", "P4"),
        (
            libc::SYS_process_vm_readv,
            "",
            EPERM,
            126,
            "(process_vm_readv) failed",
            "P4",
        ),
        (
            libc::SYS_landlock_restrict_self,
            "",
            ENOSYS,
            125,
            "applying Landlock",
            "Landlock",
        ),
        (
            libc::SYS_landlock_restrict_self,
            "",
            EPERM,
            125,
            "applying Landlock",
            "Landlock",
        ),
        (
            libc::SYS_seccomp,
            ":1&8",
            libc::EBUSY,
            125,
            "the system call filters",
            "filters",
        ),
        (
            libc::SYS_seccomp,
            ":1&8",
            libc::EINVAL,
            125,
            "the system call filters",
            "filters",
        ),
    ];
    for (call, rule, errno, code, step, promise) in cases {
        let full = both(call, rule, errno);
        let reduced = format!("{full},{}", no_namespaces());
        for (rules, options) in [(&full, &[][..]), (&reduced, &["--allow-missing", "P5"])] {
            let ended = finish(&mut run(&place, rules, options)).expect(code);
            assert!(
                ended.err().contains(step) && ended.err().contains(promise),
                "{rules}: {}",
                ended.err()
            );
            assert!(!place.work.join("ran").exists(), "{rules}");
        }
    }
    // No Landlock at all, not built in or not switched on, is no smaller sandbox, whatever was given up.
    for errno in [ENOSYS, libc::EOPNOTSUPP] {
        let full = format!("{}={errno}", libc::SYS_landlock_create_ruleset);
        let ended = finish(&mut run(&place, &full, &[])).expect(125);
        assert!(ended.err().contains("runs without Landlock"), "{}", ended.err());
        let reduced = format!("{full},{}", no_namespaces());
        let ended = finish(&mut run(&place, &reduced, &["--allow-missing", "P5"])).expect(126);
        assert!(ended.err().contains("no Landlock either"), "{}", ended.err());
        let all = ["--allow-missing", "P5", "--allow-missing", "P1"];
        let ended = finish(&mut run(&place, &reduced, &all)).expect(125);
        assert!(ended.err().contains("runs without Landlock"), "{}", ended.err());
        assert!(!place.work.join("ran").exists());
    }
}

#[test]
fn without_openat2_both_modes_work_and_a_link_still_leads_nowhere() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.secrets.join("key"), place.work.join("link")).unwrap();
    let missing = [ENOSYS, EPERM].map(|errno| format!("{}={errno}", libc::SYS_openat2));
    for openat2 in missing {
        for (rules, options) in [
            (openat2.clone(), &[][..]),
            (format!("{openat2},{}", no_namespaces()), &["--allow-missing", "P5"]),
        ] {
            let mut command = place.filtered(&rules);
            let script = "import os, socket
l = socket.socket(socket.AF_UNIX); l.bind('own'); l.listen(); socket.socket(socket.AF_UNIX).connect('./own'); os.unlink('own')
open('link')";
            let ended = finish(
                command
                    .arg("run")
                    .args(options)
                    .args(["--", PYTHON, "-I", "-S", "-c", script]),
            );
            assert!(
                ended.code() == 1
                    && (ended.err().contains("FileNotFoundError") || ended.err().contains("PermissionError")),
                "{rules}: {} {}",
                ended.code(),
                ended.err()
            );
            assert!(ended.err().contains("'link'"), "{rules}: {}", ended.err());
        }
    }
}

/// A container that lets namespaces be made and no /proc be mounted, since part of its own is covered.
#[test]
fn in_a_container_without_a_new_proc_there_is_reduced_mode() {
    let place = Place::new();
    let contained = |argv: &[&str]| {
        let mut command = place.command("bwrap");
        command.args(["--unshare-all", "--dev-bind", "/", "/", "--proc", "/proc"]);
        command.args(["--dev-bind", "/dev/null", "/proc/cmdline", "--chdir"]);
        command.arg(&place.work).arg("--").args(argv);
        command
    };
    if !Path::new("/usr/bin/bwrap").exists() || finish(&mut contained(&["true"])).code() != 0 {
        return skip("bwrap is not installed, or makes no container here");
    }
    let program = program();
    let make = |options: &[&str]| {
        let mut command = contained(&[program.to_str().unwrap(), "run"]);
        command.args(options).args(["--", "touch", "ran"]);
        command
    };
    // As root bwrap leaves its capabilities out of the inner namespace, so that one step earlier may fail.
    let step = if is_root() { "failed (E" } else { "mounting /proc" };
    ends_in_reduced_mode(&place, make, step);
}
