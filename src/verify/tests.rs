//! Against real processes in real namespaces, made by util-linux.

use super::proc::status::Status;
use super::proc::{Entry, pids};
use super::tree::Found;
use super::{
    Birth, EnvSubject, Filters, Finding, IdMap, Identity, Namespaces, NetSubject, Report, Role, Subject, Walls, Which,
    held, running,
};
use crate::base::Pid;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// All the namespaces of a sandbox, and no other layer.
struct Pen {
    outer: Child,
    init: Pid,
}

const CONFINE: &str =
    "exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all setsid sh -c";

impl Pen {
    /// Runs a script as the first process; returns when it has printed a line.
    fn new(script: &str, stdin: Stdio) -> Pen {
        Pen::mapping("-r", script, stdin)
    }

    fn mapping(map: &str, script: &str, stdin: Stdio) -> Pen {
        let mut outer = Command::new("unshare")
            .args([
                "-U",
                map,
                "-m",
                "-p",
                "-n",
                "-i",
                "-u",
                "-C",
                "-f",
                "--mount-proc",
                "sh",
                "-c",
            ])
            .arg(script)
            .stdin(stdin)
            .stdout(Stdio::piped())
            // One version of unshare complains here about a signal mask, to no effect.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(outer.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n", "unshare works here");
        let parent = i32::try_from(outer.id()).unwrap();
        let status = |pid: Pid| {
            Entry::open(pid)
                .and_then(|e| e.read("status"))
                .and_then(|b| Status::parse(&b))
        };
        let init = pids()
            .unwrap()
            .into_iter()
            .find(|pid| status(*pid).is_ok_and(|s| s.parent == parent))
            .unwrap();
        Pen { outer, init }
    }

    fn subject(&self) -> Subject {
        let map = |outside| IdMap { inside: 0, outside };
        Subject {
            walls: Walls::Namespaces,
            init: Birth::of(self.init).unwrap(),
            command: Which::Inside(2),
            namespaces: Namespaces::of(self.init).unwrap(),
            uid: map(nix::unistd::getuid().as_raw()),
            gid: map(nix::unistd::getgid().as_raw()),
            filters: Filters { init: 1, command: 1 },
            terminal: None,
            standard: ambient(),
            gate: Default::default(),
            mounts: Vec::new(),
            limits: Default::default(),
            memory_each: None,
            group: None,
            network: NetSubject::default(),
            environment: EnvSubject::default(),
            landlock: Vec::new(),
        }
    }

    fn end(&mut self) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.init.get()), nix::sys::signal::SIGKILL);
        let _ = self.outer.wait();
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        self.end();
    }
}

fn of<'a>(report: &'a Report, check: &str) -> Vec<&'a Finding> {
    report.findings.iter().filter(|f| f.check == check).collect()
}

fn found(report: &Report, command: &str) -> usize {
    report.processes.iter().filter(|p| p.command.ends_with(command)).count()
}

#[test]
fn finds_a_process_that_forked_twice_and_made_its_own_session() {
    let pen = Pen::new(
        "(setsid sh -c 'sleep 61.5 & exec true' &); sleep 0.1; echo ready; sleep 60",
        Stdio::null(),
    );
    let mut outside = Command::new("sleep").arg("61.75").spawn().unwrap();
    let report = running(&pen.subject());
    outside.kill().unwrap();
    outside.wait().unwrap();
    assert_eq!(found(&report, "sleep 61.5"), 1);
    let hidden = report.processes.iter().find(|p| p.command == "sleep 61.5").unwrap();
    assert_eq!((hidden.parent, hidden.role), (pen.init.get(), Role::Tool));
    assert_eq!(found(&report, "sleep 61.75"), 0, "one outside is not of the tree");
    assert!(
        report
            .processes
            .iter()
            .any(|p| p.pid == pen.init && p.role == Role::Init)
    );
    assert!(
        report
            .processes
            .iter()
            .all(|p| Namespaces::of(p.pid).unwrap().pid == pen.subject().namespaces.pid)
    );
    assert!(!report.ended);
}

