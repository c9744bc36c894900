//! Attempts where nothing forbids them: each succeeds, so that a denial means something.

use super::*;

#[test]
fn file_attempts_succeed_where_nothing_forbids_them_and_leave_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("a"), "content").unwrap();
    let before = std::fs::metadata(at("a")).unwrap().permissions();
    for (name, args) in [
        ("read", vec![at("a")]),
        ("list", vec![folder.path().to_owned()]),
        ("write", vec![at("a")]),
        ("create", vec![at("b")]),
        ("rename", vec![at("a"), at("b")]),
        ("link", vec![at("a"), at("b")]),
        ("chmod-suid", vec![at("a")]),
        ("file-handle", vec![at("a")]),
    ] {
        let args: Vec<&Path> = args.iter().map(AsRef::as_ref).collect();
        assert_eq!(attempt(name, &args), Tried::Done, "{name}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read(at("a")).unwrap(), b"content");
    assert_eq!(std::fs::metadata(at("a")).unwrap().permissions(), before);
}

#[test]
fn what_is_not_there_is_absent_and_what_is_there_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["read", "list", "write", "chmod-suid"] {
        assert_eq!(attempt(name, &[&at("none")]), Tried::Absent, "{name}");
    }
    std::fs::write(at("a"), "a").unwrap();
    std::fs::write(at("b"), "b").unwrap();
    let exists = Tried::Error(Errno::EEXIST as i32);
    assert_eq!(attempt("create", &[&at("a")]), exists);
    assert_eq!(attempt("rename", &[&at("a"), &at("b")]), exists);
    assert_eq!(attempt("link", &[&at("a"), &at("b")]), exists);
    assert_eq!(std::fs::read(at("b")).unwrap(), b"b");
}

#[test]
fn a_denial_of_the_kernel_is_recognised() {
    for errno in [Errno::EACCES, Errno::EPERM, Errno::EROFS] {
        assert_eq!(Tried::from_errno(errno), Tried::Denied(errno as i32));
    }
    // A setting that cannot be changed is denied to root as well.
    assert_eq!(
        attempt("write", &[Path::new("/proc/sys/kernel/ostype")]),
        Tried::Denied(Errno::EACCES as i32)
    );
    if !is_root() {
        assert_eq!(
            attempt("read", &[Path::new("/etc/shadow")]),
            Tried::Denied(Errno::EACCES as i32)
        );
        assert_eq!(
            attempt("list", &[Path::new("/root")]),
            Tried::Denied(Errno::EACCES as i32)
        );
        assert_eq!(text("signal", 1), Tried::Denied(Errno::EPERM as i32));
        assert_eq!(text("read-proc", 1), Tried::Denied(Errno::EACCES as i32));
        assert!(matches!(text("ptrace", 1), Tried::Denied(_)));
        for name in ["raw-socket", "packet", "mount", "mount-new"] {
            assert_eq!(attempt(name, &[]), Tried::Denied(Errno::EPERM as i32), "{name}");
        }
    }
}

#[test]
fn socket_attempts_reach_what_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    assert_eq!(attempt("connect-unix", &[&path]), Tried::Absent);
    let stream = UnixListener::bind(&path).unwrap();
    assert_eq!(attempt("connect-unix", &[&path]), Tried::Done);
    drop(stream);
    assert!(refused_in_the_end(|| attempt("connect-unix", &[&path])));
    let datagram = folder.path().join("d");
    let _datagram = UnixDatagram::bind(&datagram).unwrap();
    assert_eq!(attempt("connect-unix", &[&datagram]), Tried::Done);
    let name = format!("pinfold-probe-{}", std::process::id());
    assert_eq!(text("connect-abstract", &name), Tried::Refused);
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    assert_eq!(text("connect-abstract", &name), Tried::Done);
}

#[test]
fn internet_attempts_tell_an_answer_from_refusal_and_silence() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    assert_eq!(text("connect-tcp", address), Tried::Done);
    let first_send = text("fast-open", address);
    // Where tcp_fastopen is switched off the flag is not known.
    let off = Tried::Error(Errno::EOPNOTSUPP as i32);
    assert!(first_send == Tried::Done || first_send == off, "{first_send:?}");
    drop(tcp);
    assert_ne!(text("fast-open", address), Tried::Done);
    assert!(refused_in_the_end(|| text("connect-tcp", address)));
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(text("udp", silent.local_addr().unwrap()), Tried::TimedOut);
    let address = silent.local_addr().unwrap();
    drop(silent);
    assert!(refused_in_the_end(|| text("udp", address)));
    let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = echo.local_addr().unwrap();
    let answer = std::thread::spawn(move || {
        let (_, from) = echo.recv_from(&mut [0; 16]).unwrap();
        echo.send_to(b"x", from).unwrap();
    });
    assert_eq!(text("udp", address), Tried::Done);
    answer.join().unwrap();
    assert_eq!(text("connect-tcp", "localhost:1"), Tried::Error(Errno::EINVAL as i32));
}

