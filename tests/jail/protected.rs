//! P2: what the host later runs or trusts inside the workspace cannot be changed, made, replaced or reached around.

use crate::harness::{Attempt, Verdict};
use crate::mode::only_in_full;
use crate::place::{Place, finish};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

/// A mount point that is read-only answers with one of these, and the folders above it that are held with EBUSY.
const HELD: &[&str] = &["EROFS", "EBUSY", "EXDEV", "EACCES", "EPERM"];

/// A workspace with a repository, hooks, an editor's settings, and an ordinary folder beside them.
pub fn repository() -> Place {
    let place = Place::new();
    git(&place, &["init", "-q", "-b", "main"]);
    std::fs::write(place.work.join("file"), "one\n").unwrap();
    git(&place, &["add", "file"]);
    git(&place, &["commit", "-q", "-m", "first"]);
    let hook = place.work.join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir_all(place.work.join(".git/info")).unwrap();
    std::fs::write(place.work.join(".git/info/attributes"), "").unwrap();
    std::fs::create_dir(place.work.join(".vscode")).unwrap();
    std::fs::write(place.work.join(".vscode/tasks.json"), "{}").unwrap();
    std::fs::write(place.work.join(".mcp.json"), "{}").unwrap();
    place
}

/// git on the host, with an identity of its own.
pub fn git(place: &Place, arguments: &[&str]) -> String {
    let mut command = place.command("git");
    command
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"])
        .args(arguments);
    finish(&mut command).expect(0).out()
}

fn held(bodies: &[&str]) {
    for body in bodies {
        let place = repository();
        let attempt = Attempt::python(body).with(nix::libc::SYS_renameat2.to_string());
        let verdict = place.compare(&attempt, &[], &attempt, HELD);
        assert_eq!(verdict, Verdict::Held, "{body}");
    }
}

#[test]
fn hooks_cannot_be_written_made_or_removed() {
    held(&[
        "open('.git/hooks/pre-commit', 'a').write('x')",
        "open('.git/hooks/pre-commit', 'r+')",
        "os.truncate('.git/hooks/pre-commit', 0)",
        "os.chmod('.git/hooks/pre-commit', 0o644)",
        "os.fchmod(os.open('.git/hooks/pre-commit', os.O_RDONLY), 0o600)",
        "os.chmod('pre-commit', 0o600, dir_fd=os.open('.git/hooks', os.O_RDONLY))",
        "os.unlink('.git/hooks/pre-commit')",
        "open('.git/hooks/post-checkout', 'w')",
        "os.mkdir('.git/hooks/folder')",
        "os.symlink('/bin/sh', '.git/hooks/post-merge')",
        "os.mkfifo('.git/hooks/fifo')",
        "os.chmod('.git/hooks', 0o777)",
        "os.open('.git/hooks', os.O_TMPFILE | os.O_RDWR, 0o700)",
    ]);
    only_in_full!("what is not granted can be looked at: stat, access, times, owner, extended attributes");
    held(&["os.utime('.git/hooks/pre-commit', (1, 1))"]);
}

#[test]
fn nothing_is_moved_or_linked_into_or_out_of_the_hooks() {
    held(&[
        "open('.git/x', 'w'); os.rename('.git/x', '.git/hooks/pre-commit')",
        "open('x', 'w'); os.rename('x', '.git/hooks/post-merge')",
        "open('x', 'w'); os.link('x', '.git/hooks/post-merge')",
        "os.rename('.git/hooks/pre-commit', 'x')",
        "open('x', 'w'); call(int(argv[1]), -100, b'x', -100, b'.git/hooks/pre-commit', 2)",
        "os.mkdir('d'); call(int(argv[1]), -100, b'd', -100, b'.git/hooks', 2)",
        "os.rename('.git/hooks', '.git/old')",
        "os.mkdir('d'); [os.unlink('.git/hooks/' + n) for n in os.listdir('.git/hooks')]; os.rename('d', '.git/hooks')",
        "os.link('.git/hooks/pre-commit', 'alias')",
    ]);
}

#[test]
fn a_folder_above_something_protected_is_not_moved_away() {
    held(&[
        "os.rename('.git', 'git'); os.makedirs('.git/hooks')",
        "os.mkdir('d'); call(int(argv[1]), -100, b'd', -100, b'.git', 2)",
        "os.rename('.vscode', 'v')",
        "os.rename('.mcp.json', 'm')",
        "open('x', 'w'); os.rename('x', '.mcp.json')",
        "os.rename('.git/info/attributes', 'x')",
        "os.rename('.git/info', '.git/infos')",
        "os.unlink('.mcp.json')",
    ]);
}

