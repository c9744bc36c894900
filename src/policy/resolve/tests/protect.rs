//! What is protected inside a grant, above all what git runs.

use super::*;

#[test]
fn pins_the_ancestors_of_what_is_protected_and_only_reports_what_is_absent() {
    let host = MemoryHost::debian()
        .dir("/home/ann/p/.vscode")
        .file("/home/ann/p/.git/info/attributes", "");
    let policy = rooted(&host, ROOT).unwrap();
    let git = abs("/home/ann/p/.git");
    assert_eq!(
        protected(&policy, "/home/ann/p/.git/hooks").unwrap().pins,
        std::slice::from_ref(&git)
    );
    assert_eq!(
        protected(&policy, "/home/ann/p/.git/info/attributes").unwrap().pins,
        [git, abs("/home/ann/p/.git/info")]
    );
    assert_eq!(protected(&policy, "/home/ann/p/.vscode").unwrap().pins, []);
    let absent = protected(&policy, "/home/ann/p/.envrc").unwrap();
    assert_eq!((absent.kind, absent.pins.len()), (None, 0));
}

#[test]
fn protects_what_a_link_leads_to_and_reports_the_link() {
    let host = MemoryHost::debian()
        .without("/home/ann/p/.git/hooks")
        .dir("/home/ann/p/tools/hooks")
        .link("/home/ann/p/.git/hooks", "../tools/hooks")
        .link("/home/ann/p/.claude", "/home/ann/dotfiles/claude")
        .dir("/home/ann/dotfiles/claude");
    let policy = rooted(&host, ROOT).unwrap();
    assert_eq!(
        protected(&policy, "/home/ann/p/.git/hooks").unwrap().kind,
        Some(FileKind::Link)
    );
    let held = protected(&policy, "/home/ann/p/tools/hooks").unwrap();
    assert_eq!(
        (held.kind, held.pins.as_slice()),
        (Some(FileKind::Dir), [abs("/home/ann/p/tools")].as_slice())
    );
    assert_eq!(
        protected(&policy, "/home/ann/p/.claude").unwrap().kind,
        Some(FileKind::Link)
    );
    assert!(
        !policy
            .protected
            .iter()
            .any(|one| one.path.is_within(&abs("/home/ann/dotfiles"))),
        "not granted, so not reachable"
    );
}

#[test]
fn protects_the_hooks_folder_that_git_is_configured_for() {
    for (config, path, kind) in [
        (
            "[core]\nhooksPath = build/hooks\n",
            "/home/ann/p/build/hooks",
            Some(FileKind::Dir),
        ),
        (
            "[core]\nhooksPath = ~/p/build/hooks\n",
            "/home/ann/p/build/hooks",
            Some(FileKind::Dir),
        ),
        ("[core]\nhooksPath = /home/ann/p/absent\n", "/home/ann/p/absent", None),
    ] {
        let host = MemoryHost::debian()
            .file("/home/ann/p/.git/config", config)
            .dir("/home/ann/p/build/hooks");
        let policy = rooted(&host, ROOT).unwrap();
        assert_eq!(protected(&policy, path).unwrap().kind, kind, "{config}");
    }
    let host = MemoryHost::debian().file("/home/ann/p/.git/config", "[core]\nhooksPath = .\n");
    let policy = rooted(&host, ROOT).unwrap();
    assert!(policy.notes.iter().any(|note| note.text.starts_with("not protected")));
}

/// `/home/ann/p` as a linked worktree of `/home/ann/main`.
fn worktree() -> MemoryHost {
    MemoryHost::debian()
        .without("/home/ann/p/.git")
        .file("/home/ann/p/.git", "gitdir: /home/ann/main/.git/worktrees/p\n")
        .file("/home/ann/main/.git/worktrees/p/gitdir", "/home/ann/p/.git\n")
        .file("/home/ann/main/.git/worktrees/p/commondir", "../..\n")
        .file("/home/ann/main/.git/HEAD", "ref: refs/heads/main\n")
        .file("/home/ann/main/.git/config", "[core]\nhooksPath = .hooks\n")
        .dir("/home/ann/main/.git/hooks")
        .dir("/home/ann/main/.git/objects")
        .dir("/home/ann/main/.git/refs")
        .dir("/home/ann/p/.hooks")
}

