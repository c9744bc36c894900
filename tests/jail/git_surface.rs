//! Everything that git on the host runs, or takes its programs from, wherever git's own files put it.

use crate::harness::{Attempt, Verdict};
use crate::place::{Place, finish};
use crate::protected::{git, repository};
use std::os::unix::fs::symlink;

const HELD: &[&str] = &["EROFS", "EBUSY", "EXDEV", "EACCES", "EPERM"];

fn held(fresh: impl Fn() -> Place, bodies: &[&str]) {
    for body in bodies {
        let place = fresh();
        let attempt = Attempt::python(body);
        assert_eq!(place.compare(&attempt, &[], &attempt, HELD), Verdict::Held, "{body}");
    }
}

#[test]
fn an_included_file_and_the_hooks_folder_that_it_names() {
    let fresh = || {
        let place = repository();
        git(&place, &["config", "include.path", "../team.gitconfig"]);
        std::fs::create_dir_all(place.work.join("team/hooks")).unwrap();
        std::fs::write(place.work.join("team.gitconfig"), "[core]\nhooksPath = team/hooks\n").unwrap();
        place
    };
    held(
        fresh,
        &[
            "open('team.gitconfig', 'a').write('[alias] x = !id')",
            "os.rename('team.gitconfig', 'x')",
            "open('team/hooks/pre-commit', 'w')",
            "os.rename('team', 'x')",
        ],
    );
    fresh().allows(&[], &Attempt::python("open('team/other', 'w')"));
}

#[test]
fn a_program_that_the_configuration_names() {
    let fresh = || {
        let place = repository();
        for (key, value) in [
            ("core.fsmonitor", "tools/monitor"),
            ("filter.x.clean", "python3 tools/clean.py %f"),
        ] {
            git(&place, &["config", key, value]);
        }
        std::fs::create_dir(place.work.join("tools")).unwrap();
        for name in ["monitor", "clean.py", "other.py"] {
            std::fs::write(place.work.join("tools").join(name), "").unwrap();
        }
        place
    };
    held(
        fresh,
        &[
            "open('tools/monitor', 'w')",
            "open('tools/clean.py', 'w')",
            "open('x', 'w'); os.rename('x', 'tools/clean.py')",
        ],
    );
    fresh().allows(
        &[],
        &Attempt::python("open('tools/other.py', 'w'); open('.gitattributes', 'w').write('* filter=x')"),
    );
}

#[test]
fn what_a_hook_leads_to() {
    let fresh = || {
        let place = repository();
        std::fs::create_dir(place.work.join("scripts")).unwrap();
        std::fs::write(place.work.join("scripts/check"), "").unwrap();
        symlink("../../scripts/check", place.work.join(".git/hooks/post-merge")).unwrap();
        place
    };
    held(
        fresh,
        &[
            "open('scripts/check', 'w')",
            "os.rename('scripts', 'x')",
            "os.unlink('scripts/check')",
        ],
    );
    fresh().allows(&[], &Attempt::python("open('scripts/other', 'w')"));
}

#[test]
fn the_git_folders_of_submodules() {
    let fresh = || {
        let (place, other) = (repository(), repository());
        let from = other.work.to_str().unwrap();
        git(
            &place,
            &[
                "-c",
                "protocol.file.allow=always",
                "submodule",
                "add",
                "-q",
                from,
                "lib/sub",
            ],
        );
        git(&place, &["commit", "-q", "-m", "sub"]);
        place
    };
    held(
        fresh,
        &[
            "open('.git/modules/lib/sub/config', 'a').write('[core] fsmonitor = x')",
            "open('.git/modules/lib/sub/hooks/post-checkout', 'w')",
            "open('lib/sub/.git', 'w').write('gitdir: ../x')",
            "os.rename('lib/sub', 'x')",
        ],
    );
    let place = fresh();
    let script = "
set -e; cd lib/sub; echo x > new; git add new
git -c user.name=B -c user.email=b@e commit -qm inside; git log --format=%s -1; cd ../..; git status --porcelain -uno";
    assert_eq!(
        finish(&mut place.sh(&[], script)).expect(0).out(),
        "inside\n M lib/sub\n"
    );
}

/// `garden` as a folder that holds a bare git folder and a checkout of it.
fn bare_layout() -> Place {
    let place = repository();
    let work = place.work.to_str().unwrap().to_owned();
    git(&place, &["clone", "-q", "--bare", &work, ".bare"]);
    std::fs::remove_dir_all(place.work.join(".git")).unwrap();
    std::fs::write(place.work.join(".git"), "gitdir: ./.bare\n").unwrap();
    git(&place, &["worktree", "add", "-q", "tree", "main"]);
    place
}

#[test]
fn a_bare_git_folder_and_its_checkouts() {
    held(
        bare_layout,
        &[
            "open('.bare/config', 'a').write('[core]')",
            "open('.bare/hooks/post-checkout', 'w')",
            "open('.git', 'w').write('gitdir: ./x')",
            "open('.bare/worktrees/tree/commondir', 'w').write('../../../x')",
            "open('.bare/worktrees/tree/gitdir', 'w').write('/x')",
        ],
    );
    let place = bare_layout();
    let script = "
set -e; cd tree; echo x > new; git add new
git -c user.name=B -c user.email=b@e commit -qm in-tree; git log --format=%s -1 main";
    assert_eq!(finish(&mut place.sh(&[], script)).expect(0).out(), "in-tree\n");
}

#[test]
fn a_repository_that_is_the_workspace_itself() {
    let fresh = || {
        let place = Place::new();
        git(&place, &["init", "-q", "--bare", "."]);
        place
    };
    held(
        fresh,
        &["open('config', 'a').write('[core]')", "open('hooks/update', 'w')"],
    );
    // A project whose own folders have these names is none.
    let place = Place::new();
    for name in ["config", "hooks"] {
        std::fs::create_dir(place.work.join(name)).unwrap();
    }
    std::fs::write(place.work.join("HEAD"), "").unwrap();
    place.allows(
        &[],
        &Attempt::python("open('config/x', 'w'); open('hooks/x', 'w'); open('HEAD', 'w')"),
    );
}

#[test]
fn pointers_of_checkouts_are_held_and_a_forged_one_gains_nothing() {
    let fresh = || {
        let place = repository();
        git(&place, &["worktree", "add", "-q", "../tree"]);
        place
    };
    held(
        fresh,
        &[
            "open('.git/worktrees/tree/commondir', 'w').write('../../../evil')",
            "open('.git/worktrees/tree/gitdir', 'w').write('/x')",
            "os.rename('.git/worktrees/tree', 'x')",
            "os.rename('.git/worktrees', 'x')",
        ],
    );
    // A new one is ordinary work; one that points elsewhere is told, and no launch is widened by it.
    let (place, victim) = (fresh(), repository());
    let target = victim.work.join(".git");
    let script = format!(
        "mkdir .git/worktrees/evil; cd .git/worktrees/evil; echo {0} > commondir; echo {0} > gitdir; cp ../../HEAD .",
        target.display()
    );
    let ended = finish(&mut place.sh(&[], &script)).expect(0);
    assert!(ended.err().contains("worktrees/evil/commondir"), "{}", ended.err());
    let read = Attempt::python("open(argv[1]).read()").with(target.join("config"));
    place.denies(&[], &read, &["ENOENT", "EACCES"]);
}
