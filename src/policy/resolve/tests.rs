//! Golden policies and refusals over an in-memory host.

use super::*;
use crate::base::{Explain as _, Kind, Port};
use crate::policy::frozen::{Bind, Protected, Topic};
use crate::policy::memory::MemoryHost;
use crate::policy::{Question, explain, load, why};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const ROOT: &str = "/home/ann/p";

fn request() -> Request {
    let own = [
        "/home/ann/.config/pinfold",
        "/home/ann/.local/state/pinfold",
        "/home/ann/.local/share/pinfold",
    ];
    Request {
        root: Some(PathBuf::from(ROOT)),
        workdir: PathBuf::from(ROOT),
        own_folders: own.iter().map(PathBuf::from).collect(),
        ..Request::default()
    }
}

fn profile(host: &MemoryHost, text: &str) -> Profile {
    let host = host.clone().file("/profiles/mine.json", text);
    load("mine", &[PathBuf::from("/profiles")], &host).unwrap()
}

fn shipped(name: &str) -> Profile {
    load(name, &[], &MemoryHost::default()).unwrap()
}

fn with(host: &MemoryHost, text: &str) -> Result<Policy, ResolveError> {
    resolve(&profile(host, text), &request(), host)
}

fn rooted(host: &MemoryHost, root: &str) -> Result<Policy, ResolveError> {
    let request = Request {
        root: Some(PathBuf::from(root)),
        workdir: PathBuf::from(root),
        ..request()
    };
    resolve(&shipped("default"), &request, host)
}

fn granted(host: &MemoryHost, path: &str, access: Access) -> Result<Policy, ResolveError> {
    let grant = CommandGrant {
        flag: "--allow".to_owned(),
        path: PathBuf::from(path),
        access,
    };
    resolve(
        &shipped("default"),
        &Request {
            grants: vec![grant],
            ..request()
        },
        host,
    )
}

fn abs(path: &str) -> AbsPath {
    AbsPath::new(path).unwrap()
}

fn bind<'a>(policy: &'a Policy, target: &str) -> Option<&'a Bind> {
    policy.binds.iter().find(|bind| bind.target == abs(target))
}

fn protected<'a>(policy: &'a Policy, path: &str) -> Option<&'a Protected> {
    policy.protected.iter().find(|one| one.path == abs(path))
}

/// Everything that is enforced, in a text that a person can review.
fn golden(policy: &Policy) -> String {
    let mut text = explain(policy).to_string();
    text += "\npins\n";
    for one in policy.protected.iter().filter(|one| !one.pins.is_empty()) {
        let pins: Vec<String> = one.pins.iter().map(AbsPath::to_string).collect();
        text += &format!("  {}: {}\n", one.path, pins.join(" "));
    }
    text += "\nvalues\n";
    for (name, value) in &policy.environment.0 {
        text += &format!("  {}={}\n", name.to_string_lossy(), value.to_string_lossy());
    }
    text
}

fn opencode(host: &MemoryHost) -> (MemoryHost, Request) {
    let host = host
        .clone()
        .file("/home/ann/.gitconfig", "")
        .file("/home/ann/.local/share/opencode/auth.json", "secret")
        .file("/home/ann/.local/state/opencode/service.json", "secret")
        .file("/home/ann/.config/opencode/opencode.json", "{}")
        .file("/home/ann/.config/opencode/tui.json", "{}")
        .file("/home/ann/.config/opencode/package.json", "{}")
        .dir("/home/ann/.config/opencode/node_modules/x")
        .file("/home/ann/dotfiles/agents/a.md", "")
        .link("/home/ann/.config/opencode/agents", "/home/ann/dotfiles/agents")
        .link("/home/ann/.config/opencode/gone", "/nowhere")
        .file("/home/ann/.local/share/pinfold/opencode/bin/opencode", "")
        .env("OPENAI_API_KEY", "secret")
        .env("SSH_AUTH_SOCK", "/run/ssh");
    let variables = vec![
        (
            "AGENT_BINARY".to_owned(),
            PathBuf::from("/home/ann/.local/share/pinfold/opencode/bin/opencode"),
        ),
        (
            "PINFOLD_AGENT_DATA".to_owned(),
            PathBuf::from("/home/ann/.local/share/pinfold/agents/opencode-1"),
        ),
    ];
    let password = (OsString::from("OPENCODE_SERVER_PASSWORD"), OsString::from("0123"));
    let closed_ports = vec![Port::new(14096).unwrap()];
    (
        host,
        Request {
            variables,
            closed_ports,
            added_env: vec![password],
            ..request()
        },
    )
}

