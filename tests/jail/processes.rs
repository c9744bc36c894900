//! P5 and P7: nothing outside is seen, signalled, traced or read, and the launcher's secrets are not readable inside.

use crate::harness::{Attempt, Verdict, covered_by_root, is_root};
use crate::mode::{by_mode, only_in_full};
use crate::place::{Place, Started, eventually, finish, marker, processes_with};
use std::process::Command;

const DENIED: &[&str] = &["ESRCH", "EPERM", "EACCES", "ENOENT"];
/// Starts a process of the attempt's own, which an ordinary user may read and trace even where Yama is strict.
const CHILD: &str = "child = subprocess.Popen(['sleep', '60'])\npid = child.pid\n";

fn sleeper() -> Started {
    Started::new(Command::new("sleep").arg(marker()))
}

/// The attempt's own child outside, the sandbox's first process inside.
fn against_the_first(place: &Place, body: &str) -> Verdict {
    let control = Attempt::python(&format!("{CHILD}try:\n  {body}\nfinally:\n  child.kill()"));
    place.compare(&control, &[], &Attempt::python(&format!("pid = 1\n{body}")), DENIED)
}

#[test]
fn limits_and_priorities_of_others_cannot_be_set() {
    let place = Place::new();
    for body in [
        "import resource as r; p = int(argv[1]); r.prlimit(p, r.RLIMIT_CORE, r.prlimit(p, r.RLIMIT_CORE))",
        "p = int(argv[1]); os.setpriority(os.PRIO_PROCESS, p, os.getpriority(os.PRIO_PROCESS, p))",
        "p = int(argv[1]); os.sched_setaffinity(p, os.sched_getaffinity(p))",
    ] {
        let victim = sleeper();
        let attempt = Attempt::python(body).with(victim.pid().to_string());
        place.denies(&[], &attempt, &["EPERM", "ESRCH"]);
    }
    // Pinfold's own process inside is the first; without files of its own it could end nothing any more.
    let body = "import resource as r; r.prlimit(int(argv[1]), r.RLIMIT_CORE, (0, 0))";
    let (own, first) = (Attempt::python(body).with("0"), Attempt::python(body).with("1"));
    place.allows(&[], &own);
    assert_eq!(
        place.compare(&own, &[], &first, &["EPERM"]),
        crate::harness::Verdict::Held
    );
}

#[test]
fn a_host_process_cannot_be_signalled_or_found() {
    let place = Place::new();
    let deny = |body: &str| {
        let victim = sleeper();
        let group = nix::unistd::getpgrp().to_string();
        let attempt = Attempt::python(body).with(victim.pid().to_string()).with(group);
        place.denies(&[], &attempt, DENIED);
    };
    for body in [
        "os.kill(int(argv[1]), 0)",
        "os.kill(int(argv[1]), signal.SIGCONT)",
        "os.killpg(int(argv[2]), 0)",
        "open('/proc/' + argv[1] + '/environ').read()",
        "signal.pidfd_send_signal(os.pidfd_open(int(argv[1])), 0)",
    ] {
        deny(body);
    }
    only_in_full!("the machine's other processes can be seen in /proc");
    for body in [
        "os.stat('/proc/' + argv[1])",
        "open('/proc/' + argv[1] + '/cmdline').read()",
        "open('/proc/' + argv[1] + '/status').read()",
        "os.listdir('/proc/' + argv[1] + '/task')",
        "os.getpgid(int(argv[1]))",
        "os.sched_getaffinity(int(argv[1]))",
        "os.getpriority(os.PRIO_PROCESS, int(argv[1]))",
        "os.close(os.pidfd_open(int(argv[1])))",
    ] {
        deny(body);
    }
}

#[test]
fn killing_everything_kills_only_what_is_inside() {
    let place = Place::new();
    let mut outside = sleeper();
    let script = "sleep 50 & kill -9 -1; wait $!; echo inside: $?";
    let ended = finish(&mut place.sh(&[], script)).expect(0);
    assert_eq!(ended.out(), "inside: 137\n");
    assert!(
        outside.child.try_wait().unwrap().is_none(),
        "a process of the host was killed"
    );
}

#[test]
fn no_process_shows_an_environment_from_outside() {
    let place = Place::new();
    let body = "
needle = (argv[1] + argv[2]).encode()
for pid in filter(str.isdigit, os.listdir('/proc')):
    for name in ['environ', 'cmdline', 'task/' + pid + '/environ']:
        try:
            if needle in open('/proc/' + pid + '/' + name, 'rb').read(): sys.exit(print('done'))
        except OSError: pass
deny('ENOENT')";
    let secret = marker();
    let (first, second) = secret.split_at(3);
    let _holder = Started::new(Command::new("sleep").arg("60").env("API_TOKEN", &secret));
    let attempt = Attempt::python(body).with(first).with(second);
    let argv = [
        "/usr/bin/python3",
        "-I",
        "-S",
        "-c",
        "import sys,os\nargv=sys.argv\ndef deny(name): sys.exit(77)\nexec(argv.pop(1))",
        body,
        first,
        second,
    ];
    let mut launched = place.run::<&str, _>(&[], &argv);
    assert_eq!(
        finish(launched.env("API_TOKEN", &secret)).code(),
        77,
        "the launcher's secret is readable inside"
    );
    place.denies(&[], &attempt, DENIED);
}

