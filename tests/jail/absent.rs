//! P2 where nothing stands yet: no mount can cover it, so whatever appears is moved aside at once, and nothing is lost.

use crate::harness::{Attempt, Verdict};
use crate::pane::{Pane, size};
use crate::place::{Place, Started, eventually, finish, program};
use crate::protected::{git, repository};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::Path;

/// Makes something, and is denied if it does not stay for the time in `argv[2]`; the path is `argv[1]`.
const STAYS: &str = "
end = time.monotonic() + float(argv[2])
while os.path.lexists(argv[1]) and time.monotonic() < end: time.sleep(.001)
os.path.lexists(argv[1]) or deny('EPERM')";

/// What a multi-step way gets when the guard is quicker than its next step.
const GONE: &[&str] = &["EPERM", "ENOENT", "ENOTDIR"];

fn refused(fresh: impl Fn() -> Place, path: &str, make: &str) {
    let place = fresh();
    let body = format!("{make}{STAYS}");
    let attempt = |limit: &str| Attempt::python(&body).with(path).with(limit);
    let verdict = place.compare(&attempt("0.05"), &[], &attempt("8"), GONE);
    assert_eq!(verdict, Verdict::Held, "{path}: {make}");
    assert!(place.work.join(path).symlink_metadata().is_err(), "{path}: {make}");
}

#[test]
fn a_folder_that_is_closed_at_once_does_not_keep_the_guard_from_it() {
    for close in [
        "os.chmod('.', 0o555)",
        "os.chmod('.zed', 0)",
        "os.chmod('.', 0o555); os.chmod('.zed', 0)",
    ] {
        let place = repository();
        let body = format!(
            "os.mkdir('q'); open('q/tasks.json', 'w').write('evil'); os.rename('q', '.zed'); {close}; time.sleep(.3)"
        );
        let run = ["/usr/bin/python3", "-c", &format!("import os, time; {body}")];
        finish(&mut place.run::<&str, _>(&[], &run));
        assert!(place.work.join(".zed").symlink_metadata().is_err(), "{close}");
        assert!(
            place.work.join(".zed.refused-by-pinfold").is_dir(),
            "{close}: nothing is lost"
        );
        // The control: without a launch it stays.
        open(&place.work);
        finish(place.command(run[0]).args(&run[1..]));
        assert!(place.work.join(".zed").is_dir(), "{close}");
        for closed in [".", ".zed", ".zed.refused-by-pinfold"] {
            open(&place.work.join(closed));
        }
    }
}

fn open(folder: &Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder, mode).unwrap();
}

#[test]
fn an_absent_protected_file_does_not_stay_by_any_way_of_making_it() {
    for make in [
        "open('.envrc', 'w').write('evil')",
        "open('x', 'w'); os.rename('x', '.envrc')",
        "open('x', 'w'); os.link('x', '.envrc')",
        "os.symlink('x', '.envrc')",
        "os.mkdir('.envrc')",
        "os.mkfifo('.envrc')",
        "f = open('.envrc', 'w'); os.fchmod(f.fileno(), 0)",
    ] {
        refused(repository, ".envrc", make);
    }
}

#[test]
fn an_absent_protected_folder_does_not_stay_and_neither_does_what_is_in_it() {
    for (path, make) in [
        (
            ".claude",
            "os.mkdir('.claude'); open('.claude/settings.json', 'w').write('{}')",
        ),
        (
            ".claude/settings.json",
            "os.mkdir('c'); open('c/settings.json', 'w').write('{}'); os.rename('c', '.claude')",
        ),
        (
            ".husky/pre-commit",
            "os.makedirs('.husky'); open('.husky/pre-commit', 'w')",
        ),
        (
            ".config/mise/config.toml",
            "os.makedirs('.config/mise'); open('.config/mise/config.toml', 'w')",
        ),
        (
            ".config/mise/config.toml",
            "os.makedirs('c/mise'); open('c/mise/config.toml', 'w'); os.rename('c', '.config')",
        ),
        (
            ".config/mise/config.toml",
            "os.makedirs('c/mise'); open('c/mise/config.toml', 'w'); os.symlink('c', '.config')",
        ),
        (
            "mise/config.toml",
            "os.mkdir('mise'); open('x', 'w'); os.link('x', 'mise/config.toml')",
        ),
    ] {
        refused(repository, path, make);
    }
}

