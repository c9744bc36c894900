use super::{CHECKS, Moment};
use crate::base::{AbsPath, Pid, Port};
use crate::sys::object::Object;
use crate::verify::facts::{Facts, Member, OfCommand, Shared, Thread};
use crate::verify::proc::descriptors::{Descriptor, KernelDevs, Kind};
use crate::verify::proc::mountinfo::{self, Mount};
use crate::verify::proc::namespaces::Namespaces;
use crate::verify::proc::net::{Socket, Tables};
use crate::verify::proc::status::Status;
use crate::verify::subject::{
    Attempted, Birth, EnvSubject, Filters, IdMap, Identity, Listen, MountKind, MountRule, NetSubject, Stage, Subject,
    Walls, Which, Writing,
};
use crate::verify::{Finding, Role};
use procfs::FromRead as _;

mod layers;
mod network;
mod process;

const SERVED: u16 = 4096;
const BROKER: u16 = 3128;
const OUTSIDE: u64 = 999;
const FOREIGN: u64 = 998;
const PTS: u64 = 77;

fn pid(raw: i32) -> Pid {
    Pid::new(raw).unwrap()
}

fn namespaces(base: u64) -> Namespaces {
    Namespaces {
        user: base,
        mnt: base + 1,
        pid: base + 2,
        net: base + 3,
        ipc: base + 4,
        uts: base + 5,
        cgroup: base + 6,
    }
}

fn rule(target: &str, kind: MountKind, writing: Writing) -> MountRule {
    MountRule {
        target: AbsPath::new(target).unwrap(),
        kind,
        writing,
    }
}

fn subject() -> Subject {
    use MountKind::{Bind, Device, Memory, Proc, Terminals};
    use Writing::{Allowed, ReadOnly};
    Subject {
        walls: Walls::Namespaces,
        init: Birth {
            pid: pid(100),
            start_ticks: 5,
        },
        command: Which::Host(pid(101)),
        namespaces: namespaces(1000),
        uid: IdMap {
            inside: 1000,
            outside: 1000,
        },
        gid: IdMap {
            inside: 1000,
            outside: 1000,
        },
        filters: Filters { init: 1, command: 2 },
        terminal: Some(PTS),
        standard: [Identity { dev: 1, ino: 50 }].into(),
        gate: [Identity { dev: 1, ino: 51 }].into(),
        mounts: vec![
            rule("/", Memory, ReadOnly),
            rule("/usr", Bind, ReadOnly),
            rule("/srv", Bind, Allowed),
            rule("/srv/.git/hooks", Bind, ReadOnly),
            rule("/dev/null", Device, Allowed),
            rule("/dev/pts", Terminals, Allowed),
            rule("/proc", Proc, Allowed),
        ],
        limits: crate::policy::Limits {
            processes: Some(512),
            open_files: Some(4096),
            ..crate::policy::Limits::default()
        },
        memory_each: None,
        group: None,
        network: NetSubject {
            listens: Some(Listen {
                port: Port::new(SERVED).unwrap(),
                stage: Stage::Ready,
            }),
            connects_only: None,
            handed_out: [Port::new(BROKER).unwrap()].into(),
        },
        environment: EnvSubject {
            allowed: ["PATH".into(), "HOME".into()].into(),
            launcher: vec![
                ("PATH".into(), "/bin".into()),
                ("TOKEN".into(), "secret".into()),
                ("SHLVL".into(), "1".into()),
            ],
            tokens: vec!["hunter2".into()],
        },
        landlock: vec![Attempted {
            name: "read".into(),
            control: 0,
            errno: 13,
        }],
    }
}

fn mounts() -> Vec<Mount> {
    mountinfo::parse(
        b"10 9 0:30 / / ro,nosuid,nodev - tmpfs none rw\n\
          11 10 8:1 /usr /usr ro,nosuid,nodev - ext4 /dev/sda1 rw\n\
          12 10 8:1 /w /srv rw,nosuid,nodev - ext4 /dev/sda1 rw\n\
          13 12 8:1 /w/h /srv/.git/hooks ro,nosuid,nodev - ext4 /dev/sda1 rw\n\
          14 10 0:6 /null /dev/null rw,nosuid - devtmpfs none rw\n\
          15 10 0:31 / /dev/pts rw,nosuid - devpts none rw\n\
          16 10 0:32 / /proc rw,nosuid,nodev - proc none rw\n",
    )
    .unwrap()
}

fn thread(id: i32, filters: u32) -> Thread {
    Thread {
        id,
        status: Status {
            state: b'S',
            parent: 100,
            inner_pids: vec![id, id - 99],
            inner_session: 2,
            threads: 1,
            has_memory: true,
            uids: [1000; 4],
            gids: [1000; 4],
            no_new_privs: 1,
            seccomp_mode: 2,
            seccomp_filters: filters,
            table: 64,
            capabilities: [0; 5],
        },
        namespaces: namespaces(1000),
        descriptors: Vec::new(),
        standing_on: [10, 12],
    }
}

