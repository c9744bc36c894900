//! P8 and P10: what cannot be enforced is refused with the step and the fix, and nothing runs before it was verified.

use crate::harness::skip;
use crate::intruder::Intruder;
use crate::mode::only_in_full;
use crate::place::{Place, Started, eventually, marker};
use nix::libc;
use std::path::PathBuf;
use std::process::Command;

/// ENOSYS and EPERM: what an older kernel and a container's filter say.
const ERRORS: [&str; 2] = ["38", "1"];

/// A launch in a process in which system calls fail.
fn without(place: &Place, calls: &[i64], error: &str, script: &str) -> Command {
    let rules: Vec<String> = calls.iter().map(|call| format!("{call}={error}")).collect();
    let mut command = place.filtered(&rules.join(","));
    command.args(["run", "--", "sh", "-c", script]);
    command
}

#[test]
fn a_launch_without_any_one_layer_is_refused_and_nothing_runs() {
    let place = Place::new();
    let ran = || place.work.join("ran").exists();
    let layers: [(&str, i64, &str); 7] = [
        ("namespaces", libc::SYS_clone3, "making the namespaces"),
        ("mounts", libc::SYS_mount_setattr, "showing"),
        ("mounts", libc::SYS_open_tree, "showing"),
        ("mounts", libc::SYS_pivot_root, "entering the new root"),
        ("capabilities", libc::SYS_capset, "dropping capabilities"),
        ("landlock", libc::SYS_landlock_restrict_self, "applying Landlock"),
        ("seccomp", libc::SYS_seccomp, "installing the system call filters"),
    ];
    for (layer, call, step) in layers {
        for error in ERRORS {
            let ended = without(&place, &[call], error, "echo > ran").output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            // Without namespaces there is a smaller sandbox, which keeps less: refused, unless that was said to be enough.
            let refused = matches!(layer, "namespaces" | "mounts");
            let code = if refused { 126 } else { 125 };
            assert_eq!(ended.status.code(), Some(code), "{layer}: {said}");
            assert_eq!(said.contains("nothing enforces P5"), refused, "{layer}: {said}");
            assert!(said.contains(step), "{layer}: {said}");
            assert!(!ran(), "the command ran without {layer}");
        }
    }
    let control = without(&place, &[], "38", "echo > ran").output().unwrap();
    assert!(
        control.status.success() && ran(),
        "{}",
        String::from_utf8_lossy(&control.stderr)
    );
}

#[test]
fn a_launch_within_somebody_elses_filter_works() {
    let place = Place::new();
    let ended = without(
        &place,
        &[libc::SYS_swapon],
        "1",
        "sleep 1.5; grep Seccomp_filters /proc/self/status",
    )
    .output()
    .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// The sandbox's first process on the host.
pub fn first(run: &Started) -> i32 {
    let children = PathBuf::from(format!("/proc/{0}/task/{0}/children", run.pid()));
    let listed = std::fs::read_to_string(children).unwrap();
    listed.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn an_unconfined_process_in_the_sandbox_ends_the_launch() {
    let place = Place::new();
    let start = |script: &str| Started::new(&mut place.run::<&str, _>(&[], &["sh", "-c", script, &marker()]));
    let script = "echo > up; sleep 4; echo whole";
    let control = start(script);
    let up = || place.work.join("up").exists();
    eventually("the control runs", up);
    assert_eq!(control.finish().expect(0).out(), "whole\n");
    only_in_full!("without namespaces nobody can step into the sandbox");
    std::fs::remove_file(place.work.join("up")).unwrap();
    let run = start(script);
    eventually("the command runs", up);
    let first = first(&run).to_string();
    let intruder = match Intruder::enter(place.command("nsenter"), &first) {
        Ok(intruder) => intruder,
        Err(reason) => return skip(reason),
    };
    let ended = run.finish();
    drop(intruder);
    assert_eq!(ended.code(), 126, "{}", ended.err());
    assert!(ended.err().contains("verification failed"), "{}", ended.err());
}