#[test]
fn golden_default() {
    let policy = resolve(&shipped("default"), &request(), &MemoryHost::debian()).unwrap();
    insta::assert_snapshot!(golden(&policy));
}

#[test]
fn golden_opencode_server() {
    let (host, request) = opencode(
        &MemoryHost::debian()
            .dir("/home/ann/p/.opencode")
            .dir("/home/ann/.cargo/bin"),
    );
    insta::assert_snapshot!(golden(&resolve(&shipped("opencode-server"), &request, &host).unwrap()));
}

#[test]
fn golden_opencode_client() {
    let (host, request) = opencode(&MemoryHost::debian());
    insta::assert_snapshot!(golden(&resolve(&shipped("opencode-client"), &request, &host).unwrap()));
}

#[test]
fn golden_everything_from_a_profile_and_the_command_line() {
    let host = MemoryHost::debian()
        .file("/data/ref/big.txt", "")
        .file("/data/rw/secret/key", "")
        .dir("/data/rw/docs")
        .link("/home/ann/ref", "/data/ref")
        .socket("/run/user/1000/one.sock")
        .socket("/srv/sockets/two.sock")
        .file("/srv/sockets/file", "")
        .env("WANTED", "1")
        .env("WANTED", "2");
    let profile = profile(
        &host,
        r#"{"extends": "default",
            "filesystem": {"allow": [{"path": "/data/rw", "why": "work"}], "read": ["~/ref", "/data/rw/docs", "/gone"],
                "deny": ["/data/rw/secret"], "unix_socket": ["/run/user/1000/one.sock"], "unix_socket_dir": ["/srv/sockets"]},
            "network": {"allow_domain": ["*.example.org:8443"], "deny_domain": ["bad.example.org"], "listen_port": [3000]},
            "environment": {"set_vars": {"A": "b"}},
            "pinfold": {"services": {"model.pinfold": "127.0.0.1:11434"}, "limits": {"processes": 500, "address_space": "8G"}}}"#,
    );
    let request = Request {
        workdir: PathBuf::from("/home/ann/p/src"),
        grants: vec![CommandGrant {
            flag: "--read".to_owned(),
            path: PathBuf::from("../../ref"),
            access: Access::Read,
        }],
        allow_domains: vec!["api.test".to_owned()],
        services: vec!["db.pinfold=127.0.0.1:5432".to_owned()],
        open_ports: vec![Port::new(9000).unwrap()],
        env: vec![
            EnvWish::Pass("WANTED".into()),
            EnvWish::Pass("UNSET".into()),
            EnvWish::Set("NODE_OPTIONS".into(), "x".into()),
        ],
        allow_missing: vec![Promise::Sockets],
        ..request()
    };
    insta::assert_snapshot!(golden(&resolve(&profile, &request, &host).unwrap()));
}