fn descriptor(number: i32, kind: Kind, dev: u64, ino: u64, mount: u64) -> Descriptor {
    Descriptor {
        number,
        kind,
        object: Object {
            dev,
            ino,
            mode: 0,
            rdev: 0,
            mount,
        },
    }
}

fn member(raw: i32, role: Role, filters: u32) -> Member {
    Member {
        pid: pid(raw),
        parent: 100,
        role,
        arguments: b"sh\0-c\0x\0".to_vec(),
        threads: vec![thread(raw, filters)],
    }
}

fn socket(local: &str, remote: &str, inode: u64) -> Socket {
    Socket {
        local: local.parse().unwrap(),
        remote: remote.parse().unwrap(),
        inode,
    }
}

fn limits(processes: &str) -> procfs::process::Limits {
    let text = std::fs::read_to_string("/proc/self/limits").unwrap();
    let lines = text.lines().map(|line| match line.get(..26).unwrap_or(line).trim() {
        "Max processes" => format!("{:<26}{processes:<21}{processes:<21}processes\n", "Max processes"),
        "Max open files" => format!("{:<26}{:<21}{:<21}files\n", "Max open files", 1024, 4096),
        _ => format!("{line}\n"),
    });
    procfs::process::Limits::from_read(lines.collect::<String>().as_bytes()).unwrap()
}

/// A sandbox as it should be, in mid-run.
fn facts() -> Facts {
    let mut command = member(101, Role::Command, 2);
    command.threads[0].descriptors = vec![
        descriptor(0, Kind::Pipe, 1, 50, 0),
        descriptor(3, Kind::Socket, 8, 500, 0),
        descriptor(4, Kind::File, 30, 7, 12),
        descriptor(5, Kind::Anonymous, 14, 7, 0),
    ];
    Facts {
        own: namespaces(1),
        devs: KernelDevs {
            memory: &[66],
            pipes: 67,
        },
        members: vec![member(100, Role::Init, 1), command, member(102, Role::Tool, 3)],
        unread: Vec::new(),
        shared: Some(Shared {
            mounts: mounts(),
            proc_shows: Ok(1002),
            uid_map: b"      1000       1000          1\n".to_vec(),
            gid_map: b"      1000       1000          1\n".to_vec(),
            network: Tables {
                interfaces: vec![b"lo".to_vec()],
                listeners: vec![
                    socket("127.0.0.1:4096", "0.0.0.0:0", 500),
                    socket("127.0.0.1:3128", "0.0.0.0:0", OUTSIDE),
                    socket("127.0.0.1:8000", "0.0.0.0:0", 501),
                ],
                connections: vec![socket("127.0.0.1:50000", "127.0.0.1:3128", 502)],
                ..Tables::default()
            },
        }),
        command: Some(OfCommand {
            pid: pid(101),
            limits: limits("512"),
            group: Vec::new(),
            group_files: Vec::new(),
            environment: b"PATH=/bin\0HOME=/h\0SHLVL=2\0OWN=1\0garbage\0\xff=\xfe\0".to_vec(),
        }),
        host: Some(Tables {
            inodes: [OUTSIDE, FOREIGN].into(),
            ..Tables::default()
        }),
        findings: Vec::new(),
    }
}

fn run(facts: &Facts, subject: &Subject, moment: Moment) -> Vec<Finding> {
    CHECKS
        .iter()
        .flat_map(|(_, check)| check(facts, subject, moment))
        .collect()
}

/// Spoils a good sandbox and asserts that exactly the one check finds it.
fn spoiled(check: &str, spoil: impl Fn(&mut Facts, &mut Subject)) {
    spoiled_at(Moment::Running, check, spoil);
}

fn spoiled_at(moment: Moment, check: &str, spoil: impl Fn(&mut Facts, &mut Subject)) {
    let (mut facts, mut subject) = (facts(), subject());
    if moment == Moment::Held {
        held(&mut facts);
        subject.network.listens = None;
    }
    assert_eq!(run(&facts, &subject, moment), [], "the control");
    spoil(&mut facts, &mut subject);
    let found = run(&facts, &subject, moment);
    assert!(!found.is_empty(), "{check} misses it");
    assert!(found.iter().all(|f| f.check == check), "{found:?}");
}

fn held(facts: &mut Facts) {
    facts.members.retain(|m| m.role != Role::Tool);
    facts.members[1].threads[0].descriptors =
        vec![descriptor(0, Kind::Pipe, 1, 50, 0), descriptor(7, Kind::Pipe, 1, 51, 0)];
}