#[test]
fn a_linked_worktree_can_commit_and_cannot_touch_hooks_or_config() {
    let policy = rooted(&worktree(), ROOT).unwrap();
    let access = |path: &str| bind(&policy, path).map(|bind| bind.access);
    assert_eq!(access("/home/ann/main/.git"), Some(Access::Read));
    for path in ["objects", "refs", "worktrees/p"] {
        assert_eq!(
            access(&format!("/home/ann/main/.git/{path}")),
            Some(Access::ReadWrite),
            "{path}"
        );
    }
    for path in [
        "/home/ann/p/.git",
        "/home/ann/main/.git/worktrees/p/commondir",
        "/home/ann/main/.git/worktrees/p/gitdir",
        "/home/ann/p/.hooks",
    ] {
        assert!(protected(&policy, path).is_some_and(|one| one.kind.is_some()), "{path}");
    }
    let answer = |path: &str| why(&policy, &Question::Path(abs(path))).verdict;
    assert_eq!(
        answer("/home/ann/main/.git/hooks/pre-commit"),
        crate::policy::Verdict::Read
    );
    assert_eq!(answer("/home/ann/main/src"), crate::policy::Verdict::Private);
    assert!(bind(&policy, "/home/ann/main").is_none());
}

#[test]
fn a_forged_pointer_widens_nothing() {
    let gitdir = "/home/ann/main/.git/worktrees/p/gitdir";
    let common = "/home/ann/main/.git/worktrees/p/commondir";
    let elsewhere = MemoryHost::debian()
        .without("/home/ann/p/.git")
        .file("/home/ann/.ssh/HEAD", "")
        .dir("/home/ann/.ssh/objects")
        .dir("/home/ann/.ssh/refs");
    for (name, host) in [
        (
            "the back pointer names another checkout",
            worktree()
                .file(gitdir, "/home/ann/other/.git\n")
                .file("/home/ann/other/.git", ""),
        ),
        ("there is no back pointer", worktree().without(gitdir)),
        (
            "the common folder is another",
            worktree().file(common, "/home/ann/.ssh\n"),
        ),
        ("there is no common folder", worktree().without(common)),
        (
            "the common folder is no git folder",
            worktree().without("/home/ann/main/.git/HEAD"),
        ),
        (
            "not a pointer",
            worktree().file("/home/ann/p/.git", "/home/ann/main/.git/worktrees/p\n"),
        ),
        (
            "a link",
            worktree()
                .without("/home/ann/p/.git")
                .link("/home/ann/p/.git", "/home/ann/main/.git"),
        ),
        (
            "a plain folder",
            elsewhere.clone().file("/home/ann/p/.git", "gitdir: /home/ann/.ssh\n"),
        ),
        (
            "a folder that is never writable",
            elsewhere
                .file("/home/ann/p/.git", "gitdir: /home/ann/.ssh/worktrees/p\n")
                .file("/home/ann/.ssh/worktrees/p/gitdir", "/home/ann/p/.git")
                .file("/home/ann/.ssh/worktrees/p/commondir", "../.."),
        ),
    ] {
        let policy = rooted(&host, ROOT).unwrap();
        let outside = policy
            .binds
            .iter()
            .find(|bind| bind.target.is_within(&abs("/home/ann")) && !bind.target.is_within(&abs(ROOT)));
        assert_eq!(outside, None, "{name}");
        assert!(policy.notes.iter().any(|note| note.subject == ".git"), "{name}");
    }
    assert!(
        rooted(&worktree(), ROOT)
            .unwrap()
            .binds
            .iter()
            .any(|bind| bind.target == abs("/home/ann/main/.git")),
        "control"
    );
}

