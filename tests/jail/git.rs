//! git works inside, in a repository, in an empty folder, in a linked worktree, and for a clone.

use crate::mode::only_in_full;
use crate::place::{Place, finish};
use crate::protected::{git, repository};

/// git as a person inside would call it.
const PRELUDE: &str = "set -e; git() { command git -c user.name=Bob -c user.email=bob@example.org \"$@\"; }; ";

fn inside(place: &Place, options: &[&str], script: &str) -> String {
    finish(&mut place.sh(options, &format!("{PRELUDE}{script}")))
        .expect(0)
        .out()
}

#[test]
fn daily_work_with_a_repository() {
    only_in_full!("a repository cannot be written where something in it is protected");
    let place = repository();
    let script = "
echo two >> file; git add file; git commit -qm second
git checkout -qb topic; echo three > other; git add other; git commit -qm third
git checkout -q main; echo four > main-only; git add main-only; git commit -qm fourth
git checkout -q topic; git rebase -q main
echo wip >> file; git stash -q; git stash pop -q; git checkout -q file
git branch renamed; git tag v1; git log --format=%s; git gc -q; git fsck >/dev/null 2>&1";
    let out = inside(&place, &[], script);
    assert_eq!(out, "third\nfourth\nsecond\nfirst\n");
    let status = git(&place, &["status", "--porcelain"]);
    assert_eq!(status, "?? .mcp.json\n?? .vscode/\n");
    assert_eq!(git(&place, &["log", "-1", "--format=%an %s", "renamed"]), "Bob third\n");
}

#[test]
fn the_top_level_is_the_same_inside_and_outside() {
    let place = repository();
    let sub = place.work.join("sub");
    std::fs::create_dir(&sub).unwrap();
    let mut command = place.run::<&str, _>(&[], &["git", "rev-parse", "--show-toplevel"]);
    let seen = finish(command.current_dir(&sub)).expect(0).out();
    assert_eq!(seen, git(&place, &["rev-parse", "--show-toplevel"]));
    let mut command = place.run::<&str, _>(&[], &["pwd"]);
    assert_eq!(
        finish(command.current_dir(&sub)).expect(0).out(),
        format!("{}\n", sub.display())
    );
}

#[test]
fn a_new_repository_in_an_empty_folder() {
    let place = Place::new();
    inside(
        &place,
        &[],
        "git init -q; echo x > a; git add a; git commit -qm one; git status --porcelain",
    );
    assert_eq!(git(&place, &["log", "--format=%s"]), "one\n");
}

#[test]
fn a_clone_of_a_local_repository() {
    let place = repository();
    let other = Place::new();
    let source = place.work.to_str().unwrap();
    let script =
        format!("git clone -q {source} copy; cd copy; git log --format=%s; echo y > y; git add y; git commit -qm more");
    assert_eq!(inside(&other, &["--read", source], &script), "first\n");
    only_in_full!("a repository cannot be written where something in it is protected");
    let script = "git clone -q . copy; git -C copy log --format=%s";
    assert_eq!(inside(&place, &[], script), "first\n");
}

#[test]
fn a_linked_worktree_can_commit() {
    only_in_full!("a repository cannot be written where something in it is protected");
    let place = repository();
    let tree = place.path().join("tree");
    git(
        &place,
        &["worktree", "add", "-q", "-b", "topic", tree.to_str().unwrap()],
    );
    let script = format!("{PRELUDE}echo x > new; git add new; git commit -qm linked; git status --porcelain");
    let mut command = place.sh(&[], &script);
    assert_eq!(finish(command.current_dir(&tree)).expect(0).out(), "");
    assert_eq!(git(&place, &["log", "-1", "--format=%s", "topic"]), "linked\n");
    for body in [
        "echo x >> ../garden/.git/config",
        "echo x > ../garden/.git/hooks/post-merge",
        "cat ../garden/file",
    ] {
        let mut command = place.sh(&[], &format!("{body} 2>/dev/null"));
        assert_ne!(finish(command.current_dir(&tree)).code(), 0, "{body}");
    }
    // The other checkout is not there: what is written at its place stays in memory.
    let mut command = place.sh(&[], "echo x > ../garden/file");
    finish(command.current_dir(&tree)).expect(0);
    assert_eq!(std::fs::read(place.work.join("file")).unwrap(), b"one\n");
}

#[test]
fn a_repository_with_worktree_settings_works() {
    only_in_full!("a repository cannot be written where something in it is protected");
    let place = repository();
    git(&place, &["config", "extensions.worktreeConfig", "true"]);
    git(&place, &["config", "--worktree", "core.fileMode", "false"]);
    inside(
        &place,
        &[],
        "git status --porcelain; echo x > y; git add y; git commit -qm y",
    );
}