#[test]
fn refuses_workspaces_that_are_too_broad_or_not_there() {
    let host = MemoryHost::debian()
        .dir("/home/ann/.config/pinfold/profiles")
        .dir("/home/ann/.ssh/x")
        .dir("/home/ann/.local/share/pinfold/x")
        .dir("/run/user/1000/x")
        .dir("/usr/lib/x")
        .dir("/etc/x")
        .dir("/opt")
        .dir("/var/lib")
        .dir("/mnt")
        .dir("/root")
        .link("/home/ann/etc", "/etc")
        .link("/tmp/home", "/home/ann")
        .link("/tmp/loop", "loop");
    for path in [
        "/",
        "/home",
        "/home/ann",
        "/home/ann/p/..",
        "/home/ann/.config",
        "/home/ann/.config/pinfold",
        "/home/ann/.config/pinfold/profiles",
        "/home/ann/.local",
        "/home/ann/.local/share",
        "/home/ann/.local/share/pinfold/x",
        "/home/ann/.ssh",
        "/home/ann/.ssh/x",
        "/proc",
        "/dev",
        "/run",
        "/run/user/1000/x",
        "/etc",
        "/etc/x",
        "/usr",
        "/usr/lib/x",
        "/lib",
        "/bin",
        "/opt",
        "/var",
        "/var/lib",
        "/mnt",
        "/root",
        "/tmp",
        "/home/ann/etc",
        "/tmp/home",
    ] {
        let error = rooted(&host, path).unwrap_err();
        assert!(matches!(error, ResolveError::Root { .. }), "{path}: {error}");
        assert_eq!((error.kind(), error.hint().is_some()), (Kind::Target, true), "{path}");
    }
    assert!(matches!(
        rooted(&host, "/home/ann/gone"),
        Err(ResolveError::RootMissing(_))
    ));
    assert!(matches!(
        rooted(&host, "/home/ann/p/src/main.rs"),
        Err(ResolveError::RootNotAFolder(_))
    ));
    assert!(matches!(rooted(&host, "p"), Err(ResolveError::Relative { .. })));
    assert!(matches!(rooted(&host, "/tmp/loop"), Err(ResolveError::Walk { .. })));
    let closed = host.clone().closed("/srv/closed").dir("/srv/closed/below");
    assert!(matches!(
        rooted(&closed, "/srv/closed"),
        Err(ResolveError::RootUnreadable { .. })
    ));
    assert!(matches!(
        rooted(&closed, "/srv/closed/below"),
        Err(ResolveError::Walk { permission: true, .. })
    ));
    for path in [
        ROOT,
        "/home/ann/p/src",
        "/tmp/x",
        "/srv/x",
        "/home/ann/.config/nvim",
        "/usr/src/x",
    ] {
        let host = host.clone().dir(path);
        assert!(
            rooted(&host, path).is_ok(),
            "{path}: {:?}",
            rooted(&host, path).unwrap_err()
        );
    }
}

#[test]
fn refuses_an_own_folder_that_a_link_puts_into_the_workspace() {
    let host = MemoryHost::debian()
        .dir("/home/ann/p/pf")
        .link("/home/ann/.config/pinfold", "/home/ann/p/pf");
    assert!(matches!(rooted(&host, ROOT), Err(ResolveError::Root { .. })));
}

