//! What is granted: which paths are refused, how links are followed, and that a deny wins.

use super::*;

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
fn the_ssh_agents_socket_is_granted_by_its_variable_and_missed_in_silence_only_where_that_was_written() {
    let optional = r#"{"filesystem": {"unix_socket": [{"path": "$SSH_AUTH_SOCK", "optional": true}]}}"#;
    let needed = r#"{"filesystem": {"unix_socket": ["$SSH_AUTH_SOCK"]}}"#;
    let host = MemoryHost::debian().socket("/run/user/1000/agent");
    let agent = host.clone().env("SSH_AUTH_SOCK", "/run/user/1000/agent");
    for text in [optional, needed] {
        let policy = with(&agent, text).unwrap();
        assert_eq!(bind(&policy, "/run/user/1000/agent").unwrap().kind, FileKind::Socket);
    }
    assert!(bind(&with(&host, optional).unwrap(), "/run/user/1000/agent").is_none());
    assert!(matches!(with(&host, needed), Err(ResolveError::Variable { .. })));
}