#[test]
fn the_first_process_cannot_be_read_traced_or_left_through() {
    let place = Place::new();
    for body in [
        "open('/proc/%d/environ' % pid, 'rb').read()",
        "open('/proc/%d/mem' % pid, 'rb')",
        "open('/proc/%d/maps' % pid, 'rb').read(1)",
        "open('/proc/%d/auxv' % pid, 'rb').read()",
        "os.listdir('/proc/%d/root' % pid)",
        "os.listdir('/proc/%d/cwd/' % pid)",
        "os.readlink('/proc/%d/exe' % pid)",
        "os.listdir('/proc/%d/map_files' % pid)",
        "open('/proc/%d/fd/0' % pid)",
        "os.readlink('/proc/%d/ns/mnt' % pid)",
        "open('/proc/%d/ns/net' % pid)",
        "os.kill(pid, signal.SIGSTOP)",
    ] {
        assert_eq!(against_the_first(&place, body), Verdict::Held, "{body}");
    }
}

#[test]
fn a_tool_cannot_trace_its_own_kind() {
    let place = Place::new();
    let numbers = [
        format!("call({}, 0x4206, pid, 0, 0)", nix::libc::SYS_ptrace),
        format!("call({}, 16, pid, 0, 0)", nix::libc::SYS_ptrace),
        format!(
            "b = ctypes.create_string_buffer(8); v = (ctypes.c_uint64 * 2)(ctypes.addressof(b), 8); r = (ctypes.c_uint64 * 2)(id(0), 8); call({}, pid, v, 1, r, 1, 0)",
            nix::libc::SYS_process_vm_readv
        ),
        format!("call({}, os.pidfd_open(pid), 0, 0)", nix::libc::SYS_pidfd_getfd),
        format!("call({}, pid, os.getpid(), 0, 0, 0)", nix::libc::SYS_kcmp),
    ];
    for body in numbers {
        // A fork has the same memory, so that the address means something in it.
        let body = format!(
            "pid = os.fork()\nif pid == 0: time.sleep(30); os._exit(0)\ntry:\n  {body}\nfinally:\n  os.kill(pid, 9)"
        );
        place.denies_if_here(&[], &Attempt::python(&body), &["EPERM"]);
    }
}

#[test]
fn programs_find_themselves_in_proc_at_any_depth() {
    let place = Place::new();
    let script = "sh -c 'sh -c \"cat /proc/self/comm; ls /dev/fd >/dev/null && cat /proc/thread-self/comm && readlink /proc/self/cwd\"'";
    let ended = finish(&mut place.sh(&[], script)).expect(0);
    assert_eq!(ended.out(), format!("cat\ncat\n{}\n", place.work.display()));
}

#[test]
fn the_sandbox_sees_only_its_own_processes() {
    only_in_full!("the machine's other processes can be seen in /proc");
    let place = Place::new();
    let _outside = sleeper();
    let ended = finish(&mut place.sh(&[], "ls /proc | grep -c '^[0-9]'")).expect(0);
    let count: u32 = ended.out().trim().parse().unwrap();
    assert!((2..=6).contains(&count), "{count} processes");
}

#[test]
fn shared_memory_and_queues_of_the_host_are_not_there() {
    let place = Place::new();
    let make = "
identity = libc.shmget(0x50494e46, 4096, 0o1666)
sys.exit(print('done') if identity >= 0 else 70)";
    let attempt = Attempt::python("libc.shmget(0x50494e46, 0, 0o600) >= 0 or deny('ENOENT')");
    finish(
        place
            .command("/usr/bin/python3")
            .args(["-c", &format!("import ctypes, sys\nlibc = ctypes.CDLL(None)\n{make}")]),
    )
    .expect(0);
    let verdict = place.compare(&attempt, &[], &attempt, &["ENOENT"]);
    let remove = "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.shmctl(libc.shmget(0x50494e46, 0, 0o600), 0, None)";
    finish(place.command("/usr/bin/python3").args(["-c", remove])).expect(0);
    assert_eq!(verdict, Verdict::Held);
}

#[test]
fn the_memory_of_a_host_process_is_not_there() {
    let place = Place::new();
    if !is_root() {
        return covered_by_root("Yama may keep an ordinary user from another process's memory outside too");
    }
    let victim = sleeper();
    // The numbers of its descriptors can be listed, and none can be followed or opened.
    for file in ["mem", "maps", "root", "cwd", by_mode("fd", "fd/0")] {
        let body = format!("os.stat('/proc/%s/{file}' % argv[1])\nos.open('/proc/%s/{file}' % argv[1], os.O_RDONLY)");
        place.denies(&[], &Attempt::python(&body).with(victim.pid().to_string()), DENIED);
    }
}

#[test]
fn markers_find_what_they_should() {
    let word = marker();
    let child = Started::new(Command::new("sleep").arg(&word));
    eventually("the sleeper is found", || {
        processes_with(&word) == [child.pid().as_raw()]
    });
    drop(child);
    assert_eq!(processes_with(&word), Vec::<i32>::new());
}

#[test]
fn a_tool_cannot_rewrite_its_own_kind_through_a_file() {
    let place = Place::new();
    let body = "
pid = os.fork()
if pid == 0: time.sleep(30); os._exit(0)
try:
    f = os.open('/proc/%d/mem' % pid, os.O_RDWR); os.pread(f, 8, id(0)); os.pwrite(f, os.pread(f, 8, id(0)), id(0))
finally: os.kill(pid, 9)";
    let attempt = Attempt::python(body);
    assert_eq!(place.compare(&attempt, &[], &attempt, &["EACCES"]), Verdict::Held);
}