#[test]
fn refuses_grants_that_are_too_broad() {
    let host = MemoryHost::debian()
        .dir("/home/ann/.config/nvim")
        .dir("/home/ann/.config/pinfold")
        .dir("/sys")
        .dir("/home/bob");
    for (path, read, write) in [
        ("/", false, false),
        ("/home", false, false),
        ("/home/ann", false, false),
        ("/proc", false, false),
        ("/sys", false, false),
        ("/dev", false, false),
        ("/run", false, false),
        ("/etc", false, false),
        ("/usr", true, false),
        ("/bin", true, false),
        ("/home/ann/.ssh", true, false),
        ("/home/ann/.config", true, false),
        ("/home/ann/.config/pinfold", false, false),
        ("/home/ann/.config/nvim", true, true),
        ("/home/bob", true, true),
    ] {
        for (access, expected) in [(Access::Read, read), (Access::ReadWrite, write)] {
            let result = granted(&host, path, access);
            match &result {
                Ok(_) => assert!(expected, "{path} {access:?} was granted"),
                Err(error) => assert!(
                    !expected && matches!(error, ResolveError::TooBroad { .. }),
                    "{path} {access:?}: {error}"
                ),
            }
            let key = if access == Access::Read { "read" } else { "allow" };
            let by_profile = with(&host, &format!(r#"{{"filesystem": {{"{key}": ["{path}"]}}}}"#));
            assert_eq!(by_profile.is_ok(), expected, "{path} {access:?} by a profile");
        }
    }
}

#[test]
fn an_absent_grant_of_the_command_line_names_its_flag_and_one_of_a_profile_is_noted() {
    let host = MemoryHost::debian().link("/home/ann/dangling", "/nowhere");
    for path in ["/data/gone", "/home/ann/dangling"] {
        let error = granted(&host, path, Access::Read).unwrap_err();
        assert_eq!(error.to_string(), format!("{path:?} does not exist (--allow)"));
    }
    let policy = with(
        &host,
        r#"{"filesystem": {"read": ["~/dangling", {"path": "/gone", "optional": true}]}}"#,
    )
    .unwrap();
    let left_out: Vec<_> = policy
        .notes
        .iter()
        .filter(|note| note.topic == Topic::LeftOut)
        .map(|note| note.subject.as_str())
        .collect();
    assert_eq!(left_out, ["/home/ann/dangling"]);
}

#[test]
fn escapes_control_characters_of_paths_in_messages() {
    let error = granted(&MemoryHost::debian(), "/x/\u{1b}[2K\r\u{202e}", Access::Read).unwrap_err();
    assert!(!error.to_string().contains(['\u{1b}', '\r', '\u{202e}']), "{error}");
}

#[test]
fn refuses_what_is_neither_file_nor_folder_or_has_the_wrong_shape() {
    let host = MemoryHost::debian().socket("/srv/s").dir("/srv/d").file("/srv/f", "");
    for text in [
        r#"{"filesystem": {"read": ["/srv/s"]}}"#,
        r#"{"filesystem": {"read_file": ["/srv/d"]}}"#,
        r#"{"filesystem": {"unix_socket": ["/srv/f"]}}"#,
        r#"{"filesystem": {"unix_socket_dir": ["/srv/f"]}}"#,
    ] {
        assert!(matches!(with(&host, text), Err(ResolveError::Shape { .. })), "{text}");
    }
    assert!(matches!(
        with(&host, r#"{"filesystem": {"read": ["rel"]}}"#),
        Err(ResolveError::Relative { .. })
    ));
    assert!(matches!(
        with(&host, r#"{"filesystem": {"read": ["$NOPE/x"]}}"#),
        Err(ResolveError::Variable { .. })
    ));
    let homeless = host.clone().homeless();
    assert!(matches!(with(&homeless, "{}"), Err(ResolveError::NoHome)));
}

#[test]
fn expands_every_variable_with_and_without_braces() {
    let host = MemoryHost::debian()
        .env("XDG_CONFIG_HOME", "/cfg")
        .env("XDG_DATA_HOME", "relative")
        .dir("/cfg/a")
        .dir("/home/ann/.local/share/b");
    let text = r#"{"filesystem": {"read": ["$XDG_CONFIG_HOME/a", "${XDG_DATA_HOME}/b", "$WORKDIR/src"]}, "workdir": {"access": "none"}}"#;
    let policy = with(&host, text).unwrap();
    for target in ["/cfg/a", "/home/ann/.local/share/b", "/home/ann/p/src"] {
        assert!(bind(&policy, target).is_some(), "{target}");
    }
}

#[test]
fn binds_the_target_of_a_link_and_makes_the_whole_chain() {
    let host = MemoryHost::debian()
        .without("/etc/resolv.conf")
        .link("/etc/resolv.conf", "/mnt/wsl/resolv.conf")
        .link("/mnt/wsl", "/data/wsl")
        .link("/data/wsl/resolv.conf", "real")
        .file("/data/wsl/real", "");
    let policy = rooted(&host, ROOT).unwrap();
    assert_eq!(bind(&policy, "/data/wsl/real").unwrap().kind, FileKind::File);
    assert!(bind(&policy, "/etc/resolv.conf").is_none());
    let links: Vec<_> = policy
        .links
        .iter()
        .map(|link| format!("{} {}", link.at, link.to.display()))
        .collect();
    for link in [
        "/etc/resolv.conf /mnt/wsl/resolv.conf",
        "/mnt/wsl /data/wsl",
        "/data/wsl/resolv.conf real",
        "/bin usr/bin",
    ] {
        assert!(links.iter().any(|found| found == link), "{link} not in {links:?}");
    }
    let dangling = host.without("/data/wsl/real");
    let policy = rooted(&dangling, ROOT).unwrap();
    assert!(!policy.binds.iter().any(|bind| bind.source.is_within(&abs("/data"))));
}

#[test]
fn follows_a_home_that_is_a_link() {
    let host = MemoryHost::debian()
        .without("/home")
        .link("/home", "/data/home")
        .dir("/data/home/ann/p")
        .dir("/data/home/ann/.cargo/bin");
    let policy = rooted(&host, ROOT).unwrap();
    assert_eq!(policy.root, Some(abs("/data/home/ann/p")));
    assert_eq!(policy.workdir, abs("/data/home/ann/p"));
    assert!(policy.made.iter().any(|made| made.at == abs("/data/home/ann")));
    assert!(policy.links.iter().any(|link| link.at == abs("/home")));
    assert!(matches!(
        rooted(&host, "/data/home/ann"),
        Err(ResolveError::Root { .. })
    ));
}

#[test]
fn keeps_targets_sorted_and_single_with_the_wider_access_of_the_same_path() {
    let host = MemoryHost::debian().dir("/data/a/b").dir("/data/a-b");
    let text = r#"{"filesystem": {"read": ["/data/a", "/data/a-b", "/usr/share"], "allow": ["/data/a", "/data/a/b"]}}"#;
    let policy = with(&host, text).unwrap();
    let targets: Vec<_> = policy.binds.iter().map(|bind| bind.target.clone()).collect();
    let mut sorted = targets.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(targets, sorted);
    assert_eq!(bind(&policy, "/data/a").unwrap().access, Access::ReadWrite);
    assert!(bind(&policy, "/data/a/b").is_none(), "redundant in /data/a");
    assert!(bind(&policy, "/usr/share").is_none(), "redundant in /usr");
    let parent = targets.iter().position(|target| *target == abs("/data/a"));
    assert!(parent < targets.iter().position(|target| *target == abs("/data/a-b")));
}

#[test]
fn a_read_grant_in_a_writable_one_is_protected_and_a_writable_one_in_a_read_grant_stays() {
    let host = MemoryHost::debian().dir("/data/a/b/c").dir("/data/r/w");
    let policy = with(
        &host,
        r#"{"filesystem": {"allow": ["/data/a", "/data/r/w"], "read": ["/data/a/b/c", "/data/r"]}}"#,
    )
    .unwrap();
    assert!(bind(&policy, "/data/a/b/c").is_none());
    assert_eq!(protected(&policy, "/data/a/b/c").unwrap().pins, [abs("/data/a/b")]);
    assert_eq!(bind(&policy, "/data/r/w").unwrap().access, Access::ReadWrite);
}

#[test]
fn a_deny_always_wins() {
    let host = MemoryHost::debian().file("/data/a/secret/key", "").dir("/data/b");
    let text = r#"{"filesystem": {"allow": ["/data/a", "/data/a/secret/key", "/data/b"], "deny": ["/data/a/secret", "/data/b", "/data/a/absent"]}}"#;
    let policy = with(&host, text).unwrap();
    assert_eq!(policy.masked, [abs("/data/a/secret")]);
    assert!(bind(&policy, "/data/b").is_none() && bind(&policy, "/data/a/secret/key").is_none());
    let denied = profile(
        &host,
        r#"{"extends": "default", "filesystem": {"deny": ["/home/ann/p"]}}"#,
    );
    assert!(matches!(
        resolve(&denied, &request(), &host),
        Err(ResolveError::Denied { .. })
    ));
    let grant = CommandGrant {
        flag: "--read".to_owned(),
        path: PathBuf::from("/data/b"),
        access: Access::Read,
    };
    let asked = Request {
        grants: vec![grant],
        ..request()
    };
    let error = resolve(&profile(&host, text), &asked, &host).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#""/data/b" is denied by filesystem.deny[1] in mine (--read)"#
    );
}

#[test]
fn nothing_is_made_on_the_host_inside_a_grant() {
    let host = MemoryHost::debian()
        .file("/data/f", "")
        .dir("/home/ann/p/there")
        .file("/home/ann/p/file", "");
    let mount = |at: &str| {
        format!(
            r#"{{"extends": "default", "pinfold": {{"mounts": [{{"at": "{at}", "from": "/data", "access": "read"}}]}}}}"#
        )
    };
    assert!(with(&host, &mount("/home/ann/p/there")).is_ok());
    assert!(with(&host, &mount("/home/ann/elsewhere")).is_ok());
    for at in ["/home/ann/p/absent", "/home/ann/p/file"] {
        assert!(
            matches!(with(&host, &mount(at)), Err(ResolveError::Ghost { .. })),
            "{at}"
        );
    }
    assert!(matches!(
        with(&host, &mount("/tmp")),
        Err(ResolveError::Occupied { .. })
    ));
}

#[test]
fn private_places_are_not_granted_from_the_host() {
    let host = MemoryHost::debian();
    assert!(matches!(
        granted(&host, "/tmp", Access::ReadWrite),
        Err(ResolveError::Private { .. })
    ));
    let policy = with(&host, r#"{"filesystem": {"allow": ["$TMPDIR"]}}"#).unwrap();
    assert!(bind(&policy, "/tmp").is_none());
}

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
fn finds_the_workspace_root_without_git() {
    let host = MemoryHost::debian()
        .dir("/home/ann/p/src/deep")
        .dir("/home/ann/plain/sub")
        .dir("/home/ann/.git")
        .file("/home/ann/w/.git", "gitdir: /x")
        .dir("/home/ann/w/sub")
        .link("/home/ann/l", "/home/ann/p/src")
        .file("/home/ann/f", "");
    for (start, root) in [
        ("/home/ann/p/src/deep", "/home/ann/p"),
        ("/home/ann/p", "/home/ann/p"),
        ("/home/ann/l/deep", "/home/ann/p"),
        ("/home/ann/w/sub", "/home/ann/w"),
        ("/home/ann/plain/sub", "/home/ann/plain/sub"),
        ("/usr/share", "/usr/share"),
    ] {
        assert_eq!(workspace_root(Path::new(start), &host).unwrap(), abs(root), "{start}");
    }
    assert!(matches!(
        workspace_root(Path::new("/gone"), &host),
        Err(ResolveError::RootMissing(_))
    ));
    assert!(matches!(
        workspace_root(Path::new("/home/ann/f"), &host),
        Err(ResolveError::RootNotAFolder(_))
    ));
}

#[test]
fn passes_no_secret_loader_or_socket_of_the_environment() {
    let mut host = MemoryHost::debian();
    let never = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
        "ENV",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "GIT_DIR",
        "GIT_SSH_COMMAND",
        "OPENCODE_CONFIG",
        "OPENCODE",
        "API_TOKEN",
        "OPENAI_API_KEY",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "TMUX",
        "TMUX_PANE",
        "HERDR_SOCKET_PATH",
        "HTTP_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "no_proxy",
        "AWS_SECRET_ACCESS_KEY",
        "XDG_RUNTIME_DIR",
        "PINFOLD_X",
        "BASH_FUNC_x%%",
        "SOMETHING",
    ];
    for name in never.iter().chain(&["LC_ALL", "TERM"]) {
        host = host.env(name, "x");
    }
    let everything = r#"{"environment": {"allow_vars": ["*"]}}"#;
    for (text, extra) in [("{}", None), (everything, Some("SOMETHING"))] {
        let policy = with(&host, text).unwrap();
        let names: Vec<_> = policy.environment.0.keys().map(|name| name.to_str().unwrap()).collect();
        let mut expected = vec!["HOME", "LANG", "LC_ALL", "PATH", "TERM"];
        expected.extend(extra);
        expected.sort_unstable();
        assert_eq!(names, expected, "{text}");
    }
}

#[test]
fn the_launch_wins_over_the_command_line_and_that_over_the_profile() {
    let host = MemoryHost::debian().env("X", "host");
    let text =
        r#"{"environment": {"allow_vars": ["X"], "set_vars": {"X": "profile", "Y": "profile", "Z": "profile"}}}"#;
    let set = |name: &str| EnvWish::Set(name.into(), "typed".into());
    let request = Request {
        env: vec![set("Y"), set("Z")],
        added_env: vec![("Z".into(), "launch".into())],
        ..request()
    };
    let policy = resolve(&profile(&host, text), &request, &host).unwrap();
    let value = |name: &str| {
        policy
            .environment
            .0
            .get(std::ffi::OsStr::new(name))
            .unwrap()
            .to_str()
            .unwrap()
    };
    assert_eq!((value("X"), value("Y"), value("Z")), ("profile", "typed", "launch"));
    for name in ["", "A=B", "A\0"] {
        let request = Request {
            env: vec![EnvWish::Pass(name.into())],
            ..super::tests::request()
        };
        assert!(
            matches!(
                resolve(&shipped("default"), &request, &host),
                Err(ResolveError::VariableName(_))
            ),
            "{name:?}"
        );
    }
}

#[test]
fn names_the_place_of_a_bad_rule_and_refuses_domains_without_a_network() {
    let host = MemoryHost::debian();
    let error = with(&host, r#"{"network": {"allow_domain": ["ok.test", "*.com"]}}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#""*.com" covers a whole top-level domain (network.allow_domain[1] in mine)"#
    );
    assert!(matches!(
        with(&host, r#"{"pinfold": {"services": {"x.pinfold": "8.8.8.8:53"}}}"#),
        Err(ResolveError::Rule { .. })
    ));
    let request = Request {
        block_net: true,
        allow_domains: vec!["ok.test".to_owned()],
        ..request()
    };
    assert!(matches!(
        resolve(&shipped("default"), &request, &host),
        Err(ResolveError::NoNetwork(_))
    ));
}

#[test]
fn lists_what_the_caller_makes_and_nothing_outside_its_folders() {
    let (host, request) = opencode(&MemoryHost::debian());
    let found = preparations(&shipped("opencode-server"), &request, &host).unwrap();
    let data = "/home/ann/.local/share/pinfold/agents/opencode-1/data";
    let expected = [
        (data.to_owned(), FileKind::Dir),
        (format!("{data}/auth.json"), FileKind::File),
    ];
    let found: Vec<_> = found.into_iter().map(|one| (one.path.to_string(), one.kind)).collect();
    assert_eq!(found, expected);
    let planted = host
        .dir(data)
        .link(&format!("{data}/auth.json"), "/home/ann/.ssh/id_ed25519");
    let error = resolve(&shipped("opencode-server"), &request, &planted).unwrap_err();
    assert!(matches!(error, ResolveError::Ghost { .. }), "{error}");
}

#[test]
fn answers_why_with_the_deciding_line() {
    let (host, request) = opencode(&MemoryHost::debian().socket("/srv/s.sock"));
    let mut profile = shipped("opencode-server");
    let own = self::profile(
        &host,
        r#"{"filesystem": {"unix_socket": ["/srv/s.sock"], "deny": ["$WORKDIR/src"]}, "pinfold": {"services": {"m.pinfold": "127.0.0.1:1234"}}}"#,
    );
    profile.sockets = own.sockets;
    profile.deny = own.deny;
    profile.services = own.services;
    let policy = resolve(&profile, &request, &host).unwrap();
    let answer = |text: &str| why(&policy, &Question::parse(text).unwrap()).to_string();
    let answers: Vec<String> = [
        "/home/ann/p/README.md",
        "/home/ann/p/.git/hooks/pre-commit",
        "/home/ann/p/.envrc",
        "/home/ann/p/src/main.rs",
        "/home/ann/.ssh/id_ed25519",
        "/bin/sh",
        "/etc/shadow",
        "/etc/resolv.conf",
        "/tmp/x",
        "/home/ann/.local/state/opencode/service.json",
        "/home/ann/.local/share/opencode/auth.json",
        "/home/ann/.config/opencode/package.json",
        "api.openai.com",
        "api.openai.com:22",
        "evil.test",
        "127.0.0.1:80",
        "[::1]:80",
        "m.pinfold:80",
        "unix:/srv/s.sock",
        "unix:/run/docker.sock",
        "unix:@x",
    ]
    .iter()
    .map(|text| format!("{text}\n  {}", answer(text)))
    .collect();
    insta::assert_snapshot!(answers.join("\n"));
    assert!(Question::parse("a.test:x").is_err() && Question::parse("unix:rel").is_err());
}

#[test]
fn resolves_on_this_machine_and_takes_paths_as_bytes() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile::tempdir().unwrap();
    let odd = dir
        .path()
        .canonicalize()
        .unwrap()
        .join(std::ffi::OsStr::from_bytes(b"-p\nq \xff\"$(x)`y`"));
    std::fs::create_dir_all(odd.join(".git/hooks")).unwrap();
    let request = Request {
        root: Some(odd.clone()),
        workdir: odd.clone(),
        ..Request::default()
    };
    let host = crate::policy::LiveHost::new();
    let policy = resolve(&load("default", &[], &host).unwrap(), &request, &host).unwrap();
    assert_eq!(policy.root.as_ref().unwrap().as_path(), odd);
    assert!(
        policy
            .binds
            .iter()
            .any(|bind| bind.target.as_path() == odd && bind.access == Access::ReadWrite)
    );
    assert!(
        policy
            .protected
            .iter()
            .any(|one| one.path.as_path() == odd.join(".git/hooks") && one.kind == Some(FileKind::Dir))
    );
    assert!(!explain(&policy).to_string().contains("-p\nq"));
}

#[test]
fn takes_thousands_of_grants() {
    let mut host = MemoryHost::debian();
    let paths: Vec<String> = (0..3000).map(|n| format!("/data/{}/d{n}", n % 7)).collect();
    for path in &paths {
        host = host.dir(path);
    }
    let grant = |path: &String| CommandGrant {
        flag: "--read".to_owned(),
        path: PathBuf::from(path),
        access: Access::Read,
    };
    let request = Request {
        grants: paths.iter().map(grant).collect(),
        ..request()
    };
    let policy = resolve(&shipped("default"), &request, &host).unwrap();
    assert_eq!(
        policy
            .binds
            .iter()
            .filter(|bind| bind.target.is_within(&abs("/data")))
            .count(),
        3000
    );
}