#[test]
fn only_the_brokers_own_no_is_a_denial() {
    use crate::verify::probe::sockets::sort;
    assert_eq!(sort("HTTP/1.1 200 Connection established"), Tried::Done);
    assert_eq!(sort("HTTP/1.1 403 Forbidden"), Tried::Denied(Errno::EACCES as i32));
    for line in ["HTTP/1.1 502 Bad Gateway", "HTTP/1.1 407 x", "", "200", "HTTP/1.1 2000"] {
        assert_eq!(sort(line), Tried::Error(Errno::EPROTO as i32), "{line:?}");
    }
}

#[test]
fn process_attempts_reach_a_process_of_the_same_user() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    for name in ["signal", "read-proc", "ptrace"] {
        assert_eq!(text(name, child.id()), Tried::Done, "{name}");
    }
    assert!(child.try_wait().unwrap().is_none(), "it is unharmed");
    child.kill().unwrap();
    child.wait().unwrap();
    for name in ["signal", "read-proc", "ptrace"] {
        assert_eq!(text(name, child.id()), Tried::Absent, "{name}");
        assert_eq!(text(name, "-1"), Tried::Error(Errno::EINVAL as i32), "{name}");
    }
}

#[test]
fn kernel_attempts_get_past_a_kernel_that_allows_them() {
    for name in [
        "unshare-user",
        "keyctl",
        "userfaultfd",
        "clone3",
        "core-dump",
        "gain-privileges",
        "own-abstract",
        "own-tcp",
    ] {
        assert_eq!(attempt(name, &[]), Tried::Done, "{name}");
    }
    if is_root() {
        for name in [
            "raw-socket",
            "packet",
            "mount",
            "mount-new",
            "bpf",
            "core-pattern",
            "netlink",
            "perf",
            "syslog",
        ] {
            assert!(
                matches!(attempt(name, &[]), Tried::Done | Tried::Absent),
                "{name}: {:?}",
                attempt(name, &[])
            );
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(attempt("mknod", &[&folder.path().join("n")]), Tried::Done);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_terminal_is_told_from_a_file_that_bears_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tty");
    std::fs::write(&file, "").unwrap();
    assert_eq!(attempt("open-tty", &[&file]), Tried::Error(Errno::ENOTTY as i32));
    assert_eq!(attempt("open-tty", &[Path::new("/dev/pts/99999")]), Tried::Absent);
    // The multiplexer's own end: every open makes a new pair, whose other end goes with it.
    assert_eq!(attempt("open-tty", &[Path::new("/dev/ptmx")]), Tried::Done);
}

#[test]
fn own_attempts_list_what_was_given() {
    let found = |names: &[&str]| {
        let args: Vec<OsString> = names.iter().map(Into::into).collect();
        attempt_by_name("env", &args).unwrap()
    };
    assert_eq!(
        found(&["PATH"]),
        Outcome {
            attempt: "env".into(),
            result: Tried::Done,
            detail: "PATH".into()
        }
    );
    assert_eq!(found(&["PINFOLD_NEVER_SET"]).result, Tried::Absent);
    assert!(found(&[]).detail.contains("PATH"));
    let file = tempfile::NamedTempFile::new().unwrap();
    let fds = attempt_by_name("fds", &[]).unwrap();
    assert_eq!(fds.result, Tried::Done);
    assert!(fds.detail.contains(&*file.path().to_string_lossy()));
}

#[test]
fn reaches_a_name_by_the_proxy_if_there_is_one_and_directly_otherwise() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = OsString::from(format!("localhost:{}", listener.local_addr().unwrap().port()));
    assert_eq!(crate::verify::probe::sockets::reach_by(None, &target).0, Tried::Done);
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let named = OsString::from(format!("http://{}", proxy.local_addr().unwrap()));
    let denying = std::thread::spawn(move || {
        let (mut stream, _) = proxy.accept().unwrap();
        std::io::Read::read(&mut stream, &mut [0; 512]).unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 403 Forbidden\r\n\r\n").unwrap();
    });
    assert!(matches!(
        crate::verify::probe::sockets::reach_by(Some(&named), &target).0,
        Tried::Denied(_)
    ));
    denying.join().unwrap();
    drop(listener);
    assert_eq!(crate::verify::probe::sockets::reach_by(None, &target).0, Tried::Refused);
}
