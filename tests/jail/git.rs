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

#[test]
fn a_checkout_can_be_made_and_removed() {
    only_in_full!("a repository cannot be written where something in it is protected");
    let place = repository();
    let script = "
git worktree add -q -b topic trees/topic; cd trees/topic; echo x > new; git add new; git commit -qm there; cd ../..
git log -1 --format=%s topic; git worktree list | wc -l; git pack-refs --all; git gc -q; git fsck > /dev/null 2>&1
git worktree remove --force trees/topic; git worktree list | wc -l";
    assert_eq!(inside(&place, &[], script), "there\n2\n1\n");
    assert_eq!(git(&place, &["log", "-1", "--format=%s", "topic"]), "there\n");
}

#[test]
fn a_sparse_checkout_that_is_configured_can_be_changed() {
    only_in_full!("a repository cannot be written where something in it is protected");
    let place = repository();
    for folder in ["one", "two"] {
        std::fs::create_dir(place.work.join(folder)).unwrap();
        std::fs::write(place.work.join(folder).join("x"), "").unwrap();
    }
    git(&place, &["add", "one", "two"]);
    git(&place, &["commit", "-q", "-m", "folders"]);
    git(&place, &["sparse-checkout", "set", "one"]);
    let script =
        "echo two > .git/info/sparse-checkout; git read-tree -mu HEAD 2>/dev/null || true; git status -s -uno; ls";
    let out = inside(&place, &[], script);
    assert!(!out.contains("one"), "{out}");
    assert_eq!(
        inside(
            &place,
            &[],
            "git sparse-checkout list > /dev/null; git status -s -uno; echo fine"
        ),
        "fine\n"
    );
}

#[test]
fn what_changes_the_configuration_fails_and_the_reason_is_told_after_exit() {
    only_in_full!("a repository cannot be written where something in it is protected");
    for script in [
        "git config user.name Eve",
        "git remote add origin https://code.example/x",
        "git branch -q topic; git branch -q --set-upstream-to=main topic",
        "git config --unset core.bare",
        "git clone -q . copy; git -c protocol.file.allow=always submodule --quiet add ./copy sub",
        "git init -q --bare copy.git; git push -q -u ./copy.git main",
    ] {
        let place = repository();
        let ended = finish(&mut place.sh(&[], &format!("git config --list > /dev/null || exit 50; {script}")));
        assert!(!matches!(ended.code(), 50), "{script}");
        let told = ended.err();
        let lines: Vec<_> = told.lines().filter(|line| line.contains("tried to change")).collect();
        assert_eq!(lines.len(), 1, "{script}: {told}");
        assert!(
            lines[0].contains(".git/config") && lines[0].contains("outside"),
            "{script}: {told}"
        );
        // The control: outside the same goes through, and nobody explains anything.
        let control = finish(place.command("sh").args(["-c", script]));
        assert!(!control.err().contains("tried to change"), "{script}");
    }
}

#[test]
fn reading_and_committing_explains_nothing() {
    only_in_full!("a repository cannot be written where something in it is protected");
    let place = repository();
    let script =
        format!("{PRELUDE}git status; git log; echo x > y; git add y; git commit -qm y; git config --get core.bare");
    assert_eq!(finish(&mut place.sh(&[], &script)).expect(0).err(), "");
}
