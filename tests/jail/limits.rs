//! P5, P10: limits on memory, processes, CPU, files and the private /tmp hold, and what keeps each of them is said.
//! Which mechanism a machine gives is found out by Pinfold; each test takes what it says at its word and tries it.

use crate::harness::{PYTHON, is_root};
use crate::mode::only_in_full;
use crate::place::{Place, eventually, finish, program};
use serde_json::Value;
use std::collections::BTreeSet;

/// What the launch says of a limit: who keeps it, and what it does not bound; nothing where the launch is refused.
fn kept_by(place: &Place, option: [&str; 2]) -> Option<Value> {
    let mut command = place.command("bash");
    let script = "exec \"$0\" run --status-fd 5 \"$@\" -- true 5>events";
    let ended = finish(command.args(["-c", script]).arg(program()).args(option));
    let text = std::fs::read_to_string(place.work.join("events")).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    if ended.code() != 0 {
        assert_eq!(ended.code(), 125, "{}", ended.err());
        assert!(ended.err().contains("cannot be kept here: "), "{}", ended.err());
        assert!(ended.err().contains("leave the limit out"), "{}", ended.err());
        return None;
    }
    let held = events.iter().find(|event| event["event"] == "held").unwrap();
    Some(held["given"]["limits"][0].clone())
}

/// Fills so many MiB of memory of its own, and says so.
const FILL: &str = "import sys; b = bytearray(int(sys.argv[1]) << 20); print('filled', len(b) >> 20)";

#[test]
fn memory_is_limited_and_it_is_said_by_what() {
    let place = Place::new();
    let bound = kept_by(&place, ["--memory", "256M"]).expect("memory can be limited everywhere");
    assert_eq!(
        (&bound["limit"], &bound["most"]),
        (&"memory".into(), &(256 << 20).into())
    );
    match bound["by"].as_str().unwrap() {
        "cgroup memory.max" => assert_eq!(bound["but"], Value::Null),
        "RLIMIT_DATA" => assert!(bound["but"].as_str().unwrap().starts_with("each process by itself")),
        other => panic!("{other}"),
    }
    let fill = |options: &[&str], size: &str| finish(&mut place.run(options, &[PYTHON, "-I", "-S", "-c", FILL, size]));
    assert_eq!(fill(&[], "400").expect(0).out(), "filled 400\n");
    assert_eq!(fill(&["--memory", "256M"], "100").expect(0).out(), "filled 100\n");
    let over = fill(&["--memory", "256M"], "400");
    assert_ne!(over.code(), 0, "{}", over.out());
    assert_eq!(over.out(), "");
}

#[test]
fn a_program_that_reserves_far_more_than_it_uses_runs_under_a_limit_on_memory() {
    let place = Place::new();
    // As Node, Java and Go do: 8 GiB of addresses, of which little is used.
    let reserve = "
import mmap
m = mmap.mmap(-1, 8 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, 0)
print('reserved')";
    let ended = finish(&mut place.run(&["--memory", "256M"], &[PYTHON, "-I", "-S", "-c", reserve]));
    assert_eq!(ended.expect(0).out(), "reserved\n");
}

const FORKS: &str = "
import os, time
made = []
try:
    for _ in range(60):
        pid = os.fork()
        if pid == 0: time.sleep(30); os._exit(0)
        made.append(pid)
except OSError as e: print('stopped', e.errno)
print(len(made))
for pid in made: os.kill(pid, 9)";

#[test]
fn processes_are_limited_or_the_launch_is_refused() {
    let place = Place::new();
    let count = |options: &[&str]| {
        finish(&mut place.run(options, &[PYTHON, "-I", "-S", "-c", FORKS]))
            .expect(0)
            .out()
    };
    assert_eq!(count(&[]), "60\n", "the control");
    match kept_by(&place, ["--processes", "20"]) {
        // The kernel counts no process of root, so that without a group nothing would hold.
        None => assert!(is_root()),
        Some(bound) => {
            assert!(
                ["cgroup pids.max", "RLIMIT_NPROC"].contains(&bound["by"].as_str().unwrap()),
                "{bound}"
            );
            let counted = count(&["--processes", "20"]);
            assert!(counted.starts_with("stopped 11\n"), "{counted}");
            let made: u32 = counted.lines().last().unwrap().parse().unwrap();
            assert!((10..20).contains(&made), "{made}");
        }
    }
}

