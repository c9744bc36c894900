//! `--dry-run`: what would be done, and nothing is.

use crate::place::{Place, finish};
use serde_json::Value;

/// The plan under a profile that does not depend on what this machine has installed, without this test's own paths.
fn planned(options: &[&str]) -> String {
    let place = Place::new();
    let folder = place.path();
    let profile = folder.join("bare.json");
    std::fs::write(
        &profile,
        r#"{"meta": {"name": "bare"}, "workdir": {"access": "readwrite"}, "filesystem": {"read": ["$HOME/tool"]}}"#,
    )
    .unwrap();
    std::fs::create_dir(place.home.join("tool")).unwrap();
    finish(place.command("git").args(["init", "-q"])).expect(0);
    let mut all = vec!["--profile", profile.to_str().unwrap(), "--dry-run"];
    all.extend(options);
    let ended = finish(&mut place.run(&all, &["true"])).expect(0);
    assert_eq!(ended.err(), "");
    let ids = (nix::unistd::geteuid().to_string(), nix::unistd::getegid().to_string());
    let text = ended.out().replace(folder.to_str().unwrap(), "[place]");
    text.replace(&format!("\"uid\": {}", ids.0), "\"uid\": [uid]")
        .replace(&format!("\"gid\": {}", ids.1), "\"gid\": [gid]")
}

fn golden(name: &str, text: &str) {
    insta::with_settings!({snapshot_path => "../golden", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn the_plan_in_words() {
    golden("plan-in-words", &planned(&["--block-net"]));
    golden(
        "plan-with-network",
        &planned(&["--open-port", "8080", "--listen-port", "3000"]),
    );
}

#[test]
fn the_plan_as_json() {
    let text = planned(&["--block-net", "--json"]);
    let plan: Value = serde_json::from_str(&text.replace("[uid]", "0").replace("[gid]", "0")).unwrap();
    assert!(plan["plan"].as_array().unwrap().len() > 10);
    golden("plan-as-json", &text);
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
