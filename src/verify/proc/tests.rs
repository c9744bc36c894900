use super::descriptors;
use super::mountinfo;
use super::namespaces;
use super::net;
use super::status::{Status, start_ticks};
use super::{Entry, ReadError};
use crate::base::Pid;
use std::os::unix::ffi::OsStrExt as _;

fn status(name: &[u8]) -> Vec<u8> {
    let mut text = b"Name:\t".to_vec();
    text.extend(name);
    text.extend(
        b"\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t9\nPPid:\t7\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nNSpid:\t9\t2\n\
          NSsid:\t9\t2\nVmSize:\t 9 kB\nThreads:\t3\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000001\nCapEff:\t0000000000000002\n\
          CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000004\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\nFDSize:\t64\n",
    );
    text
}

#[test]
fn reads_a_status_whatever_the_name_is() {
    for name in [
        &b"sh"[..],
        b"a) S 1",
        b"Seccomp:\t0",
        b"\xff\xfe",
        b"NoNewPrivs:\t0\\nPPid:\t1",
        b"",
        b"\x1b[2J",
    ] {
        let read = Status::parse(&status(name)).unwrap();
        assert_eq!((read.state, read.parent, read.threads), (b'S', 7, 3));
        assert_eq!((read.uids, read.gids), ([1, 2, 3, 4], [5, 6, 7, 8]));
        assert_eq!((read.inner_pids, read.inner_session), (vec![9, 2], 2));
        assert_eq!((read.no_new_privs, read.seccomp_mode, read.seccomp_filters), (1, 2, 3));
        assert_eq!(read.capabilities, [0, 1, 2, 0x1ff_ffff_ffff, 4]);
    }
}

#[test]
fn a_status_without_a_key_or_with_one_twice_is_malformed() {
    let good = String::from_utf8(status(b"sh")).unwrap();
    for key in [
        "Seccomp_filters:",
        "FDSize:",
        "NoNewPrivs:",
        "CapBnd:",
        "NSpid:",
        "NSsid:",
        "Uid:",
        "PPid:",
        "State:",
    ] {
        let without: String = good
            .lines()
            .filter(|l| !l.starts_with(key))
            .map(|l| format!("{l}\n"))
            .collect();
        assert_eq!(
            Status::parse(without.as_bytes()),
            Err(ReadError::Malformed("status")),
            "{key}"
        );
        let line = good.lines().find(|l| l.starts_with(key)).unwrap();
        assert_eq!(
            Status::parse(format!("{good}{line}\n").as_bytes()),
            Err(ReadError::Malformed("status")),
            "{key}"
        );
    }
    assert_eq!(Status::parse(b""), Err(ReadError::Malformed("status")));
    assert!(Status::parse(&good.replace("0001", "zzzz").into_bytes()).is_err());
}

#[test]
fn a_task_without_memory_is_as_good_as_dead() {
    let alive = String::from_utf8(status(b"sh")).unwrap();
    let is_dead = |text: &str| Status::parse(text.as_bytes()).unwrap().is_dead();
    assert!(!is_dead(&alive));
    assert!(is_dead(&alive.replace("State:\tS", "State:\tZ")));
    assert!(is_dead(&alive.replace("VmSize:\t 9 kB\n", "")));
    assert!(is_dead(
        &alive
            .replace("Name:\tsh", "Name:\tVmSize:")
            .replace("\nVmSize:\t 9 kB", "")
    ));
}

#[test]
fn reads_a_start_time_past_a_name_with_parentheses_and_newlines() {
    let fields: Vec<String> = (3..=52)
        .map(|n| if n == 3 { "S".into() } else { n.to_string() })
        .collect();
    for name in [&b"sh"[..], b"a) S 1 2 3", b"x\ny", b")", b"\xff)\xfe("] {
        let mut stat = b"12 (".to_vec();
        stat.extend(name);
        stat.extend(format!(") {}\n", fields.join(" ")).bytes());
        assert_eq!(start_ticks(&stat), Ok(22));
    }
    assert!(start_ticks(b"12 (sh S 1").is_err());
}

#[test]
fn reads_a_namespace_number() {
    assert_eq!(namespaces::parse(b"pid:[4026531836]"), Some(4_026_531_836));
    for odd in [&b""[..], b"pid:[]", b"pid:[-1]", b"pid:4026531836", b"[1]", b"pid:[1"] {
        assert_eq!(namespaces::parse(odd), None);
    }
}