#[test]
fn the_pointers_of_a_git_folder_do_not_stay() {
    for (path, make) in [
        (".git/commondir", "open('.git/commondir', 'w').write('../evil')"),
        (
            ".git/config.worktree",
            "open('.git/config.worktree', 'w').write('[core]')",
        ),
        (
            ".git/commondir",
            "open('.git/x', 'w').write('../evil'); os.rename('.git/x', '.git/commondir')",
        ),
    ] {
        refused(repository, path, make);
    }
    let bare_hooks = || {
        let place = repository();
        std::fs::remove_dir_all(place.work.join(".git/hooks")).unwrap();
        place
    };
    refused(
        bare_hooks,
        ".git/hooks/pre-commit",
        "os.mkdir('.git/hooks'); open('.git/hooks/pre-commit', 'w')",
    );
    let configured = || {
        let place = repository();
        git(&place, &["config", "core.hooksPath", "tools/hooks"]);
        place
    };
    refused(
        configured,
        "tools/hooks/pre-commit",
        "os.makedirs('tools/hooks'); open('tools/hooks/pre-commit', 'w')",
    );
}

#[test]
fn a_link_to_the_hooks_is_put_back() {
    for body in [
        "os.unlink('.git/hooks'); os.mkdir('.git/hooks'); open('.git/hooks/pre-commit', 'w')",
        "os.mkdir('evil'); os.rename('.git/hooks', 'old'); os.rename('evil', '.git/hooks')",
        "os.unlink('.git/hooks')",
        "os.symlink('../src', 'evil'); os.rename('evil', '.git/hooks')",
    ] {
        let place = repository();
        std::fs::rename(place.work.join(".git/hooks"), place.work.join("scripts")).unwrap();
        symlink("../scripts", place.work.join(".git/hooks")).unwrap();
        let then = "
end = time.monotonic() + float(argv[2])
back = lambda: os.path.islink('.git/hooks') and os.readlink('.git/hooks') == '../scripts'
while not back() and time.monotonic() < end: time.sleep(.001)
back() and deny('EPERM')";
        let attempt = |limit: &str| Attempt::python(&format!("{body}{then}")).with("").with(limit);
        let verdict = place.compare(
            &attempt("0.05"),
            &[],
            &attempt("8"),
            &["EPERM", "EBUSY", "EXDEV", "EEXIST", "ENOENT", "ENOTDIR"],
        );
        assert_eq!(verdict, Verdict::Held, "{body}");
        assert_eq!(
            std::fs::read_link(place.work.join(".git/hooks")).unwrap().to_str(),
            Some("../scripts")
        );
    }
}

#[test]
fn what_was_refused_is_kept_beside_and_told_once() {
    let place = repository();
    let script = "echo one > .envrc; sleep 0.3; echo two > .envrc; sleep 0.3; ls -A";
    let ended = finish(&mut place.sh(&[], script)).expect(0);
    let aside = [".envrc.refused-by-pinfold", ".envrc.refused-by-pinfold-2"];
    let contents = aside.map(|name| std::fs::read_to_string(place.work.join(name)).unwrap());
    assert_eq!(contents, ["one\n", "two\n"]);
    assert!(ended.out().contains(aside[0]), "seen inside: {}", ended.out());
    let told: Vec<_> = ended.err().lines().map(str::to_owned).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("2 times") && told[0].contains("direnv"), "{told:?}");
}

#[test]
fn what_appears_is_gone_within_a_tenth_of_a_second() {
    let place = repository();
    let body = "
times = []
for _ in range(5):
    open('.envrc', 'w')
    begun = time.monotonic()
    while os.path.lexists('.envrc'): time.sleep(.0002)
    times.append(time.monotonic() - begun)
sorted(times)[2] < .1 or deny('ETIME')";
    place.allows(&[], &Attempt::python(body));
    // The measure itself: what nobody moves is not gone in time.
    let attempt = Attempt::python("open('fine', 'w'); time.sleep(.1); os.path.lexists('fine') or deny('ETIME')");
    place.allows(&[], &attempt);
}

#[test]
fn a_command_that_insists_is_ended() {
    let place = repository();
    let script = "i=0; while [ $i -lt 3000 ]; do echo x > .envrc; i=$((i+1)); sleep 0.01; done; echo finished";
    let ended = finish(&mut place.sh(&[], script));
    assert_ne!(ended.code(), 0);
    assert!(!ended.out().contains("finished"));
    assert!(ended.err().contains("again and again"), "{}", ended.err());
    assert!(place.work.join(".envrc").symlink_metadata().is_err());
    // The same with a name that nobody protects.
    let ended = finish(&mut place.sh(&[], &script.replace(".envrc", "envrc").replace("3000", "30"))).expect(0);
    assert!(ended.out().contains("finished"));
}

