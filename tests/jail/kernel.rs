//! System calls that no command inside may make, each tried outside first.

use crate::harness::{Attempt, PYTHON, Verdict, covered_by_root, is_root, not_in_this_kernel, skip};
use crate::mode::{by_mode, only_in_full};
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
    if !is_root() {
        return covered_by_root("the rest is refused to an ordinary user outside too");
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
            Verdict::NoControl(name) if name == "ENOSYS" => not_in_this_kernel(&format!("call {number}")),
            verdict => assert_eq!(verdict, Verdict::Held, "{number} {words}"),
        }
    }
}

/// The 32-bit `getpid` (20) by `int 0x80`, as machine code: the one way to another ABI that x86-64 kernels leave open.
#[cfg(target_arch = "x86_64")]
const GETPID_32: &str = r"
import ctypes, mmap, os, sys
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b'\xb8\x14\x00\x00\x00\xcd\x80\xc3')
call = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print('ready', flush=True)
sys.exit(0 if call() == os.getpid() else 9)";

#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_of_the_32_bit_abi_ends_its_process() {
    let place = Place::new();
    let argv = [PYTHON, "-I", "-S", "-c", GETPID_32];
    let outside = finish(place.command(argv[0]).args(&argv[1..]));
    if outside.code() != 0 {
        return skip(&format!("this kernel has no 32-bit calls: {}", outside.err()));
    }
    let inside = finish(&mut place.run::<&str, _>(&[], &argv)).expect(128 + libc::SIGSYS);
    assert_eq!(inside.out(), "ready\n");
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
        return covered_by_root("an ordinary user makes no device nodes outside either");
    }
    for body in [
        "os.mknod('null', 0o20666, os.makedev(1, 3))",
        "os.mknod('b', 0o60600, os.makedev(7, 0))",
        "os.mknod('n', 0o20666, os.makedev(1, 3), dir_fd=os.open('.', 0))",
    ] {
        place.denies(&[], &Attempt::python(body), &["EPERM"]);
    }
    place.denies(
        &[],
        &Attempt::python("os.open('/dev/kmsg', os.O_WRONLY)"),
        by_mode(&["ENOENT"], &["EACCES"]),
    );
    only_in_full!("a device node that root left in a granted folder can be opened");
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
}

#[test]
fn settings_of_the_machine_cannot_be_changed() {
    let place = Place::new();
    if !is_root() {
        return covered_by_root("these files are root's, an ordinary user cannot open them outside either");
    }
    for file in ["sys/kernel/core_pattern", "sys/kernel/hostname", "sys/vm/swappiness"] {
        let attempt = Attempt::python(&format!("os.open('/proc/{file}', os.O_WRONLY)"));
        place.denies(&[], &attempt, &["EROFS", "EACCES"]);
    }
    let write = ["sysrq-trigger", "sys/kernel/modprobe", "irq/default_smp_affinity"]
        .map(|file| format!("os.open('/proc/{file}', os.O_WRONLY)"));
    let read = ["kcore", "kallsyms", "keys", "timer_list"]
        .map(|file| format!("open('/proc/{file}', 'rb').read(1) or deny('ENOENT')"));
    // What tells of the machine in /proc, and is root's to read, can be read there: it is the machine's own.
    let read = by_mode(Some(read), None).into_iter().flatten();
    for body in write.into_iter().chain(read) {
        let attempt = Attempt::python(&body);
        match place.compare(&attempt, &[], &attempt, &["ENOENT", "EROFS", "EACCES", "EPERM"]) {
            Verdict::NoControl(name) if name == "ENOENT" => not_in_this_kernel(&body),
            verdict => assert_eq!(verdict, Verdict::Held, "{body}"),
        }
    }
}

/// `id` of another owner with the set-user-id bit, in a granted folder: outside it runs as its owner.
#[test]
fn a_set_user_id_program_runs_as_whoever_starts_it() {
    let place = Place::new();
    if !is_root() {
        return covered_by_root("only root can give a program to another user");
    }
    let (program, nobody) = (place.secrets.join("id"), 65_534);
    std::fs::copy("/usr/bin/id", &program).unwrap();
    std::os::unix::fs::chown(&program, Some(nobody), Some(nobody)).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let outside = finish(place.command(&program).arg("-u"));
    if outside.out() != format!("{nobody}\n") {
        return skip(&format!("set-user-id does nothing outside: {}", outside.out()));
    }
    let (folder, program) = (place.secrets.to_str().unwrap(), program.to_str().unwrap());
    for grant in ["--read", "--allow"] {
        let inside = |program: &str| {
            finish(&mut place.run(&[grant, folder], &[program, "-u"]))
                .expect(0)
                .out()
        };
        assert_eq!(inside(program), inside("/usr/bin/id"), "{grant}");
        assert_ne!(inside(program), outside.out(), "{grant}");
    }
}

#[test]
fn no_new_privileges_no_capabilities_and_no_mount_with_set_user_id() {
    let place = Place::new();
    let ended = finish(&mut place.sh(&[], "grep -E '^(NoNewPrivs|CapEff|CapBnd|CapPrm)' /proc/self/status; findmnt -rno OPTIONS 2>/dev/null; cut -d' ' -f4 /proc/mounts"));
    let out = ended.out();
    assert!(
        out.contains("NoNewPrivs:\t1")
            && out.contains("CapBnd:\t0000000000000000")
            && out.contains("CapPrm:\t0000000000000000"),
        "{out}"
    );
    only_in_full!("the mounts are the machine's own, with their own flags");
    let options: Vec<&str> = out
        .lines()
        .filter(|line| line.contains("relatime") || line.contains("rw,") || line.contains("ro,"))
        .collect();
    assert!(
        options.len() > 5 && options.iter().all(|line| line.contains("nosuid")),
        "{out}"
    );
}
