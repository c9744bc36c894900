//! P10: the record says what the kernel gave; and what is kept of an ended agent until somebody has seen it.

use crate::agent::fake;
use crate::pane::Terminal;
use crate::place::{Place, command_of, pinfold};
use serde_json::Value;
use std::ffi::OsStr;

fn start(place: &Place, behaviour: &str, more: &[&str]) -> Terminal {
    let mut terminal = Terminal::open();
    let (program, binary) = (pinfold(), fake(place, behaviour));
    let mut words = ["start", "--host", "terminal", "--binary"].map(OsStr::new).to_vec();
    words.insert(0, program.as_os_str());
    words.push(binary.as_os_str());
    words.extend(more.iter().map(OsStr::new));
    terminal.lead(place, &words);
    terminal
}

/// A field of `/proc/PID/status`.
fn status(pid: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_record_says_what_the_kernel_really_gave() {
    let place = Place::new();
    let mut terminal = start(&place, "good", &["--memory", "1G", "--tmp-size", "64M"]);
    terminal.shows("CLIENT READY");
    let session = place.session_in("running");
    let own = status("self", "Seccomp_filters");
    for side in ["server", "client"] {
        let given = &session[side]["given"];
        let pid = command_of(&session, side).to_string();
        // Each word against the kernel's own.
        assert_eq!(
            given["seccompFilters"],
            status(&pid, "Seccomp_filters") - own,
            "{given:#}"
        );
        let abi = pinfold::sys::support::landlock_abi().unwrap();
        assert_eq!(given["landlock"]["abi"], abi);
        assert_eq!(given["landlock"]["whole"], abi >= 6);
        assert!(
            given["landlock"]["rights"]
                .as_array()
                .unwrap()
                .contains(&"ReadFile".into())
        );
        let names: Vec<&str> = given["namespaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_str().unwrap())
            .collect();
        assert_eq!(names.len(), 7);
        for name in names {
            let name = if name == "ns" { "mnt" } else { name };
            let link = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap();
            assert_ne!(link(&pid), link("self"), "{name}");
        }
    }
    assert_eq!(session["client"]["given"]["limits"], Value::Array(Vec::new()));
    let limit = &session["server"]["given"]["limits"][0];
    assert_eq!(
        (&limit["limit"], &limit["most"]),
        (&"memory".into(), &(1_u64 << 30).into())
    );
    if limit["by"] == "RLIMIT_DATA" {
        let server = command_of(&session, "server");
        let limits = std::fs::read_to_string(format!("/proc/{server}/limits")).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max data size")).unwrap();
        assert!(line.contains("1073741824"), "{line}");
    }
    let info = place.pinfold(["info"]);
    let lines: Vec<&str> = info
        .stdout
        .lines()
        .filter(|line| line.contains("Landlock ABI"))
        .collect();
    assert_eq!(lines.len(), 2, "{}", info.stdout);
    assert!(
        lines[0].starts_with("server has") && lines[0].contains("memory 1073741824 by "),
        "{}",
        lines[0]
    );
    terminal.write(b"q");
    assert_eq!(terminal.status(), Some(7));
    assert!(place.session()["server"]["given"].is_object(), "it stays in the record");
}

#[test]
fn an_ended_agent_is_forgotten_once_somebody_has_seen_its_end() {
    let place = Place::new();
    let mut terminal = start(&place, "exits", &[]);
    assert_eq!(terminal.status(), Some(125), "{}", terminal.text());
    let log = place.session()["serverLog"].as_str().unwrap().to_owned();
    let answer = place.json(["prune", "--json"]);
    assert_eq!(answer["pruned"], Value::Array(Vec::new()));
    let reason = answer["kept"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("nobody has looked"), "{reason}");
    assert_eq!(place.pinfold(["info"]).status, Some(0));
    let said = place.pinfold(["prune"]);
    assert!(
        said.stdout.starts_with("forgotten: pinfold-opencode-"),
        "{}",
        said.stdout
    );
    assert!(place.sessions().is_empty());
    assert!(!std::path::Path::new(&log).exists());
    // One that runs is not forgotten, by any name.
    let mut terminal = start(&place, "good", &[]);
    terminal.shows("CLIENT READY");
    let name = place.session_in("running")["sessionName"].as_str().unwrap().to_owned();
    let said = place.pinfold(["prune", "--all", &name]);
    assert_eq!(said.status, Some(1));
    assert!(said.stdout.contains("it has not ended"), "{}", said.stdout);
    terminal.write(b"q");
    assert_eq!(terminal.status(), Some(7));
    place.nothing_is_left();
    assert_eq!(place.pinfold(["prune", &name]).status, Some(0));
    assert!(place.sessions().is_empty());
}
