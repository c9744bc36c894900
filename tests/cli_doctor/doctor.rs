//! The doctor: what it says on a machine that can hold a sandbox, that a planted hole turns it red, and that it leaves
//! nothing behind however it ends.

use crate::place::{Place, Said, User, users};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Whether this machine can hold a sandbox at all; where it must, it is an error that it cannot.
fn can_hold(place: &Place) -> bool {
    let said = place.run(&["doctor", "--json"]);
    let layers = said.json()["layers"].clone();
    let enforced = layers.as_array().unwrap().iter().all(|row| row["state"] == "enforced");
    let must = std::env::var_os("JAIL_MUST_WORK").is_some_and(|value| value == "1");
    assert!(enforced || !must, "{layers:#}");
    if !enforced {
        eprintln!("skipped: no sandbox can be made here: {layers:#}");
    }
    enforced
}

fn probe<'a>(diagnosis: &'a Value, name: &str) -> &'a Value {
    let probes = diagnosis["probes"].as_array().unwrap();
    probes
        .iter()
        .find(|row| row["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn promise<'a>(diagnosis: &'a Value, name: &str) -> &'a Value {
    let rows = diagnosis["promises"].as_array().unwrap();
    rows.iter().find(|row| row["promise"] == name).unwrap()
}

/// What has a real target outside, which any user can reach.
const ALWAYS_PROVEN: [&str; 16] = [
    "read a file that is not granted",
    "write to a file that is not granted",
    "link a file that is not granted",
    "set a set-user-id bit",
    "write to a protected file",
    "make a file in a protected folder",
    "rename a protected folder away",
    "rename the folder above it away",
    "make a file in Pinfold's own folder",
    "connect to a socket outside",
    "connect to an abstract socket outside",
    "connect to a service on the host's loopback",
    "reach the host's loopback through the proxy",
    "connect to the port that is joined to the client",
    "find a descriptor from outside",
    "read a token of the launcher",
];

#[test]
fn the_doctor_says_what_the_kernel_gave_and_every_escape_with_a_control_is_denied() {
    for user in users() {
        let place = Place::new(user);
        if !can_hold(&place) {
            return;
        }
        let said = place.run(&["doctor", "--json"]);
        let diagnosis = said.json();
        assert_eq!(said.code, Some(0), "{user:?}: {diagnosis:#}");
        assert_eq!(diagnosis["ok"], true);
        let mut held = 0;
        for row in diagnosis["probes"].as_array().unwrap() {
            match row["outside"]["result"].as_str().unwrap() {
                "done" => {
                    let inside = row["inside"]["result"].as_str().unwrap();
                    assert!(["denied", "absent", "refused"].contains(&inside), "{user:?}: {row:#}");
                    held += 1;
                }
                _ => assert_ne!(row["verdict"], "held", "{user:?}: {row:#}"),
            }
        }
        assert!(held >= 30, "{user:?}: only {held} attempts have a control");
        for name in ALWAYS_PROVEN {
            assert_eq!(probe(&diagnosis, name)["verdict"], "held", "{user:?}: {name}");
        }
        assert_eq!(diagnosis["promises"].as_array().unwrap().len(), 10);
        assert!(
            diagnosis["kernel"]
                .as_array()
                .unwrap()
                .iter()
                .any(|row| row["name"] == "Landlock")
        );
        assert_eq!(place.left_behind(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn every_profile_is_tried_and_holds() {
    for user in users() {
        let place = Place::new(user);
        if !can_hold(&place) {
            return;
        }
        let listed = place.run(&["profile", "list", "--json"]).json();
        let said = place.run(&["doctor", "--every-profile", "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let all = said.json();
        let names = |rows: &Value, of: fn(&Value) -> &Value| -> Vec<String> {
            let rows = rows.as_array().unwrap().iter();
            rows.map(|row| of(row).as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(
            names(&all, |row| &row["profile"]["name"]),
            names(&listed, |row| &row["name"])
        );
        for diagnosis in all.as_array().unwrap() {
            assert!(diagnosis["probes"].as_array().unwrap().len() > 40, "{diagnosis:#}");
        }
        let both = place.run(&["doctor", "--every-profile", "--profile", "default"]);
        assert_eq!(both.code, Some(2), "{both:?}");
    }
}

#[test]
fn a_profile_that_grants_the_secret_turns_the_doctor_red() {
    for user in users() {
        let place = Place::new(user);
        if !can_hold(&place) {
            return;
        }
        let hole = r#"{"extends": "opencode-server", "filesystem": {"read": ["$TMPDIR"]}}"#;
        let hole = place.profile("hole", hole);
        let said = place.run(&["doctor", "--json", "--profile", hole.to_str().unwrap()]);
        let diagnosis = said.json();
        assert_eq!(said.code, Some(1), "{user:?}: {diagnosis:#}");
        assert_eq!(diagnosis["ok"], false);
        let read = probe(&diagnosis, "read a file that is not granted");
        assert_eq!(
            (&read["verdict"], &read["inside"]["result"]),
            (&"escaped".into(), &"done".into())
        );
        assert_eq!(promise(&diagnosis, "P1 files")["ok"], false);
        assert_eq!(promise(&diagnosis, "P5 processes")["ok"], true);
        let text = place.run(&["doctor", "--profile", hole.to_str().unwrap()]);
        assert!(
            text.out.contains("ESCAPED") && text.out.contains("NOT everything holds"),
            "{text:?}"
        );
    }
}

#[test]
fn a_profile_that_passes_the_token_turns_the_doctor_red() {
    let place = Place::new(User::Own);
    if !can_hold(&place) {
        return;
    }
    let hole = r#"{"extends": "opencode-server", "environment": {"allow_vars": ["OF_THE_LAUNCHER"]}}"#;
    let hole = place.profile("hole", hole);
    let said = place.run(&["doctor", "--json", "--profile", hole.to_str().unwrap()]);
    assert_eq!(said.code, Some(1));
    let diagnosis = said.json();
    assert_eq!(probe(&diagnosis, "read a token of the launcher")["verdict"], "escaped");
    assert_eq!(promise(&diagnosis, "P7 environment")["ok"], false);
}

#[test]
fn a_profile_that_does_not_load_is_told_and_the_layers_are_tried_all_the_same() {
    let place = Place::new(User::Own);
    if !can_hold(&place) {
        return;
    }
    let said = place.run(&["doctor", "--json", "--profile", "nowhere"]);
    let diagnosis = said.json();
    assert_eq!(said.code, Some(1));
    assert!(diagnosis["profile"]["problem"].as_str().unwrap().contains("nowhere"));
    let layers = diagnosis["layers"].as_array().unwrap();
    assert!(layers.iter().all(|row| row["state"] == "enforced"), "{diagnosis:#}");
    assert_eq!(diagnosis["probes"], Value::Array(Vec::new()));
}

#[test]
fn without_user_namespaces_the_doctor_names_the_step_and_the_fix() {
    for user in users() {
        let place = Place::new(user);
        if !can_hold(&place) {
            return;
        }
        // In a user namespace of one's own the number of further ones can be set to none.
        let script = format!(
            "echo 0 >/proc/sys/user/max_user_namespaces && exec '{}' doctor --json",
            place.binary().display()
        );
        let output = place
            .command("unshare")
            .args(["-Ur", "sh", "-c", &script])
            .output()
            .unwrap();
        let said = Said::of(output);
        assert_eq!(said.code, Some(1), "{said:?}");
        let diagnosis = said.json();
        let row = &diagnosis["layers"][0];
        assert_eq!((&row["name"], &row["state"]), (&"namespaces".into(), &"failed".into()));
        assert_eq!(row["errno"], "ENOSPC");
        assert!(
            row["fix"].as_str().unwrap().contains("user.max_user_namespaces"),
            "{row:#}"
        );
        assert_eq!(diagnosis["layers"][1]["state"], "not-reached");
        assert!(
            diagnosis["probes"]
                .as_array()
                .unwrap()
                .iter()
                .all(|row| row["verdict"] != "held")
        );
        assert!(
            diagnosis["promises"]
                .as_array()
                .unwrap()
                .iter()
                .all(|row| row["ok"] == false)
        );
        assert_eq!(place.left_behind(), Vec::<std::path::PathBuf>::new());
    }
}

/// Processes whose command line names the copy of the program, which no other test has.
fn processes_of(binary: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let texts = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    texts.filter(|line| line.contains(binary.to_str().unwrap())).collect()
}

fn comes_true(mut what: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

#[test]
fn nothing_is_left_behind_when_the_doctor_is_interrupted_or_killed() {
    let place = Place::new(User::Own);
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        for delay in [0, 15, 40, 80, 130] {
            let mut command = place.command(place.binary());
            command
                .args(["doctor", "--json"])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut doctor = command.spawn().unwrap();
            assert!(comes_true(
                || !place.left_behind().is_empty() || doctor.try_wait().unwrap().is_some()
            ));
            std::thread::sleep(Duration::from_millis(delay));
            let _ = kill(nix::unistd::Pid::from_raw(doctor.id().try_into().unwrap()), signal);
            doctor.wait().unwrap();
            let gone = comes_true(|| place.left_behind().is_empty() && processes_of(&place.binary()).is_empty());
            assert!(
                gone,
                "{signal} after {delay} ms: {:?} {:?}",
                place.left_behind(),
                processes_of(&place.binary())
            );
        }
    }
}