#[test]
fn reads_mounts_with_odd_targets() {
    let text = b"36 35 98:0 /a /mnt\\040a\\012b\\134c\xff rw,nosuid,nodev shared:1 master:2 - ext4 /dev/x ro,errors=continue\n\
                 37 36 0:5 / /x rw - tmpfs none rw\n";
    let mounts = mountinfo::parse(text).unwrap();
    assert_eq!(mounts[0].target.as_os_str().as_bytes(), b"/mnt a\nb\\c\xff");
    assert_eq!((mounts[0].id, mounts[0].kind.as_slice()), (36, &b"ext4"[..]));
    assert_eq!(mounts[0].dev, nix::sys::stat::makedev(98, 0));
    assert!(mounts[0].has("nosuid") && !mounts[0].has("ro") && mounts[0].is_read_only());
    assert!(!mounts[1].is_read_only());
}

#[test]
fn a_mount_line_that_is_not_understood_is_an_error() {
    for odd in [
        &b"36 35 98:0 / /x rw\n"[..],
        b"36 35 98 / /x rw - tmpfs none rw\n",
        b"x\n",
    ] {
        assert_eq!(mountinfo::parse(odd), Err(ReadError::Malformed("mountinfo")));
    }
}

#[test]
fn reads_socket_inodes_past_a_path_that_forges_lines() {
    let text = b"Num RefCount Protocol Flags Type St Inode Path\n\
                 0000: 00000002 00000000 00010000 0001 01 100 /tmp/a\n\xff\xfe\n\
                 0000: 00000002 00000000 00010000 0001 01 101\n";
    assert_eq!(net::inodes(text, 6).into_iter().collect::<Vec<_>>(), [100, 101]);
}

#[test]
fn reads_interface_names() {
    let text = b"Inter-| Receive\n face |bytes\n    lo: 1 2 3\ne\xff0:0 1\n";
    assert_eq!(net::interfaces(text), [b"lo".to_vec(), b"e\xff0".to_vec()]);
}

#[test]
fn a_process_that_is_gone_reads_as_ended() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let entry = Entry::open(Pid::new(i32::try_from(child.id()).unwrap()).unwrap()).unwrap();
    child.wait().unwrap();
    assert!(entry.has_ended());
    assert_eq!(entry.read("status"), Err(ReadError::Ended));
    assert!(!Entry::own().unwrap().has_ended());
}

#[test]
fn finds_its_own_sockets_and_descriptors() {
    use super::descriptors::{self, KernelDevs, Kind};
    use std::os::fd::AsRawFd as _;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
    let (pipe, _other) = std::io::pipe().unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let me = Entry::own().unwrap();
    let seen = descriptors::read(&me, KernelDevs::learn().unwrap()).unwrap();
    let find = |fd: i32| seen.iter().find(|d| d.number == fd).unwrap();
    let tables = net::Tables::read(&me).unwrap();
    let inode = find(listener.as_raw_fd()).object.ino;
    assert!(
        tables
            .listeners
            .iter()
            .any(|s| s.local.port() == port && s.inode == inode)
    );
    assert!(tables.inodes.contains(&find(near.as_raw_fd()).object.ino));
    assert_eq!(find(pipe.as_raw_fd()).kind, Kind::Pipe);
    assert_eq!(find(null.as_raw_fd()).kind, Kind::Device);
    assert_eq!(find(file.as_raw_fd()).kind, Kind::File);
    let mounts = mountinfo::parse(&me.read("mountinfo").unwrap()).unwrap();
    assert!(mounts.iter().any(|m| m.id == find(file.as_raw_fd()).object.mount));
}

#[test]
fn copies_of_descriptors_tell_the_same_as_the_folder() {
    use std::io::{Read as _, Write as _};
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Once it answers it has loaded its libraries: nothing is opened or closed between the two looks.
    child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let id: i32 = child.id().try_into().unwrap();
    let entry = Entry::open(Pid::new(id).unwrap()).unwrap();
    let devs = descriptors::KernelDevs::learn().unwrap();
    let by_folder = descriptors::read(&entry, devs).unwrap();
    let table = Status::parse(&entry.read("status").unwrap()).unwrap().table;
    let by_copies = descriptors::duplicated(id, table, devs).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(by_folder.len() >= 3);
    assert_eq!(by_folder, by_copies);
}

#[test]
fn knows_a_process_behind_a_descriptor_by_its_namespace_even_if_it_is_young() {
    let devs = descriptors::KernelDevs::learn().unwrap();
    let own = Entry::own().unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pidfd = crate::sys::pidfd::open(i32::try_from(child.id()).unwrap()).unwrap();
    let kind = || {
        let number = std::os::fd::AsRawFd::as_raw_fd(&pidfd);
        let all = descriptors::read(&own, devs).unwrap();
        all.into_iter().find(|d| d.number == number).unwrap().kind
    };
    let inode = namespaces::inode(&own, "ns/pid").unwrap();
    assert_eq!(kind(), descriptors::Kind::Process(Some(inode)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(kind(), descriptors::Kind::Process(None));
}
