//! `--dry-run`: what would be done, and nothing is.

use crate::place::{Place, finish};
use serde_json::Value;

/// The plan under a profile of its own, in a workspace with a repository, without this test's own paths.
fn planned(options: &[&str]) -> String {
    let place = Place::new();
    let folder = place.path();
    let profile = folder.join("bare.json");
    let text = r#"{"meta": {"name": "bare"}, "workdir": {"access": "readwrite"}, "filesystem": {"read": ["$HOME/tool"]},
            "pinfold": {"caches": [{"path": "$HOME/.cache/pip"}, {"path": "$HOME/.cache/uv"}], "caches_size": "64M"}}"#;
    std::fs::write(&profile, text).unwrap();
    std::fs::create_dir(place.home.join("tool")).unwrap();
    std::fs::create_dir_all(place.home.join(".cache/pip")).unwrap();
    std::fs::create_dir_all(place.work.join(".git/hooks")).unwrap();
    std::fs::write(place.work.join(".git/config"), "").unwrap();
    let mut all = vec!["--profile", profile.to_str().unwrap(), "--dry-run"];
    all.extend(options);
    let ended = finish(&mut place.run(&all, &["true"])).expect(0);
    assert_eq!(ended.err(), "");
    ended.out().replace(folder.to_str().unwrap(), "[place]")
}

/// What every machine shows of its own differs; a golden file holds the rest.
fn is_of_this_machine(line: &str) -> bool {
    ["showing /", "linking /"].iter().any(|words| line.starts_with(words))
}

fn golden(name: &str, text: &str) {
    insta::with_settings!({snapshot_path => "../golden", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn the_plan_in_words() {
    let lines = |options: &[&str]| -> String {
        let text = planned(options);
        let (of_this_machine, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| is_of_this_machine(line));
        assert!(of_this_machine.contains(&"showing /usr"), "{text}");
        rest.join("\n")
    };
    golden("plan-in-words", &lines(&["--block-net"]));
    golden(
        "plan-with-network",
        &lines(&["--open-port", "8080", "--listen-port", "3000"]),
    );
}

#[test]
fn the_plan_as_json() {
    let mut all: Value = serde_json::from_str(&planned(&["--block-net", "--json"])).unwrap();
    let keys: Vec<&String> = all["policy"].as_object().unwrap().keys().collect();
    assert_eq!(keys[..3], ["profile", "root", "workdir"]);
    let plan = all["plan"].as_array_mut().unwrap();
    plan.retain(|op| {
        op.get("link").is_none()
            && op["bind"]["source"]
                .as_str()
                .is_none_or(|path| path.starts_with("[place]"))
    });
    for id in ["uid", "gid"] {
        if let Some(ids) = plan.iter_mut().find_map(|op| op.get_mut("map-ids")) {
            assert!(ids[id].take().is_u64());
        }
    }
    golden("plan-as-json", &serde_json::to_string_pretty(plan).unwrap());
}

#[test]
fn a_dry_run_runs_nothing_and_makes_nothing() {
    let place = Place::new();
    let before = std::fs::read_dir(&place.home).unwrap().count();
    let ended = finish(&mut place.sh(&["--dry-run"], "touch made")).expect(0);
    assert!(ended.out().contains("waiting at the gate"));
    assert!(!place.work.join("made").exists());
    assert_eq!(std::fs::read_dir(&place.home).unwrap().count(), before);
    finish(&mut place.run(&["--dry-run"], &["no-such-command"])).expect(0);
}
