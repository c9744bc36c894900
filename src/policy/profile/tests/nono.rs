//! Profiles of nono: what is taken, what is noted, what is refused.

use super::*;

/// The keys of nono's own profiles and of the two of the Herdr plugin, in shapes that are found there.
#[test]
fn profiles_of_nono_load_as_they_are() {
    let texts = [
        r#"{"extends": "default", "meta": {"name": "node", "version": "1.0.0", "description": null, "author": "x"},
            "groups": {"include": ["node_runtime", "git_config", "linux_sysfs_read", "user_caches_macos"]},
            "security": {"signal_mode": "isolated", "ipc_mode": "full", "capability_elevation": false},
            "filesystem": {}, "network": {"block": false, "network_profile": "developer"},
            "workdir": {"access": "readwrite"}, "undo": {"exclude_patterns": ["node_modules"]}, "interactive": false,
            "unsafe_macos_seatbelt_rules": ["(allow x)"]}"#,
        r#"{"extends": "default", "filesystem": {"allow": ["$HOME/.tool", "$TMPDIR/tool-$UID"]}, "workdir": {"access": "read"}}"#,
        r#"{"extends": ["system"], "workdir": {"access": "readwrite"}, "filesystem": {"suppress_save_prompt": ["/"]},
            "linux": {"af_unix_mediation": "pathname"}, "network": {"block": true},
            "environment": {"deny_vars": ["HERDR_*", "TMUX", "SSH_AUTH_SOCK"]}}"#,
        r#"{"extends": "system", "linux": {"af_unix_mediation": "pathname"},
            "network": {"allow_domain": ["models.test", "*.models.test"]}, "environment": {"deny_vars": ["TMUX_PANE"]}}"#,
        r#"{"commands": {"allow": ["pip"], "deny": []}, "policy": {"add_allow_read": ["/r"], "add_allow_readwrite": ["/rw"],
            "add_deny_access": ["/d"], "override_deny": ["/rw"], "exclude_groups": ["dangerous_commands"]},
            "security": {"groups": ["python_runtime"], "allowed_commands": ["pip"]}}"#,
        r#"{"$schema": "x", "hooks": {"a": {}}, "session_hooks": {}, "rollback": {}, "open_urls": null, "packs": [],
            "allow_gpu": null, "env_credentials": {"a": "B"}, "command_args": [], "diagnostics": {"suppress_system_services": []}}"#,
    ];
    for text in texts {
        if let Err(error) = load_one(text) {
            panic!("{text}: {error}");
        }
    }
}

#[test]
fn old_names_of_keys_mean_the_new_ones() {
    let old = r#"{"network": {"proxy_allow": ["a.test"], "allow_port": [80]},
        "policy": {"add_allow_read": ["/r"], "add_allow_write": ["/w"], "add_deny_access": ["/d"]}}"#;
    let new = r#"{"network": {"allow_domain": ["a.test"], "open_port": [80]},
        "filesystem": {"read": ["/r"], "write": ["/w"], "deny": ["/d"]}}"#;
    let [old, new] = [old, new].map(|text| load_one(text).unwrap());
    let texts = |entries: &[Entry]| entries.iter().map(|entry| entry.text.clone()).collect::<Vec<_>>();
    let grants = |profile: &Profile| -> Vec<_> {
        profile
            .grants
            .iter()
            .map(|g| (g.entry.text.clone(), g.access))
            .collect()
    };
    assert_eq!(grants(&old), grants(&new));
    assert_eq!(texts(&old.deny), texts(&new.deny));
    assert_eq!(texts(&old.allow_domains), texts(&new.allow_domains));
    assert_eq!(old.open_ports.len(), 1);
    let both = load_one(r#"{"filesystem": {"read": ["/a"]}, "policy": {"add_allow_read": ["/b"]}}"#).unwrap();
    assert_eq!(
        both.grants.len(),
        2,
        "an old name does not take the place of the new one"
    );
}

#[test]
fn what_would_narrow_and_is_not_enforced_is_refused_with_the_reason() {
    for (text, key) in [
        (r#"{"commands": {"deny": ["rm"]}}"#, "commands.deny"),
        (
            r#"{"policy": {"add_deny_commands": ["rm"]}}"#,
            "policy.add_deny_commands",
        ),
        (
            r#"{"command_policies": {"commands": {"git": {}, "x": 1}}}"#,
            "command_policies",
        ),
        (
            r#"{"groups": {"include": ["unlink_protection"]}}"#,
            "groups.include[0] unlink_protection",
        ),
        (
            r#"{"security": {"groups": ["dangerous_commands"]}}"#,
            "security.groups[0] dangerous_commands",
        ),
        (
            r#"{"network": {"upstream_proxy": "proxy.test:3128"}}"#,
            "network.upstream_proxy",
        ),
        (
            r#"{"network": {"allow_domain": [{"domain": "a.test", "endpoints": [{"method": "GET"}]}]}}"#,
            "network.allow_domain[0].endpoints",
        ),
    ] {
        match load_one(text) {
            Err(ProfileError::Refused { key: found, reason, .. }) => {
                assert_eq!(found, key, "{text}");
                assert!(!reason.is_empty());
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_group_is_what_it_holds_and_can_be_taken_out_again() {
    let host = MemoryHost::debian()
        .file(
            &format!("{FOLDER}/base.json"),
            r#"{"groups": {"include": ["python_runtime", "deny_credentials"]}}"#,
        )
        .file(
            &format!("{FOLDER}/mine.json"),
            r#"{"extends": "base", "groups": {"exclude": ["python_runtime"], "include": ["rust_runtime"]}}"#,
        );
    let profile = load("mine", &[PathBuf::from(FOLDER)], &host).unwrap();
    let has = |text: &str| profile.grants.iter().any(|grant| grant.entry.text == text);
    assert!(has("$HOME/.rustup") && !has("$HOME/.pyenv"));
    assert!(profile.deny.iter().any(|deny| deny.text == "$HOME/.ssh"));
    let base = load("base", &[PathBuf::from(FOLDER)], &host).unwrap();
    assert!(
        base.grants.iter().any(|grant| grant.entry.text == "$HOME/.pyenv"),
        "control"
    );
    match load_one(r#"{"groups": {"include": ["node_runtim"]}}"#) {
        Err(ProfileError::Group { nearest, .. }) => assert_eq!(nearest.as_deref(), Some("node_runtime")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_entry_for_another_system_is_left_out() {
    let text = r#"{"filesystem": {"read": [{"path": "/mac", "when": "macos"}, {"path": "/linux", "when": "linux"}]}}"#;
    let profile = load_one(text).unwrap();
    let read: Vec<&str> = profile.grants.iter().map(|grant| grant.entry.text.as_str()).collect();
    assert_eq!(read, ["/linux"]);
    let narrower = r#"{"filesystem": {"deny": [{"path": "/x", "when": "linux:fedora"}]}}"#;
    assert!(matches!(load_one(narrower), Err(ProfileError::Wrong { .. })));
}
