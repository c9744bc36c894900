//! System calls that no command inside may make, each tried outside first.

use crate::harness::{Attempt, Verdict, is_root, skip};
use crate::place::{Place, finish};
use nix::libc;
use std::os::unix::fs::PermissionsExt as _;

fn attempt(number: libc::c_long, words: &str) -> Attempt {
    Attempt::python(&format!("call({number}, {words})"))
}

/// New user namespaces are what most of the rest starts from; an ordinary user makes one first.
fn in_a_new_user_namespace(body: &str) -> Attempt {
    Attempt::python(&format!("call({}, 0x10000000)\n{body}", libc::SYS_unshare))
}

#[test]
fn namespaces_cannot_be_made_or_joined() {
    let place = Place::new();
    place.denies(&[], &attempt(libc::SYS_unshare, "0x10000000"), &["EPERM"]);
    for flag in [
        "0x20000",
        "0x40000000",
        "0x20000000",
        "0x08000000",
        "0x04000000",
        "0x02000000",
    ] {
        place.denies(
            &[],
            &attempt(libc::SYS_unshare, &format!("0x10000000 | {flag}")),
            &["EPERM"],
        );
    }
    let clone = format!(
        "pid = call({}, 0x10000000 | 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)",
        libc::SYS_clone
    );
    place.denies(&[], &Attempt::python(&clone), &["EPERM"]);
    let clone3 = format!(
        "a = struct.pack('11Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)\npid = call({}, a, len(a))\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)",
        libc::SYS_clone3
    );
    place.denies(&[], &Attempt::python(&clone3), &["ENOSYS"]);
    let join = format!("call({}, os.open('/proc/self/ns/user', 0), 0)", libc::SYS_setns);
    // Joining one's own user namespace is EINVAL by the kernel; the filter answers before it looks.
    let body = join.replace("call(", "try: call(") + "\nexcept OSError as e:\n  if e.errno != errno.EINVAL: raise";
    place.denies(&[], &Attempt::python(&body), &["EPERM"]);
    for command in [
        vec!["unshare", "-Ur", "true"],
        vec!["unshare", "-Urm", "true"],
        vec!["bwrap", "--ro-bind", "/", "/", "true"],
    ] {
        let ended = finish(place.command(command[0]).args(&command[1..]));
        if ended.code() != 0 {
            skip(&format!("{command:?} does not work outside: {}", ended.err()));
            continue;
        }
        assert_ne!(
            finish(&mut place.run::<&str, _>(&[], &command)).code(),
            0,
            "{command:?}"
        );
    }
}

#[test]
fn nothing_can_be_mounted() {
    let place = Place::new();
    for (number, words) in [
        (libc::SYS_mount, "b'none', argv[1].encode(), b'tmpfs', 0, 0"),
        (libc::SYS_mount, "b'/', argv[1].encode(), 0, 0x5000, 0"),
        (libc::SYS_fsopen, "b'tmpfs', 0"),
        (libc::SYS_open_tree, "-100, b'/', 0x8001"),
        (libc::SYS_chroot, "argv[1].encode()"),
    ] {
        let body = format!("call({number}, {words})");
        let folder = place.work.join("folder");
        let _ = std::fs::create_dir(&folder);
        let control = in_a_new_user_namespace(&format!("call({}, 0x20000)\n{body}", libc::SYS_unshare)).with(&folder);
        let inside = Attempt::python(&body).with(&folder);
        let verdict = place.compare(&control, &[], &inside, &["EPERM"]);
        assert_eq!(verdict, Verdict::Held, "{body}");
    }
}

#[test]
fn wide_kernel_interfaces_are_closed() {
    let place = Place::new();
    let rows = [
        (libc::SYS_io_uring_setup, "4, bytes(120)", "ENOSYS"),
        (libc::SYS_keyctl, "0, -3, 0", "EPERM"),
        (libc::SYS_add_key, "b'user', b'pinfold', b'x', 1, -2", "EPERM"),
        (
            libc::SYS_name_to_handle_at,
            "-100, b'.', ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128)), ctypes.byref(ctypes.c_int()), 0",
            "EPERM",
        ),
    ];
    for (number, words, errno) in rows {
        place.denies_if_here(&[], &attempt(number, words), &[errno]);
    }
    // What only root may do outside has its control only there.
    if !is_root() {
        return;
    }
    let rows = [
        (
            libc::SYS_bpf,
            "0, struct.pack('IIIII', 2, 4, 4, 1, 0) + bytes(100), 120",
            "EPERM",
        ),
        (
            libc::SYS_perf_event_open,
            "struct.pack('IIQ', 1, 112, 0) + bytes(96), 0, -1, -1, 0",
            "EPERM",
        ),
        (libc::SYS_userfaultfd, "0", "EPERM"),
        (libc::SYS_syslog, "10, 0, 0", "EPERM"),
        (libc::SYS_fanotify_init, "0, 0", "EPERM"),
        (libc::SYS_acct, "0", "EPERM"),
        (
            libc::SYS_sethostname,
            "socket.gethostname().encode(), len(socket.gethostname())",
            "EPERM",
        ),
    ];
    for (number, words, errno) in rows {
        match place.compare(&attempt(number, words), &[], &attempt(number, words), &[errno]) {
            // A kernel built without it has nothing to close.
            Verdict::NoControl(name) if name == "ENOSYS" => {}
            verdict => assert_eq!(verdict, Verdict::Held, "{number} {words}"),
        }
    }
}