#[test]
fn protects_a_git_folder_that_lies_elsewhere_in_the_workspace() {
    let host = MemoryHost::debian()
        .without("/home/ann/p/.git")
        .file("/home/ann/p/.git", "gitdir: ./.bare\n")
        .dir("/home/ann/p/.bare/hooks")
        .file("/home/ann/p/.bare/config", "");
    let policy = rooted(&host, ROOT).unwrap();
    for path in [
        "/home/ann/p/.git",
        "/home/ann/p/.bare/hooks",
        "/home/ann/p/.bare/config",
    ] {
        assert!(protected(&policy, path).is_some_and(|one| one.kind.is_some()), "{path}");
    }
}

#[test]
fn protects_the_program_itself_in_its_own_workspace() {
    let host = MemoryHost::debian().file("/home/ann/p/target/debug/pinfold", "");
    let request = Request {
        own_program: Some(PathBuf::from("/home/ann/p/target/debug/pinfold")),
        ..request()
    };
    let policy = resolve(&shipped("default"), &request, &host).unwrap();
    assert_eq!(
        protected(&policy, "/home/ann/p/target/debug/pinfold")
            .unwrap()
            .pins
            .len(),
        2
    );
}

#[test]
fn where_no_repository_is_making_one_is_ordinary_work_and_only_told() {
    let appearing = |host: &MemoryHost, path: &str| {
        let policy = rooted(host, ROOT).unwrap();
        let found = protected(&policy, path).map(|one| (one.kind, one.appearing));
        found.unwrap()
    };
    let without = MemoryHost::debian().without("/home/ann/p/.git");
    let hooks = "/home/ann/p/.git/hooks";
    assert_eq!(appearing(&without, hooks), (None, Appearing::Reported));
    assert_eq!(appearing(&without, "/home/ann/p/.envrc"), (None, Appearing::Refused));
    assert_eq!(
        appearing(&without, "/home/ann/p/.tool-versions"),
        (None, Appearing::Reported)
    );
    let no_hooks = MemoryHost::debian().without(hooks);
    assert_eq!(appearing(&no_hooks, hooks), (None, Appearing::Refused));
}

#[test]
fn submodules_are_found_below_the_modules_folder_whatever_their_names_and_up_to_a_bound() {
    let module = |host: MemoryHost, name: &str| {
        let at = format!("/home/ann/p/.git/modules/{name}");
        host.file(&format!("{at}/HEAD"), "")
            .file(
                &format!("{at}/config"),
                "[core]\nworktree = ../../../x\nhooksPath = tools\n",
            )
            .dir(&format!("{at}/objects"))
            .dir(&format!("{at}/refs"))
    };
    let host = ["a", "lib/deep/b", "a/modules/inner"]
        .into_iter()
        .fold(MemoryHost::debian(), module);
    let policy = rooted(&host, ROOT).unwrap();
    for name in ["a", "lib/deep/b", "a/modules/inner"] {
        let config = format!("/home/ann/p/.git/modules/{name}/config");
        assert!(
            protected(&policy, &config).is_some_and(|one| one.kind.is_some()),
            "{name}"
        );
        let hooks = format!("/home/ann/p/.git/modules/{name}/hooks");
        assert!(
            protected(&policy, &hooks).is_some_and(|one| one.kind.is_none()),
            "{name}"
        );
    }
    let many = (0..100).fold(MemoryHost::debian(), |host, number| module(host, &format!("m{number}")));
    let policy = rooted(&many, ROOT).unwrap();
    let configs = policy
        .protected
        .iter()
        .filter(|one| one.path.to_string().ends_with("/config"));
    assert_eq!(configs.count(), 65);
    assert!(
        policy
            .notes
            .iter()
            .any(|note| note.text.contains("beyond the first 64"))
    );
}
