//! P1: what is not granted is not there, whatever name it is called by.

use crate::harness::{Attempt, Verdict, covered_by_root, is_root, skip};
use crate::mode::{by_mode, only_in_full};
use crate::place::{Place, finish};
use std::os::unix::fs::symlink;

/// What mounts and Landlock answer for what is not granted.
const GONE: &[&str] = &["ENOENT", "EACCES", "EPERM"];
/// What they answer to a change of what can only be read.
const READ_ONLY: &[&str] = &["EROFS", "EACCES", "EXDEV", "EPERM", "EBUSY"];

#[test]
fn an_ungranted_file_is_not_readable_by_any_of_its_names() {
    let place = Place::new();
    let key = place.secrets.join("key");
    let name = key.to_str().unwrap();
    symlink(&key, place.work.join("link")).unwrap();
    symlink(&place.secrets, place.work.join("folder")).unwrap();
    symlink("../secrets/key", place.work.join("relative")).unwrap();
    let own = std::process::id();
    for path in [
        name.to_owned(),
        "link".into(),
        "folder/key".into(),
        "relative".into(),
        "../secrets/key".into(),
        format!("/proc/self/root{name}"),
        format!("/proc/thread-self/root{name}"),
        "/proc/self/cwd/../secrets/key".into(),
        format!("/proc/{own}/root{name}"),
        format!("/../../{name}"),
    ] {
        place.denies(&[], &Attempt::python("open(argv[1]).read()").with(path), GONE);
    }
    place.allows(
        &["--read", place.secrets.to_str().unwrap()],
        &Attempt::python("open('link').read()"),
    );
}

#[test]
fn a_link_made_inside_leads_nowhere() {
    let place = Place::new();
    let key = place.secrets.join("key");
    let body = "os.symlink(argv[1], 'made')\nopen('made').read()";
    place.denies(&[], &Attempt::python(body).with(&key), GONE);
    let body = "os.symlink(os.path.dirname(argv[1]), 'made-folder')\nopen('made-folder/new', 'w')";
    place.denies(&[], &Attempt::python(body).with(&key), GONE);
}

#[test]
fn an_ungranted_file_cannot_be_looked_at_or_changed() {
    let place = Place::new();
    let key = place.secrets.join("key");
    for body in [
        "os.chmod(argv[1], 0o600)",
        "os.listdir(os.path.dirname(argv[1]))",
        "open(argv[1], 'a').write('x')",
        "open(argv[1] + '.new', 'w')",
        "os.link(argv[1], 'key')",
        "os.truncate(argv[1], 0)",
        "os.mkdir(argv[1] + '.%d' % os.getpid())",
        "os.rename(argv[1], argv[1] + '.away'); os.rename(argv[1] + '.away', argv[1])",
    ] {
        place.denies(&[], &Attempt::python(body).with(&key), by_mode(GONE, READ_ONLY));
        std::fs::write(&key, "the secret key\n").unwrap();
    }
    only_in_full!("what is not granted can be looked at: stat, access, times, owner, extended attributes");
    for body in [
        "os.stat(argv[1])",
        "os.lstat(argv[1])",
        "os.access(argv[1], os.F_OK) or deny('ENOENT')",
        "os.utime(argv[1], (1, 1))",
        "os.chown(argv[1], os.getuid(), os.getgid())",
        "os.listxattr(argv[1])",
        "os.statvfs(argv[1])",
    ] {
        place.denies(&[], &Attempt::python(body).with(&key), GONE);
    }
}

