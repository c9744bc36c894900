//! Profiles as files on an in-memory host.

use super::*;
use crate::base::Explain as _;
use crate::policy::memory::MemoryHost;
use std::path::PathBuf;

mod nono;
mod schema;

const FOLDER: &str = "/home/ann/.config/pinfold/profiles";

fn load_one(text: &str) -> Result<Profile, ProfileError> {
    let host = MemoryHost::debian().file(&format!("{FOLDER}/mine.json"), text);
    load("mine", &[PathBuf::from(FOLDER)], &host)
}

#[test]
fn every_shipped_profile_loads_and_gives_a_reason_for_each_entry() {
    for name in shipped_names() {
        let profile = load(name, &[], &MemoryHost::default()).unwrap();
        assert_eq!(profile.name, name);
        assert!(profile.description.is_some(), "{name}");
        let grants = profile.grants.iter().map(|grant| &grant.entry);
        let lists = [
            &profile.system,
            &profile.protected,
            &profile.allow_vars,
            &profile.deny_vars,
            &profile.allow_domains,
            &profile.deny,
        ];
        for entry in grants.chain(lists.into_iter().flatten()) {
            assert!(
                entry.origin.why.is_some(),
                "{name}: {} ({})",
                entry.text,
                entry.origin.key
            );
        }
        for mount in &profile.mounts {
            assert!(mount.at.origin.why.is_some(), "{name}: {}", mount.at.text);
        }
        assert!(profile.notes.is_empty(), "{name}: {:?}", profile.notes);
    }
}

#[test]
fn every_profile_extends_the_system_even_if_it_says_nothing() {
    for text in ["{}", r#"{"extends": []}"#, r#"{"extends": "system"}"#] {
        assert_eq!(load_one(text).unwrap().chain, ["system", "mine"], "{text}");
    }
}