#[test]
fn finds_processes_with_odd_names() {
    let folder = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"a) S 1\n\xffZ");
    std::fs::copy("/bin/sleep", folder.path().join(name)).unwrap();
    std::os::unix::fs::symlink(name, folder.path().join("odd")).unwrap();
    let path = folder.path().join("*Z").display().to_string();
    let pen = Pen::new(
        &format!("for odd in {path}; do \"$odd\" 62.5 & done; sleep 0.1; echo ready; sleep 60"),
        Stdio::null(),
    );
    let report = running(&pen.subject());
    assert_eq!(found(&report, " 62.5"), 1);
    assert_eq!(of(&report, "namespaces"), Vec::<&Finding>::new());
    assert!(report.lines().iter().all(|line| !line.contains('\n')));
}

#[test]
fn finds_a_descendant_in_a_nested_pid_namespace() {
    let pen = Pen::new(
        "unshare -p -f sleep 63.5 & sleep 0.1; echo ready; sleep 60",
        Stdio::null(),
    );
    let report = running(&pen.subject());
    let strays: Vec<_> = of(&report, "namespaces");
    assert!(
        strays
            .iter()
            .any(|f| f.problem.contains("outside the sandbox's PID namespace")),
        "{strays:?}"
    );
}

#[test]
fn namespaces_alone_do_not_pass() {
    let pen = Pen::new("sleep 60 & echo ready; wait", Stdio::null());
    let report = held(&pen.subject()).unwrap_err();
    for check in ["mounts", "capabilities", "privileges", "seccomp", "landlock"] {
        assert!(!of(&report, check).is_empty(), "{check}");
    }
    assert!(report.processes.iter().all(|p| !p.confined));
    assert_eq!(of(&report, "namespaces"), Vec::<&Finding>::new());
}

#[test]
fn sees_what_setpriv_takes_away() {
    let pen = Pen::new(&format!("{CONFINE} 'sleep 60 & echo ready; wait'"), Stdio::null());
    let subject = pen.subject();
    let report = running(&subject);
    for check in [
        "namespaces",
        "capabilities",
        "privileges",
        "descriptors",
        "network",
        "limits",
        "environment",
    ] {
        assert_eq!(of(&report, check), Vec::<&Finding>::new(), "{check}");
    }
    assert_eq!(of(&report, "seccomp").len(), report.processes.len());
}

/// What whoever started the tests let them inherit, and so everybody that they start, with `/dev/null`.
fn ambient() -> BTreeSet<Identity> {
    let identity = |path: PathBuf| {
        std::fs::metadata(path).map(|m| Identity {
            dev: m.dev(),
            ino: m.ino(),
        })
    };
    let mut found = BTreeSet::from([identity("/dev/null".into()).unwrap()]);
    for number in Entry::own().unwrap().numbers("fd").unwrap() {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|text| i32::from_str_radix(text.trim(), 8).ok());
        if flags.is_some_and(|flags| flags & nix::fcntl::OFlag::O_CLOEXEC.bits() == 0) {
            found.extend(identity(format!("/proc/self/fd/{number}").into()));
        }
    }
    found
}

#[test]
fn finds_a_descriptor_from_outside_unless_it_was_given() {
    let file = tempfile::tempfile().unwrap();
    let seen = file.metadata().unwrap();
    let given = Identity {
        dev: seen.dev(),
        ino: seen.ino(),
    };
    let pen = Pen::new(
        "exec 7<&0; echo ready; sleep 60",
        Stdio::from(file.try_clone().unwrap()),
    );
    let mut subject = pen.subject();
    let problems = |subject: &Subject| -> Vec<String> {
        let report = running(subject);
        let of_init = of(&report, "descriptors")
            .into_iter()
            .filter(|f| f.pid == Some(pen.init));
        of_init.map(|f| f.problem.clone()).collect()
    };
    let expected = |n: i32| format!("descriptor {n} is a file or device from outside");
    let found = problems(&subject);
    assert!(
        found.contains(&expected(0)) && found.contains(&expected(7)),
        "{found:?}"
    );
    subject.standard.extend([given]);
    assert_eq!(problems(&subject), Vec::<String>::new());
}

#[test]
fn finds_a_socket_of_the_hosts_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let pen = Pen::new("echo ready; sleep 60", Stdio::from(OwnedFd::from(listener)));
    let report = running(&pen.subject());
    assert!(
        of(&report, "descriptors")
            .iter()
            .any(|f| f.problem == "descriptor 0 is a socket from outside")
    );
}

#[test]
fn a_number_that_was_given_to_a_later_process_is_not_the_launch() {
    let pen = Pen::new("echo ready; sleep 60", Stdio::null());
    let mut subject = pen.subject();
    subject.init.start_ticks += 1;
    let report = running(&subject);
    assert!(report.ended && !report.ok());
}