#[test]
fn a_read_only_grant_can_be_read_and_not_written() {
    let fresh = || {
        let place = Place::new();
        std::fs::create_dir(place.secrets.join("folder")).unwrap();
        place
    };
    for body in [
        "open(argv[1] + '/key', 'a')",
        "open(argv[1] + '/key', 'r+')",
        "open(argv[1] + '/new', 'w')",
        "os.truncate(argv[1] + '/key', 0)",
        "os.chmod(argv[1] + '/key', 0o640)",
        "os.fchmod(os.open(argv[1] + '/key', os.O_RDONLY), 0o640)",
        "os.chmod('key', 0o640, dir_fd=os.open(argv[1], os.O_PATH))",
        "os.symlink(argv[1] + '/key', 'way'); os.chmod('way', 0o640)",
        "os.chmod('/proc/self/fd/%d' % os.open(argv[1] + '/key', os.O_PATH), 0o640)",
        by_mode("os.utime(argv[1] + '/key', (1, 1))", "open(argv[1] + '/key', 'w')"),
        "os.mkdir(argv[1] + '/more')",
        "os.symlink('x', argv[1] + '/symlink')",
        "os.link(argv[1] + '/key', argv[1] + '/linked')",
        "os.setxattr(argv[1] + '/key', 'user.x', b'1')",
        "os.mkfifo(argv[1] + '/fifo')",
        "os.link(argv[1] + '/key', 'alias')",
        "os.rename(argv[1] + '/folder', argv[1] + '/renamed')",
        "os.rename(argv[1] + '/key', 'key')",
    ] {
        // What the control changes, the attempt must not find.
        let [outside, inside] = [fresh(), fresh()];
        let granted = inside.secrets.to_str().unwrap();
        let control = Attempt::python(body).with(&outside.secrets);
        let attempt = Attempt::python(body).with(granted);
        let errors = if body.contains("xattr") {
            by_mode(READ_ONLY, &["ENOTSUP"])
        } else {
            READ_ONLY
        };
        match inside.compare(&control, &["--read", granted], &attempt, errors) {
            Verdict::NoControl(name) if body.contains("xattr") => skip(&format!("extended attributes: {name}")),
            verdict => assert_eq!(verdict, Verdict::Held, "{body}"),
        }
    }
    let place = fresh();
    let granted = place.secrets.to_str().unwrap();
    place.allows(
        &["--read", granted],
        &Attempt::python("open(argv[1] + '/key').read()").with(granted),
    );
    place.allows(
        &["--allow", granted],
        &Attempt::python("open(argv[1] + '/new', 'w').write('x')").with(granted),
    );
    assert_eq!(std::fs::read(place.secrets.join("new")).unwrap(), b"x");
}

#[test]
fn the_home_folder_inside_is_private() {
    let place = Place::new();
    std::fs::write(place.home.join("precious"), "x").unwrap();
    let body = "'precious' in os.listdir(os.environ['HOME']) or deny('ENOENT')";
    place.denies(&[], &Attempt::python(body), GONE);
    place.allows(
        &[],
        &Attempt::python("open(os.environ['HOME'] + '/mine', 'w').write('x')"),
    );
    assert!(!place.home.join("mine").exists(), "a file of the private home came out");
}

#[test]
fn temporary_folders_inside_are_private() {
    let place = Place::new();
    let outside = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let read = Attempt::python("open(argv[1]).read()").with(outside.path());
    place.denies(&[], &read, GONE);
    only_in_full!("there is no private /tmp: TMPDIR names a folder on disk, without a size");
    let name = format!("/tmp/{}", crate::place::marker());
    place.allows(&[], &Attempt::python("open(argv[1], 'w').write('x')").with(&name));
    assert!(!std::path::Path::new(&name).exists(), "{name} came out");
}

#[test]
fn a_file_handle_leads_nowhere() {
    let place = Place::new();
    let body = format!(
        "call({}, -100, argv[1].encode(), ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128)), ctypes.byref(ctypes.c_int()), 0)",
        nix::libc::SYS_name_to_handle_at
    );
    place.denies_if_here(&[], &Attempt::python(&body).with("."), &["EPERM"]);
}

#[test]
fn a_stream_opened_for_reading_cannot_be_opened_again_for_writing() {
    let place = Place::new();
    let script = "echo changed > /proc/self/fd/0 || exit 3";
    let key = || std::fs::File::open(place.secrets.join("key")).unwrap();
    let mut inside = place.sh(&[], script);
    finish(inside.stdin(key())).expect(3);
    assert_eq!(std::fs::read(place.secrets.join("key")).unwrap(), b"the secret key\n");
    let mut outside = place.command("sh");
    finish(outside.args(["-c", script]).stdin(key())).expect(0);
    assert_eq!(std::fs::read(place.secrets.join("key")).unwrap(), b"changed\n");
}