#[test]
fn names_an_unknown_key_in_full_and_the_nearest_known_one() {
    for (text, key, nearest) in [
        (r#"{"filesytem": {}}"#, "filesytem", Some("filesystem")),
        (
            r#"{"filesystem": {"raed": []}}"#,
            "filesystem.raed",
            Some("filesystem.read"),
        ),
        (r#"{"allow_domain": []}"#, "allow_domain", Some("network.allow_domain")),
        (
            r#"{"pinfold": {"limits": {"process": 1}}}"#,
            "pinfold.limits.process",
            Some("pinfold.limits.processes"),
        ),
        (
            r#"{"pinfold": {"mounts": [{"att": "/x"}]}}"#,
            "pinfold.mounts[0].att",
            Some("pinfold.mounts[0].at"),
        ),
        (
            r#"{"filesystem": {"read": ["/a", {"path": "/b", "wy": "x"}]}}"#,
            "filesystem.read[1].wy",
            Some("filesystem.read[1].why"),
        ),
        (
            r#"{"pinfold": {"scratch": [{"at": "/x", "sise": 1}]}}"#,
            "pinfold.scratch[0].sise",
            Some("pinfold.scratch[0].size"),
        ),
        (r#"{"filesystem.read": []}"#, "filesystem.read", Some("filesystem.read")),
        (r#"{"qqqqqqqqqqqqqqq": 1}"#, "qqqqqqqqqqqqqqq", None),
    ] {
        match load_one(text) {
            Err(ProfileError::UnknownKey {
                key: found,
                nearest: near,
                ..
            }) => {
                assert_eq!((found.as_str(), near.as_deref()), (key, nearest), "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn says_where_a_file_is_not_json() {
    let error = load_one("{\n  \"meta\": {,}\n}").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the profile \"{FOLDER}/mine.json\" is not JSON: line 2, column 12: key must be a string")
    );
    for text in ["", "{", "[]", "3", "\"x\""] {
        assert!(load_one(text).is_err(), "{text:?}");
    }
}

#[test]
fn refuses_values_of_the_wrong_kind_by_their_key() {
    for (text, key) in [
        (r#"{"extends": 3}"#, "extends"),
        (r#"{"workdir": {"access": "all"}}"#, "workdir.access"),
        (r#"{"workdir": "read"}"#, "workdir"),
        (r#"{"filesystem": {"read": "/a"}}"#, "filesystem.read"),
        (r#"{"filesystem": {"read": [1]}}"#, "filesystem.read[0]"),
        (r#"{"filesystem": {"read": [""]}}"#, "filesystem.read[0]"),
        (r#"{"filesystem": {"read": ["a\u0000b"]}}"#, "filesystem.read[0]"),
        (r#"{"filesystem": {"read": [{"why": "x"}]}}"#, "filesystem.read[0]"),
        (r#"{"network": {"block": "yes"}}"#, "network.block"),
        (r#"{"network": {"open_port": [0]}}"#, "network.open_port[0]"),
        (r#"{"network": {"open_port": [65536]}}"#, "network.open_port[0]"),
        (r#"{"network": {"listen_port": ["80"]}}"#, "network.listen_port[0]"),
        (r#"{"linux": {"af_unix_mediation": "some"}}"#, "linux.af_unix_mediation"),
        (
            r#"{"environment": {"set_vars": {"A=B": "x"}}}"#,
            "environment.set_vars.A=B",
        ),
        (r#"{"environment": {"set_vars": {"A": 1}}}"#, "environment.set_vars.A"),
        (r#"{"pinfold": {"scratch_size": "1T"}}"#, "pinfold.scratch_size"),
        (
            r#"{"pinfold": {"scratch_size": "99999999999G"}}"#,
            "pinfold.scratch_size",
        ),
        (r#"{"pinfold": {"mounts": [{"at": "/x"}]}}"#, "pinfold.mounts[0]"),
        (
            r#"{"pinfold": {"mounts": [{"at": "/x", "from": "/y"}]}}"#,
            "pinfold.mounts[0]",
        ),
        (
            r#"{"pinfold": {"mounts": [{"at": "/x", "from": "/y", "entries_of": "/z", "access": "read"}]}}"#,
            "pinfold.mounts[0]",
        ),
        (
            r#"{"pinfold": {"mounts": [{"at": "/x", "entries_of": "/z", "only": ["a"], "except": ["b"]}]}}"#,
            "pinfold.mounts[0]",
        ),
        (
            r#"{"pinfold": {"mounts": [{"at": "/x", "entries_of": "/z", "only": ["../a"]}]}}"#,
            "pinfold.mounts[0].only",
        ),
        (
            r#"{"pinfold": {"limits": {"processes": -1}}}"#,
            "pinfold.limits.processes",
        ),
    ] {
        match load_one(text) {
            Err(ProfileError::Wrong { key: found, .. }) => assert_eq!(found, key, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn takes_a_profile_of_nono_as_it_is_and_says_what_is_not_used() {
    let profile = load_one(
        r#"{"meta": {"name": "x", "version": "1.0.0"}, "workdir": {"access": "readwrite"},
            "security": {"signal_mode": "isolated"}, "linux": {"af_unix_mediation": "pathname"},
            "filesystem": {"allow": ["~/.codex"], "write": ["/w"], "suppress_save_prompt": ["/"]},
            "network": {"allow_domain": ["a.test"], "network_profile": "developer"},
            "environment": {"allow_vars": ["XDG_*"], "deny_vars": ["*_TOKEN"]}}"#,
    )
    .unwrap();
    let subjects: Vec<_> = profile.notes.iter().map(|note| note.subject.as_str()).collect();
    assert_eq!(
        subjects,
        [
            "security.signal_mode",
            "filesystem.write",
            "filesystem.suppress_save_prompt",
            "network.network_profile"
        ]
    );
    assert_eq!(profile.workdir, Some(WorkdirAccess::Granted(Access::ReadWrite)));
}

#[test]
fn names_the_circle_of_profiles_that_extend_each_other() {
    let host = MemoryHost::debian()
        .file(&format!("{FOLDER}/a.json"), r#"{"extends": "b"}"#)
        .file(&format!("{FOLDER}/b.json"), r#"{"extends": ["default", "c"]}"#)
        .file(&format!("{FOLDER}/c.json"), r#"{"extends": "./a.json"}"#)
        .file(&format!("{FOLDER}/self.json"), r#"{"extends": "self"}"#);
    let chain = |name| match load(name, &[PathBuf::from(FOLDER)], &host) {
        Err(ProfileError::Loop { chain }) => chain.join(" "),
        other => panic!("{other:?}"),
    };
    assert_eq!(chain("a"), "a b c ./a.json");
    assert_eq!(chain("self"), "self self");
}

#[test]
fn says_where_it_looked_for_a_missing_profile_and_who_wanted_it() {
    let error = load_one(r#"{"extends": "nolabs-ai/opencode"}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"there is no profile "nolabs-ai/opencode", which "mine" extends"#
    );
    let hint = error.hint().unwrap();
    assert!(
        hint.contains(&format!("{FOLDER}/nolabs-ai/opencode.json")) && hint.contains("opencode-server"),
        "{hint}"
    );
}

#[test]
fn a_parent_that_two_profiles_share_counts_once_and_the_child_wins() {
    let host = MemoryHost::debian()
        .file(
            &format!("{FOLDER}/base.json"),
            r#"{"filesystem": {"read": ["/base"]}, "network": {"block": true}}"#,
        )
        .file(
            &format!("{FOLDER}/a.json"),
            r#"{"extends": "base", "filesystem": {"read": ["/a"]}}"#,
        )
        .file(
            &format!("{FOLDER}/b.json"),
            r#"{"extends": "base", "network": {"block": false}}"#,
        )
        .file(
            &format!("{FOLDER}/c.json"),
            r#"{"extends": ["a", "b"], "filesystem": {"read": ["/c"]}}"#,
        );
    let profile = load("c", &[PathBuf::from(FOLDER)], &host).unwrap();
    let read: Vec<_> = profile.grants.iter().map(|grant| grant.entry.text.as_str()).collect();
    assert_eq!(read, ["/base", "/a", "/c"]);
    assert_eq!(profile.block, Some(false));
    assert_eq!(profile.chain, ["system", "base", "a", "b", "c"]);
}

#[test]
fn reads_a_profile_through_a_link_but_no_folder_and_nothing_unreadable() {
    let host = MemoryHost::debian()
        .file("/home/ann/dotfiles/p.json", "{}")
        .link(&format!("{FOLDER}/linked.json"), "/home/ann/dotfiles/p.json")
        .dir(&format!("{FOLDER}/folder.json"))
        .closed("/closed")
        .file("/closed/p.json", "{}");
    let load = |name: &str| load(name, &[PathBuf::from(FOLDER)], &host);
    assert!(load("linked").is_ok());
    assert!(matches!(load("folder"), Err(ProfileError::Read { .. })));
    assert!(matches!(load("/closed/p.json"), Err(ProfileError::Read { .. })));
}
