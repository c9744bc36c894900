//! `explain`, `why`, `profile` and `probe`, as a person and a script meet them.

use crate::place::{Place, User};
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

fn place() -> Place {
    Place::new(User::Own)
}

#[test]
fn explain_names_each_grant_with_its_origin() {
    let place = place();
    let text = place.run(&["explain", "--allow-domain", "example.org"]);
    assert_eq!((text.code, text.err.as_str()), (Some(0), ""));
    let work = place.at("work").canonicalize().unwrap();
    assert!(
        text.out.contains(&format!("workspace {}", work.display())),
        "{}",
        text.out
    );
    assert!(
        text.out
            .contains("example.org  allowed on 443, 80  [command line --allow-domain]"),
        "{}",
        text.out
    );
    let json = place.run(&["explain", "--json"]).json();
    assert_eq!(json["profile"], "default");
    assert!(
        json["lines"]
            .as_array()
            .unwrap()
            .iter()
            .any(|line| line["section"] == "protected" || line["effect"] == "read and write")
    );
    assert_eq!(json["agent_missing"], serde_json::Value::Null);
}

#[test]
fn explain_works_without_the_agent_and_says_that_it_is_missing() {
    let place = place();
    let text = place.run(&["explain", "--profile", "opencode-server"]);
    assert_eq!(text.code, Some(0));
    assert!(text.err.contains("opencode is not installed"), "{}", text.err);
    assert!(
        text.out.contains("$AGENT_BINARY  left out: the agent is not installed"),
        "{}",
        text.out
    );
    let json = place.run(&["explain", "--profile", "opencode-server", "--json"]).json();
    assert!(json["agent_missing"].as_str().unwrap().contains("not installed"));
    assert!(
        std::fs::read_dir(place.at("home")).unwrap().next().is_none(),
        "nothing was made"
    );
}

#[test]
fn explain_names_the_agents_program_where_it_is_installed() {
    let place = place();
    let bin = place.folder("bin");
    // Any program of this machine will do: nothing is run.
    std::fs::copy("/usr/bin/env", bin.join("opencode")).unwrap();
    let output = place
        .command(place.binary())
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .args(["explain", "--profile", "opencode-server"])
        .output()
        .unwrap();
    let said = crate::place::Said::of(output);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let line = format!(
        "{}  read  [opencode-server filesystem.read_file[0]: OpenCode itself]",
        bin.join("opencode").display()
    );
    assert!(said.out.contains(&line), "{}", said.out);
}

#[test]
fn why_answers_by_its_status_and_names_the_line() {
    let place = place();
    for (subject, code, says) in [
        (".", 0, "may be read and written"),
        ("/usr/bin/env", 0, "may be read"),
        ("~/.ssh/id_ed25519", 1, "not visible"),
        ("/etc/shadow", 1, "no line grants"),
        ("../pinfold", 1, "not visible"),
        ("example.org", 1, "no rule allows"),
        ("https://example.org/a/b", 1, "no rule allows"),
        ("unix:@dbus", 1, "never cross"),
        ("unix:/run/nothing.sock", 1, "denied"),
    ] {
        let said = place.run(&["why", subject]);
        assert_eq!(said.code, Some(code), "{subject}: {said:?}");
        assert!(said.out.contains(says), "{subject}: {said:?}");
    }
    let allowed = place.run(&["why", "example.org:8443", "--allow-domain", "example.org:8443"]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let json = place.run(&["why", "api.openai.com", "--profile", "opencode-server", "--json"]);
    assert_eq!(json.code, Some(0));
    assert_eq!(json.json()["origin"]["why"], "provider OpenAI");
}

#[test]
fn why_takes_bytes_and_tells_a_wrong_question_from_a_denial() {
    let place = place();
    let odd = place.at("work").join(OsStr::from_bytes(b"a\xff\n\x1b[2J"));
    std::fs::write(&odd, "").unwrap();
    let output = place.command(place.binary()).arg("why").arg(&odd).output().unwrap();
    let said = crate::place::Said::of(output);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.out.contains('\x1b'), "{said:?}");
    for wrong in [
        &["why", "example.org:0"][..],
        &["why", ".", "--profile", "none"],
        &["why"],
    ] {
        assert_eq!(place.run(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn profiles_are_listed_shown_and_checked() {
    let place = place();
    let own = place.at("home/.config/pinfold/profiles");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(
        own.join("mine.json"),
        r#"{"extends": "default", "meta": {"description": "my \u001b[31mown"}}"#,
    )
    .unwrap();
    std::fs::write(own.join("bad.json"), r#"{"filesystem": {"raed": []}}"#).unwrap();
    let list = place.run(&["profile", "list"]);
    assert!(list.out.contains("mine") && !list.out.contains('\x1b'), "{list:?}");
    let rows = place.run(&["profile", "list", "--json"]).json();
    let row = |name: &str| {
        rows.as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(row("mine")["description"], "my \u{1b}[31mown");
    assert!(row("bad")["problem"].as_str().unwrap().contains("filesystem.raed"));
    assert_eq!(row("opencode-server")["problem"], serde_json::Value::Null);
    let shown = place.run(&["profile", "show", "system"]);
    assert_eq!(shown.out, include_str!("../../profiles/system.json"));
    let good = place.run(&["profile", "check", "mine", "--json"]);
    assert_eq!((good.code, good.json()["ok"].as_bool()), (Some(0), Some(true)));
    let bad = place.run(&["profile", "check", "bad"]);
    assert_eq!(bad.code, Some(1));
    assert!(
        bad.err.contains("filesystem.raed") && bad.err.contains("filesystem.read"),
        "{bad:?}"
    );
}

#[test]
fn a_probe_prints_what_it_met_and_fails_only_on_wrong_usage() {
    let place = place();
    let json = place.run(&["probe", "read", "/nowhere"]);
    assert_eq!(json.code, Some(0));
    assert_eq!(json.json()["result"], "absent");
    for wrong in [
        &["probe", "nothing"][..],
        &["probe", "read"],
        &["probe"],
        &["probe", "--batch", "read"],
    ] {
        assert_eq!(place.run(wrong).code, Some(2), "{wrong:?}");
    }
    let batch = |text: &str| {
        let mut command = place.command(place.binary());
        command
            .args(["probe", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        crate::place::Said::of(child.wait_with_output().unwrap())
    };
    let met = batch(r#"[{"attempt": "own-tcp"}, {"attempt": "read", "args": [[47, 255]]}]"#);
    assert_eq!(met.code, Some(0), "{met:?}");
    let met = met.json();
    assert_eq!(
        (&met[0]["result"], &met[1]["result"]),
        (&"done".into(), &"absent".into())
    );
    for wrong in [
        "",
        "{}",
        r#"[{"attempt": "nothing"}]"#,
        r#"[{"attempt": "read", "args": []}]"#,
    ] {
        assert_eq!(batch(wrong).code, Some(2), "{wrong}");
    }
}