#[test]
fn what_ordinary_work_makes_stays_and_is_told() {
    let place = repository();
    let ended = finish(&mut place.sh(&[], "echo node 22 > .tool-versions; sleep 0.3; cat .tool-versions")).expect(0);
    assert_eq!(ended.out(), "node 22\n");
    assert!(ended.err().contains(".tool-versions"), "{}", ended.err());
}

#[test]
fn where_the_kernel_has_no_room_for_watches_everything_is_looked_at_again_and_again() {
    let place = repository();
    let script = "echo x > .envrc; sleep 0.5; if test -e .envrc; then echo stays; fi";
    let mut command = place.command("unshare");
    let without = "echo 0 > /proc/sys/user/max_inotify_instances || exit 99; exec \"$@\"";
    command
        .args(["-Ur", "sh", "-c", without, "sh"])
        .arg(crate::place::program());
    command.args(["run", "--status-fd", "3", "--", "sh", "-c", script]);
    // Root of that namespace has no folder of its own on the host.
    let runtime = place.path().join("runtime");
    std::fs::DirBuilder::new().mode(0o700).create(&runtime).unwrap();
    let mut whole = place.command("sh");
    whole.env("XDG_RUNTIME_DIR", &runtime);
    whole
        .args(["-c", "\"$@\" 3>status", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    let ended = finish(&mut whole).expect(0);
    assert_eq!(ended.out(), "");
    assert!(ended.err().contains("refused-by-pinfold"), "{}", ended.err());
    let status = std::fs::read_to_string(place.work.join("status")).unwrap();
    assert!(status.contains("\"polled\":true"), "{status}");
}

#[test]
fn what_appears_while_nothing_of_it_runs_is_left_alone() {
    let place = repository();
    finish(&mut place.sh(&[], "true")).expect(0);
    std::fs::write(place.work.join(".envrc"), "mine\n").unwrap();
    finish(&mut place.sh(&[], "cat .envrc; ! echo x > .envrc")).expect(0);
    assert_eq!(std::fs::read_to_string(place.work.join(".envrc")).unwrap(), "mine\n");
    let run = Started::new(&mut place.sh(&[], "touch begun; sleep 30"));
    eventually("it runs", || place.work.join("begun").exists());
    // Who makes a file cannot be told: the person's own is moved aside too while a launch lives, and not lost.
    std::fs::write(place.work.join("opencode.json"), "{}").unwrap();
    let aside = place.work.join("opencode.json.refused-by-pinfold");
    eventually("it is moved", || aside.exists());
    run.signal(nix::sys::signal::Signal::SIGTERM);
    run.finish();
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{}");
}

#[test]
fn nothing_goes_on_in_a_suspended_launch_that_nobody_guards() {
    let place = repository();
    let mut command = place.command("bash");
    command.args(["--norc", "--noprofile", "-i"]);
    command.env("PS1", "PROMPT> ").env("PF", program());
    let mut shell = Pane::new(&command, &size(100, 30));
    shell.expect("PROMPT> ");
    // Something in the background of a command that stops itself.
    let script = "setsid sh -c \"while :; do echo x >> ticks; sleep 0.05; test -e late && echo x > .envrc; done\" & \
        sleep 0.3; kill -STOP $$; echo back; sleep 1";
    shell.write(format!("\"$PF\" run -- sh -c '{script}'\n").as_bytes());
    shell.expect("Stopped");
    shell.expect("PROMPT> ");
    let ticks = || std::fs::metadata(place.work.join("ticks")).map_or(0, |ticks| ticks.len());
    let before = ticks();
    assert!(before > 0, "it ran before");
    std::fs::write(place.work.join("late"), "").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert_eq!(ticks(), before, "it stands still");
    assert!(!place.work.join(".envrc").exists());
    shell.write(b"fg\n");
    shell.expect("back");
    eventually("it goes on", || ticks() > before);
    eventually("and is guarded", || {
        place.work.join(".envrc.refused-by-pinfold").exists()
    });
    shell.expect("PROMPT> ");
    shell.write(b"exit\n");
    shell.finish();
}