#[test]
fn processors_are_limited_or_the_launch_is_refused() {
    let place = Place::new();
    let burn = "import time; e = time.monotonic() + 1.5\nwhile time.monotonic() < e: pass\nprint(time.process_time())";
    let used = |options: &[&str]| -> f64 {
        let ended = finish(&mut place.run(options, &[PYTHON, "-I", "-S", "-c", burn])).expect(0);
        ended.out().trim().parse().unwrap()
    };
    if let Some(bound) = kept_by(&place, ["--cpu", "0.2"]) {
        assert_eq!((&bound["by"], &bound["most"]), (&"cgroup cpu.max".into(), &200.into()));
        assert!(used(&["--cpu", "0.2"]) < 0.6);
    }
}

#[test]
fn the_private_tmp_has_the_size_that_was_asked_for() {
    only_in_full!("there is no private /tmp: TMPDIR names a folder on disk, without a size");
    let place = Place::new();
    let fill = "head -c 20000000 /dev/zero > /tmp/big; stat -c %s /tmp/big; df -B1 --output=size /tmp | tail -n 1";
    let control = finish(&mut place.sh(&[], fill)).expect(0).out();
    assert_eq!(control.lines().next(), Some("20000000"));
    let small = finish(&mut place.sh(&["--tmp-size", "8M"], fill)).expect(0);
    let sizes: Vec<u64> = small
        .out()
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    assert_eq!(sizes, [8 << 20, 8 << 20], "{}", small.err());
    assert!(small.err().contains("No space left"), "{}", small.err());
}

#[test]
fn limits_of_a_profile_hold_and_the_command_line_wins() {
    let place = Place::new();
    let profile = place.path().join("bounded.json");
    let text =
        r#"{"extends": "default", "pinfold": {"limits": {"open_files": 50, "memory": "64M", "address_space": "4G"}}}"#;
    std::fs::write(&profile, text).unwrap();
    let profile = profile.to_str().unwrap();
    let open = "ulimit -Sn; ulimit -Hn; for i in $(seq 3 60); do eval \"exec $i</dev/null\" || exit 3; done";
    let ended = finish(&mut place.run(&["--profile", profile], &["bash", "-c", open]));
    assert!(ended.out().starts_with("50\n50\n"), "{}", ended.out());
    assert_ne!(ended.code(), 0);
    finish(&mut place.run::<&str, _>(&[], &["bash", "-c", open])).expect(0);
    let fill = |options: &[&str]| finish(&mut place.run(options, &[PYTHON, "-I", "-S", "-c", FILL, "150"])).code();
    assert_ne!(fill(&["--profile", profile]), 0);
    assert_eq!(fill(&["--profile", profile, "--memory", "1G"]), 0);
    for (option, word) in [
        ("--memory", "2X"),
        ("--memory", "0"),
        ("--cpu", "a"),
        ("--cpu", "0"),
        ("--processes", "1"),
        ("--tmp-size", ""),
    ] {
        let ended = finish(&mut place.run(&[option, word], &["true"])).expect(2);
        assert!(ended.err().contains(option), "{}", ended.err());
    }
}

/// Control groups of Pinfold's name on this machine, wherever version 2 is mounted.
fn groups() -> BTreeSet<String> {
    let places = pinfold::sandbox::group::places().into_iter();
    let entries = places.flat_map(|place| std::fs::read_dir(place).into_iter().flatten().flatten());
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("pinfold-")).collect()
}

#[test]
fn no_control_group_is_left_also_after_a_killed_launcher() {
    let place = Place::new();
    let run = || place.run(&["--memory", "512M"], &["sleep", "0.2"]);
    let of = |pid: u32| move |name: &String| name.starts_with(&format!("pinfold-{pid}-"));
    let mut launcher = run().spawn().unwrap();
    let pid = launcher.id();
    assert!(launcher.wait().unwrap().success());
    assert!(!groups().iter().any(of(pid)));
    let mut killed = place.run(&["--memory", "512M"], &["sleep", "30"]).spawn().unwrap();
    let pid = killed.id();
    std::thread::sleep(std::time::Duration::from_millis(300));
    killed.kill().unwrap();
    killed.wait().unwrap();
    // The next start, if not the kernel: whatever that launcher left is gone.
    eventually("nothing is left", || {
        finish(&mut run()).expect(0);
        !groups().iter().any(of(pid))
    });
}
