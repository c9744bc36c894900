//! `pinfold profile` as a person or a script meets it: the schema, one profile, and whether a launch would take it.

use crate::place::{Place, finish, program};
use serde_json::{Value, json};

fn written(place: &Place, profile: &Value) -> String {
    let file = place.path().join("mine.json");
    std::fs::write(&file, profile.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// What is said first on stderr.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn check_refuses_what_run_refuses_and_in_the_same_words() {
    let place = Place::new();
    let own = place.home.join(".config/pinfold");
    std::fs::create_dir_all(&own).unwrap();
    for profile in [
        json!({"filesystem": {"read": ["/"]}}),
        json!({"filesystem": {"allow": ["/etc/x"]}}),
        json!({"filesystem": {"allow": [place.home]}}),
        json!({"filesystem": {"read": [own]}}),
        json!({"filesystem": {"read": ["relative"]}}),
        json!({"filesystem": {"read": ["$NO_SUCH/x"]}}),
        json!({"filesystem": {"deny": ["$WORKDIR/**/x"]}}),
        json!({"filesystem": {"read_file": ["$WORKDIR"]}}),
        json!({"network": {"allow_domain": ["*.com"]}}),
        json!({"network": {"open_port": [3129]}}),
        json!({"pinfold": {"services": {"x.test": "8.8.8.8:1"}}}),
        json!({"pinfold": {"mounts": [{"at": "/mine", "from": "/no/such/folder", "access": "read"}]}}),
        json!({"pinfold": {"allow_missing": ["P8"]}}),
        json!({"commands": {"deny": ["rm"]}}),
        json!({"extends": "nothing-like-it"}),
        json!({"filesytem": {}}),
    ] {
        let file = written(&place, &profile);
        let ran = finish(&mut place.run(&["--profile", &file], &["true"])).expect(125);
        let checked = finish(place.command(program()).args(["profile", "check", &file])).expect(1);
        assert_eq!(first_line(&checked.err()), first_line(&ran.err()), "{profile}");
        assert!(first_line(&ran.err()).len() > 20, "{profile}: {}", ran.err());
    }
    let file = written(
        &place,
        &json!({"extends": "default", "filesystem": {"read": ["$HOME/not/there"]}}),
    );
    let good = finish(place.command(program()).args(["profile", "check", &file])).expect(0);
    assert!(
        good.out().contains("does not exist"),
        "what is left out is told: {}",
        good.out()
    );
    finish(&mut place.run(&["--profile", &file], &["true"])).expect(0);
}

#[test]
fn check_answers_where_no_launch_could_be() {
    let place = Place::new();
    let file = written(
        &place,
        &json!({"extends": "default", "filesystem": {"read": ["/usr/share"]}}),
    );
    let mut command = place.command(program());
    let told = finish(
        command
            .current_dir(&place.home)
            .args(["profile", "check", "--json", &file]),
    )
    .expect(0);
    let told: Value = serde_json::from_str(&told.out()).unwrap();
    assert_eq!((&told["ok"], &told["workspace"]), (&json!(true), &json!(false)));
    let bad = written(&place, &json!({"filesystem": {"read": ["/"]}}));
    let mut command = place.command(program());
    finish(command.current_dir(&place.home).args(["profile", "check", &bad])).expect(1);
}

#[test]
fn the_schema_is_printed_and_is_the_published_one() {
    let place = Place::new();
    for arguments in [&["profile", "schema"][..], &["profile", "schema", "--json"]] {
        let printed = finish(place.command(program()).args(arguments)).expect(0);
        let printed: Value = serde_json::from_str(&printed.out()).unwrap();
        let published: Value = serde_json::from_str(include_str!("../../profiles/schema.json")).unwrap();
        assert_eq!(printed, published);
    }
}

#[test]
fn a_profile_is_shown_with_its_file() {
    let place = Place::new();
    let shown = finish(place.command(program()).args(["profile", "show", "claude", "--json"])).expect(0);
    let shown: Value = serde_json::from_str(&shown.out()).unwrap();
    assert_eq!(shown["file"], "shipped:claude");
    assert_eq!(shown["profile"]["meta"]["name"], "claude");
    finish(
        place
            .command(program())
            .args(["profile", "show", "nothing-like-it", "--json"]),
    )
    .expect(1);
}

#[test]
fn every_shipped_profile_is_good_and_runs_a_command() {
    let place = Place::new();
    let listed = finish(place.command(program()).args(["profile", "list", "--json"])).expect(0);
    let listed: Value = serde_json::from_str(&listed.out()).unwrap();
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    for name in [
        "default",
        "strict",
        "claude",
        "codex",
        "gemini",
        "pi",
        "opencode-server",
        "opencode-client",
    ] {
        assert!(names.contains(&name), "{names:?}");
        finish(place.command(program()).args(["profile", "check", name])).expect(0);
    }
    for name in ["strict", "claude", "codex", "gemini", "pi"] {
        finish(&mut place.run(&["--profile", name], &["true"])).expect(0);
    }
}

#[test]
fn an_agents_state_is_kept_apart_from_the_one_outside() {
    let place = Place::new();
    let outside = place.home.join(".claude");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("settings.json"), "{\"mine\": 1}").unwrap();
    std::fs::write(outside.join(".credentials.json"), "the sign-in outside").unwrap();
    let run = |script: &str| finish(&mut place.run(&["--profile", "claude"], &["sh", "-c", script]));
    let first = run(
        "cat ~/.claude/settings.json; cat ~/.claude/.credentials.json; echo kept > ~/.claude/state; echo $CLAUDE_CONFIG_DIR",
    );
    let first = first.expect(0);
    assert_eq!(first.out(), format!("{{\"mine\": 1}}{}\n", outside.display()));
    let changed = run("echo '{\"hooks\": 1}' > ~/.claude/settings.json").code();
    assert_ne!(changed, 0);
    assert_eq!(
        run("cat ~/.claude/state").expect(0).out(),
        "kept\n",
        "control: it is kept for the next launch"
    );
    assert!(!outside.join("state").exists() && outside.join(".credentials.json").exists());
    let hooks = std::fs::read_to_string(outside.join("settings.json")).unwrap();
    assert_eq!(hooks, "{\"mine\": 1}");
}

#[test]
fn strict_has_nothing_of_the_home_folder_and_no_network() {
    let place = Place::new();
    std::fs::write(place.home.join(".gitconfig"), "[user]\n\tname = Ann\n").unwrap();
    let script = "ls -A ~; cat /proc/net/dev | wc -l; echo x > f && ulimit -n";
    let plain = finish(&mut place.run::<&str, _>(&[], &["sh", "-c", script])).expect(0);
    assert!(plain.out().starts_with(".gitconfig\n"), "control: {}", plain.out());
    let strict = finish(&mut place.run(&["--profile", "strict"], &["sh", "-c", script])).expect(0);
    assert_eq!(strict.out(), "3\n4096\n");
    let explained = finish(place.command(program()).args(["explain", "--profile", "strict"])).expect(0);
    assert!(explained.out().contains("nothing leaves"), "{}", explained.out());
}