#[test]
fn namespaces_that_are_not_the_recorded_ones_are_a_finding() {
    let pen = Pen::new("echo ready; sleep 60", Stdio::null());
    let mut subject = pen.subject();
    subject.namespaces.net = Namespaces::own().unwrap().net;
    let report = running(&subject);
    let problems: Vec<_> = of(&report, "namespaces")
        .into_iter()
        .map(|f| f.problem.as_str())
        .collect();
    assert!(problems.contains(&"the net namespace is the host's"));
    assert!(problems.contains(&"it is not in the sandbox's namespaces: net"));
}

#[test]
fn an_end_is_told_from_a_breach() {
    let mut pen = Pen::new("echo ready; sleep 60", Stdio::null());
    let subject = pen.subject();
    assert!(!running(&subject).ended);
    pen.end();
    let report = running(&subject);
    assert!(report.ended && report.processes.is_empty() && !report.ok());
    assert!(report.lines()[0].starts_with("ended"));
}

#[test]
fn processes_that_end_while_they_are_looked_at_are_no_finding() {
    let script = "echo ready; while :; do /bin/true & /bin/true; done";
    let pen = Pen::new(&format!("{CONFINE} '{script}'"), Stdio::null());
    let subject = pen.subject();
    for _ in 0..100 {
        let report = running(&subject);
        for check in ["namespaces", "privileges", "descriptors"] {
            assert_eq!(of(&report, check), Vec::<&Finding>::new());
        }
    }
}

#[test]
fn a_report_reads_as_json() {
    let pen = Pen::new("echo ready; sleep 60", Stdio::null());
    let json = serde_json::to_value(running(&pen.subject())).unwrap();
    assert_eq!(json["processes"][0]["pid"], pen.init.get());
    assert!(json["findings"][0]["check"].is_string() && json["took_ms"].is_number());
    assert_eq!(json["checks"].as_array().unwrap().len(), super::CHECKS.len());
}

#[test]
fn every_thread_is_looked_at() {
    use std::sync::mpsc::channel;
    let (ended, wait) = channel::<()>();
    let thread = std::thread::spawn(move || wait.recv());
    let entry = Entry::own().unwrap();
    let found = Found {
        pid: Pid::new(std::process::id().try_into().unwrap()).unwrap(),
        role: Role::Command,
        pid_namespace: Namespaces::own().unwrap().pid,
        status: Status::parse(&entry.read("status").unwrap()).unwrap(),
        entry,
    };
    let mut facts = super::facts::Facts::new().unwrap();
    facts.add(&found);
    assert!(facts.members[0].threads.len() > 1);
    let with_table = facts.members[0]
        .threads
        .iter()
        .filter(|t| !t.descriptors.is_empty())
        .count();
    assert_eq!(with_table, 1, "threads share one table");
    drop(ended);
    assert!(thread.join().unwrap().is_err());
}

#[test]
fn a_crowd_takes_no_crowd_of_descriptors() {
    let pen = Pen::new(
        "i=0; while [ $i -lt 150 ]; do sleep 64.5 & i=$((i+1)); done; echo ready; wait",
        Stdio::null(),
    );
    let subject = pen.subject();
    // The last ones may still be between fork and exec.
    let full = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        found(&running(&subject), "sleep 64.5") == 150
    });
    assert!(full, "the crowd never gathered");
    let before = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    let most = 140;
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, most, before.1).unwrap();
    let report = running(&subject);
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, before.0, before.1).unwrap();
    assert_eq!(found(&report, "sleep 64.5"), 150);
}

#[test]
fn an_undumpable_program_is_read_through_copies_of_its_descriptors() {
    // A program that its user may run but not read is not dumpable, and in a namespace that maps no root its
    // descriptors are the host root's to read. So root cannot see this.
    if nix::unistd::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("unreadable");
    std::fs::copy("/bin/sleep", &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o111)).unwrap();
    let script = format!("{} 60 & sleep 0.1; echo ready; wait", program.display());
    let pen = Pen::mapping("-c", &script, Stdio::null());
    let report = running(&pen.subject());
    assert!(report.processes.iter().any(|p| p.role == Role::Command));
    assert!(
        !report.findings.iter().any(|f| f.problem.starts_with("cannot read fd")),
        "{:?}",
        report.findings
    );
}