/// What SECURITY.md states: a pipe and a file of memory have no place in a tree of files, so that no wall of paths knows
/// them. Should this fail, the limit is gone, and so must be its line there.
#[test]
fn a_pipe_or_memory_as_a_stream_can_be_opened_the_other_way_which_is_a_stated_limit() {
    let place = Place::new();
    let script = "echo forged > /proc/self/fd/0";
    let (reader, writer) = std::io::pipe().unwrap();
    finish(place.sh(&[], script).stdin(reader.try_clone().unwrap())).expect(0);
    drop(writer);
    assert_eq!(std::io::read_to_string(reader).unwrap(), "forged\n");
    let memory = nix::sys::memfd::memfd_create(c"given", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&memory));
    let read_only = std::fs::File::open(&path).unwrap();
    finish(place.sh(&[], script).stdin(read_only)).expect(0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "forged\n");
}

#[test]
fn a_folder_as_a_stream_is_refused() {
    let place = Place::new();
    let folder = || std::fs::File::open(&place.secrets).unwrap();
    let script = "chdir(STDIN) && chmod(0640, '../secrets/key') ? exit 0 : exit 9";
    let mut outside = place.command("perl");
    finish(outside.args(["-e", script]).stdin(folder())).expect(0);
    let mut inside = place.run::<&str, _>(&[], &["perl", "-e", script]);
    let ended = finish(inside.stdin(folder())).expect(125);
    assert!(ended.err().contains("standard input is a folder"), "{}", ended.err());
}

#[test]
fn files_of_the_system_with_secrets_are_not_there() {
    let place = Place::new();
    if !is_root() {
        return covered_by_root("only root can read these outside");
    }
    place.denies(&[], &Attempt::python("open('/etc/shadow').read()"), GONE);
    place.denies(&[], &Attempt::python("os.listdir('/sys')"), GONE);
    place.denies(&[], &Attempt::python("os.listdir('/boot')"), GONE);
    only_in_full!("what is not granted can be looked at: stat, access, times, owner, extended attributes");
    place.denies(&[], &Attempt::python("os.stat('/root')"), GONE);
    place.denies(&[], &Attempt::python("os.stat('/run')"), GONE);
}

#[test]
fn pinfolds_own_folders_are_out_of_reach() {
    let place = Place::new();
    let own = [".config/pinfold", ".local/state/pinfold", ".local/share/pinfold"];
    for folder in own {
        std::fs::create_dir_all(place.home.join(folder).join("profiles")).unwrap();
        std::fs::write(place.home.join(folder).join("file"), "as it was").unwrap();
        let path = place.home.join(folder).join("file");
        place.denies(
            &[],
            &Attempt::python("open(argv[1], 'r+').write('x')").with(&path),
            GONE,
        );
        std::fs::write(&path, "as it was").unwrap();
        let folder = place.home.join(folder);
        for grant in [&folder, &folder.join("profiles")] {
            let ended = finish(&mut place.run(&["--allow", grant.to_str().unwrap()], &["true"])).expect(125);
            assert!(ended.err().contains("Pinfold's own"), "{}", ended.err());
        }
    }
}

#[test]
fn the_program_itself_cannot_be_changed_from_a_workspace_that_holds_it() {
    let place = Place::new();
    let copy = place.work.join("pinfold");
    std::fs::copy(crate::place::program(), &copy).unwrap();
    let script = "rm -f pinfold; mv pinfold away; echo x > other; mv other pinfold; chmod 0 pinfold; ln -f other pinfold; exit 0";
    let mut command = place.command(&copy);
    finish(command.args(["run", "--", "sh", "-c", script])).expect(0);
    let same = std::fs::read(&copy).unwrap() == std::fs::read(crate::place::program()).unwrap();
    assert!(same, "the program was changed");
    finish(place.command("sh").args(["-c", script])).expect(0);
    assert_ne!(
        std::fs::metadata(&copy).map_or(0, |meta| meta.len()),
        std::fs::metadata(crate::place::program()).unwrap().len()
    );
}