fn tool(facts: &mut Facts) -> &mut Thread {
    &mut facts.members[2].threads[0]
}

fn shared(facts: &mut Facts) -> &mut Shared {
    facts.shared.as_mut().unwrap()
}

fn command_holds(facts: &mut Facts, descriptor: Descriptor) {
    facts.members[1].threads[0].descriptors.push(descriptor);
}

#[test]
fn every_check_names_itself() {
    let (mut facts, mut subject) = (facts(), subject());
    tool(&mut facts).status.no_new_privs = 0;
    tool(&mut facts).status.seccomp_mode = 0;
    tool(&mut facts).status.capabilities[3] = 1;
    tool(&mut facts).namespaces.net = 1;
    tool(&mut facts).status.inner_session = 0;
    shared(&mut facts).mounts.pop();
    shared(&mut facts).network.interfaces.push(b"eth0".to_vec());
    subject.limits.processes = Some(1);
    subject.landlock.clear();
    facts.command.as_mut().unwrap().environment.extend(b"TOKEN=secret\0");
    for (name, check) in CHECKS {
        let found = check(&facts, &subject, Moment::Running);
        assert!(
            !found.is_empty() && found.iter().all(|f| f.check == name),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn finds_a_thread_in_another_namespace() {
    spoiled("namespaces", |f, _| tool(f).namespaces.mnt = 2);
    spoiled("namespaces", |f, _| {
        let mut second = thread(105, 3);
        second.namespaces.net = 4;
        f.members[2].threads.push(second);
    });
}

#[test]
fn finds_a_namespace_that_is_the_hosts() {
    spoiled("namespaces", |f, _| f.own.cgroup = 1006);
}

#[test]
fn finds_a_map_of_more_than_one_id() {
    for map in [
        &b"0 1000 1\n"[..],
        b"1000 1000 2\n",
        b"1000 1000 1\n1 2 1\n",
        b"",
        b"1000 1000 x",
    ] {
        spoiled("namespaces", |f, _| shared(f).uid_map = map.to_vec());
        spoiled("namespaces", |f, _| shared(f).gid_map = map.to_vec());
    }
}

#[test]
fn finds_company_and_absence_while_held() {
    spoiled_at(Moment::Held, "namespaces", |f, _| {
        f.members.push(member(103, Role::Tool, 2))
    });
    spoiled_at(Moment::Held, "namespaces", |f, _| f.members.truncate(1));
}

#[test]
fn nothing_read_is_no_pass() {
    let mut facts = facts();
    facts.shared = None;
    let found = run(&facts, &subject(), Moment::Running);
    for check in ["namespaces", "mounts", "network"] {
        assert!(found.iter().any(|f| f.check == check), "{check}");
    }
}

#[test]
fn finds_wrong_mounts() {
    let line = |text: &'static str| {
        move |f: &mut Facts, _: &mut Subject| {
            shared(f).mounts.extend(mountinfo::parse(text.as_bytes()).unwrap());
        }
    };
    spoiled("mounts", line("20 10 8:1 / /home ro,nosuid,nodev - ext4 x rw\n"));
    spoiled("mounts", line("20 10 8:1 / /usr ro,nosuid,nodev - ext4 x rw\n"));
    spoiled("mounts", line("20 12 8:1 / /srv/sub rw,nosuid,nodev - ext4 x rw\n"));
    for index in 0..7 {
        spoiled("mounts", |f, _| {
            shared(f).mounts[index].options.retain(|o| o != b"nosuid")
        });
        spoiled("mounts", |f, s| {
            shared(f).mounts.remove(index);
            // Nobody stands on what is gone.
            f.members
                .iter_mut()
                .for_each(|m| m.threads[0].standing_on = [f_any(index); 2]);
            f.members[1].threads[0].descriptors.clear();
            s.network.listens = None;
        });
    }
    for index in [0, 1, 2, 3, 6] {
        spoiled("mounts", |f, _| {
            shared(f).mounts[index].options.retain(|o| o != b"nodev")
        });
    }
    for index in [0, 1, 3] {
        spoiled("mounts", |f, _| shared(f).mounts[index].options[0] = b"rw".to_vec());
    }
    spoiled("mounts", |f, _| shared(f).mounts[0].kind = b"ext4".to_vec());
    spoiled("mounts", |f, _| shared(f).proc_shows = Ok(3));
    spoiled("mounts", |f, _| {
        shared(f).proc_shows = Err(crate::verify::ReadError::Ended)
    });
    spoiled("mounts", |_, s| s.mounts.retain(|r| r.target != AbsPath::root()));
    spoiled("mounts", |f, _| tool(f).standing_on[1] = 4);
}

/// A mount that is still there when the one at `index` is not.
fn f_any(index: usize) -> u64 {
    if index == 0 { 11 } else { 10 }
}