#[test]
fn calls_of_another_abi_and_unknown_calls_are_refused() {
    let place = Place::new();
    // The control shows that the refusal is not the kernel's own: an unknown number is refused everywhere.
    place.allows(&[], &attempt(libc::SYS_getpid, "0"));
    for number in ["0x40000000 + 39", "470", "9999"] {
        let body = format!(
            "try: call({number})\nexcept OSError as e:\n  if e.errno != errno.ENOSYS: deny('EIO')\nelse: deny('EIO')"
        );
        place.allows(&[], &Attempt::python(&body));
    }
}

#[test]
fn no_file_gets_a_set_user_id_bit() {
    let place = Place::new();
    std::fs::write(place.work.join("file"), "x").unwrap();
    let rows = [
        ("os.chmod('file', 0o4755)".to_owned(), "EPERM"),
        ("os.fchmod(os.open('file', 0), 0o4755)".to_owned(), "EPERM"),
        ("os.chmod('file', 0o6755, dir_fd=os.open('.', 0))".to_owned(), "EPERM"),
        (format!("call({}, -100, b'file', 0o4755, 0)", 452), "EPERM"),
        (
            format!("call({}, -100, b'file', 0xf0000000 | 0o4755)", libc::SYS_fchmodat),
            "EPERM",
        ),
        (
            "os.umask(0); os.open('new', os.O_CREAT | os.O_WRONLY, 0o4755)".to_owned(),
            "EPERM",
        ),
        (
            "f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755); os.fstat(f).st_mode & 0o4000 or deny('EIO')"
                .to_owned(),
            "EPERM",
        ),
        ("os.mknod('node', 0o104755)".to_owned(), "EPERM"),
        (
            "os.mknod('node-at', 0o104755, dir_fd=os.open('.', 0))".to_owned(),
            "EPERM",
        ),
        (
            format!(
                "call({}, -100, b'two', struct.pack('QQQ', 0o101, 0o4755, 0), 24)",
                libc::SYS_openat2
            ),
            "ENOSYS",
        ),
    ];
    for (body, errno) in rows {
        place.denies_if_here(&[], &Attempt::python(&body), &[errno]);
    }
    let bits = std::fs::read_dir(&place.work)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode());
    assert!(bits.into_iter().all(|mode| mode & 0o4000 == 0));
    place.allows(
        &[],
        &Attempt::python("os.close(os.open('fine', os.O_CREAT | os.O_WRONLY, 0o755)); os.chmod('fine', 0o2755)"),
    );
}

#[test]
fn devices_cannot_be_made_or_opened() {
    let place = Place::new();
    if !is_root() {
        // An ordinary user makes no device nodes outside either.
        return;
    }
    for body in [
        "os.mknod('null', 0o20666, os.makedev(1, 3))",
        "os.mknod('b', 0o60600, os.makedev(7, 0))",
        "os.mknod('n', 0o20666, os.makedev(1, 3), dir_fd=os.open('.', 0))",
    ] {
        place.denies(&[], &Attempt::python(body), &["EPERM"]);
    }
    // One that stands in the workspace from before cannot be opened.
    finish(place.command("mknod").args(["node", "c", "1", "3"])).expect(0);
    finish(place.command("chmod").args(["666", "node"])).expect(0);
    let again = Place::new();
    finish(again.command("mknod").args(["node", "c", "1", "3"])).expect(0);
    again.denies(
        &[],
        &Attempt::python("open('node', 'w').write('x')"),
        &["EACCES", "EPERM"],
    );
    again.denies(&[], &Attempt::python("os.open('/dev/kmsg', os.O_WRONLY)"), &["ENOENT"]);
}

#[test]
fn settings_of_the_machine_cannot_be_changed() {
    let place = Place::new();
    if !is_root() {
        // These files are root's; an ordinary user cannot open them outside either.
        return;
    }
    for file in ["sys/kernel/core_pattern", "sys/kernel/hostname", "sys/vm/swappiness"] {
        let attempt = Attempt::python(&format!("os.open('/proc/{file}', os.O_WRONLY)"));
        place.denies(&[], &attempt, &["EROFS", "EACCES"]);
    }
    let write = ["sysrq-trigger", "sys/kernel/modprobe", "irq/default_smp_affinity"]
        .map(|file| format!("os.open('/proc/{file}', os.O_WRONLY)"));
    let read = ["kcore", "kallsyms", "keys", "timer_list"]
        .map(|file| format!("open('/proc/{file}', 'rb').read(1) or deny('ENOENT')"));
    for body in write.into_iter().chain(read) {
        let attempt = Attempt::python(&body);
        match place.compare(&attempt, &[], &attempt, &["ENOENT", "EROFS", "EACCES", "EPERM"]) {
            // A kernel built without it has nothing to close.
            Verdict::NoControl(name) if name == "ENOENT" => {}
            verdict => assert_eq!(verdict, Verdict::Held, "{body}"),
        }
    }
}

#[test]
fn a_set_user_id_program_gains_nothing() {
    let place = Place::new();
    let ended = finish(&mut place.sh(&[], "grep -E '^(NoNewPrivs|CapEff|CapBnd|CapPrm)' /proc/self/status; findmnt -rno OPTIONS 2>/dev/null; cut -d' ' -f4 /proc/mounts"));
    let out = ended.out();
    assert!(
        out.contains("NoNewPrivs:\t1")
            && out.contains("CapBnd:\t0000000000000000")
            && out.contains("CapPrm:\t0000000000000000"),
        "{out}"
    );
    let options: Vec<&str> = out
        .lines()
        .filter(|line| line.contains("relatime") || line.contains("rw,") || line.contains("ro,"))
        .collect();
    assert!(
        options.len() > 5 && options.iter().all(|line| line.contains("nosuid")),
        "{out}"
    );
}