#[test]
fn the_configuration_cannot_be_changed() {
    held(&[
        "open('.git/config', 'a').write('[core]\\n')",
        "os.truncate('.git/config', 0)",
        "os.unlink('.git/config')",
        "open('.git/config.lock', 'w').write('[alias] x = !id'); os.rename('.git/config.lock', '.git/config')",
        "open('.git/info/attributes', 'a')",
        "open('.vscode/tasks.json', 'w')",
        "open('.vscode/launch.json', 'w')",
        "open('.mcp.json', 'a')",
        "subprocess.run(['git', 'config', 'core.hooksPath', '/tmp'], stderr=2).returncode == 0 or deny('EBUSY')",
        "subprocess.run(['git', 'config', '--unset', 'core.bare'], stderr=2).returncode == 0 or deny('EBUSY')",
    ]);
}

#[test]
fn removing_the_repository_leaves_what_is_protected() {
    only_in_full!("beside something protected nothing can be made, moved or removed");
    let place = repository();
    let before = ["config", "hooks/pre-commit"].map(|name| std::fs::read(place.work.join(".git").join(name)).unwrap());
    let ended = finish(&mut place.sh(&[], "rm -rf .git .vscode .mcp.json"));
    assert_ne!(ended.code(), 0);
    let lost = place.work.join(".git/objects");
    assert!(
        !lost.exists() && ended.err().contains(lost.to_str().unwrap()),
        "{}",
        ended.err()
    );
    let after = ["config", "hooks/pre-commit"].map(|name| std::fs::read(place.work.join(".git").join(name)).unwrap());
    assert_eq!(before, after);
    assert!(place.work.join(".vscode/tasks.json").exists() && place.work.join(".mcp.json").exists());
    finish(place.command("rm").args(["-rf", ".git", ".vscode", ".mcp.json"])).expect(0);
    assert!(!place.work.join(".git").exists());
}

#[test]
fn the_hooks_folder_that_git_really_uses_is_protected() {
    let fresh = || {
        let place = repository();
        std::fs::create_dir_all(place.work.join("tools/git-hooks")).unwrap();
        git(&place, &["config", "core.hooksPath", "tools/git-hooks"]);
        place
    };
    for body in [
        "open('tools/git-hooks/pre-commit', 'w')",
        "os.rename('tools', 'elsewhere')",
        "os.rename('tools/git-hooks', 'tools/elsewhere')",
        "os.rmdir('tools/git-hooks')",
    ] {
        let place = fresh();
        place.denies(&[], &Attempt::python(body), HELD);
    }
    only_in_full!("beside something protected nothing can be made, moved or removed");
    fresh().allows(&[], &Attempt::python("open('tools/other', 'w')"));
}

#[test]
fn a_forged_git_file_widens_nothing() {
    let place = repository();
    let other = repository();
    let victim = other.work.join(".git");
    std::fs::rename(place.work.join(".git"), place.path().join("away")).unwrap();
    let forged = place.work.join(".git");
    std::fs::write(&forged, format!("gitdir: {}\n", victim.display())).unwrap();
    let read = Attempt::python("open(argv[1]).read()").with(victim.join("config"));
    place.denies(&[], &read, &["ENOENT", "EACCES"]);
    std::fs::remove_file(&forged).unwrap();
    symlink(&victim, &forged).unwrap();
    place.denies(&[], &read, &["ENOENT", "EACCES"]);
}

/// A name, and what makes such a `.git`.
type Odd = (&'static str, fn(&Path));

#[test]
fn odd_git_folders_do_not_stop_a_launch() {
    let odd: [Odd; 7] = [
        ("a dangling link", |git| symlink("nowhere", git).unwrap()),
        ("a loop", |git| symlink(".git", git).unwrap()),
        ("an empty file", |git| std::fs::write(git, "").unwrap()),
        ("a pointer to nothing", |git| {
            std::fs::write(git, "gitdir: /nowhere\n").unwrap()
        }),
        ("hooks by a link", |git| {
            std::fs::create_dir_all(git.join("real")).unwrap();
            symlink("real", git.join("hooks")).unwrap();
        }),
        ("hooks as a file", |git| {
            std::fs::create_dir(git).unwrap();
            std::fs::write(git.join("hooks"), "").unwrap();
        }),
        ("not even a config", |git| std::fs::create_dir(git).unwrap()),
    ];
    for (name, make) in odd {
        let place = Place::new();
        make(&place.work.join(".git"));
        let before = crate::ghosts::listing(&place.work);
        let ended = finish(&mut place.run::<&str, _>(&[], &["true"]));
        assert_eq!(ended.code(), 0, "{name}: {}", ended.err());
        assert_eq!(before, crate::ghosts::listing(&place.work), "{name}");
    }
}

#[test]
fn hooks_by_a_link_are_protected_where_they_are() {
    let place = repository();
    std::fs::rename(place.work.join(".git/hooks"), place.work.join("scripts")).unwrap();
    symlink("../scripts", place.work.join(".git/hooks")).unwrap();
    place.denies(&[], &Attempt::python("open('.git/hooks/post-merge', 'w')"), HELD);
    let place = repository();
    std::fs::rename(place.work.join(".git/hooks"), place.work.join("scripts")).unwrap();
    symlink("../scripts", place.work.join(".git/hooks")).unwrap();
    place.denies(&[], &Attempt::python("open('scripts/post-merge', 'w')"), HELD);
}
