//! Records that are damaged, foreign, out of date or cannot be written.

use crate::agent::fake;
use crate::pane::Terminal;
use crate::place::{LIMIT, Place, pinfold, until};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// `start` in the terminal until the client is up.
#[track_caller]
fn start(place: &Place, terminal: &mut Terminal) -> Value {
    let (program, binary) = (pinfold(), fake(place, "good"));
    let words = ["start", "--host", "terminal", "--binary"].map(OsStr::new);
    terminal.lead(
        place,
        &[&[program.as_os_str()], &words[..], &[binary.as_os_str()]].concat(),
    );
    terminal.shows("CLIENT READY");
    place.session_in("running")
}

fn panes(place: &Place) -> PathBuf {
    place.state().join("panes")
}

#[test]
fn damaged_and_newer_records_stop_nothing_and_are_told() {
    let place = Place::new();
    std::fs::create_dir_all(panes(&place)).unwrap();
    let newer = r#"{"version": 99, "paneId": "x"}"#;
    let twice = r#"{"version": 1, "version": 1}"#;
    for (name, text) in [
        ("empty", ""),
        ("garbage", "\0\u{1b}[2J{"),
        ("newer", newer),
        ("list", "[]"),
        ("twice", twice),
    ] {
        std::fs::write(panes(&place).join(format!("{name}.json")), text).unwrap();
    }
    std::fs::create_dir(panes(&place).join("folder.json")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", panes(&place).join("link.json")).unwrap();
    let said = place.pinfold(["list"]);
    assert_eq!(
        (said.status, said.stdout.as_str()),
        (Some(0), "no sessions; `pinfold start` begins one\n")
    );
    for words in [
        "empty.json cannot be used: it is empty",
        "a newer pinfold wrote it (version 99)",
        "it was set aside as",
    ] {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    assert!(!said.stderr.contains('\u{1b}'), "{:?}", said.stderr);
    assert_eq!(
        std::fs::read_to_string(panes(&place).join("newer.json")).unwrap(),
        newer
    );
    let mut terminal = Terminal::open();
    let record = start(&place, &mut terminal);
    // Its own record is damaged while it runs: it is not lost, and it is ended by its key.
    terminal.write(b"q");
    assert_eq!(terminal.status(), Some(7));
    let found = place.sessions();
    assert_eq!((found.len(), &found[0]["launchId"]), (1, &record["launchId"]));
    place.nothing_is_left();
}

#[test]
fn a_session_whose_record_is_damaged_while_it_runs_still_ends_well() {
    let place = Place::new();
    let mut terminal = Terminal::open();
    start(&place, &mut terminal);
    let files = std::fs::read_dir(panes(&place))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let file = files
        .filter(|path| path.extension() == Some(OsStr::new("json")))
        .last()
        .unwrap();
    std::fs::write(file, "{").unwrap();
    assert!(place.sessions().is_empty());
    terminal.write(b"q");
    let status = terminal.status();
    assert!(
        status.is_some_and(|status| status != 0),
        "{status:?}: {}",
        terminal.text()
    );
    place.nothing_is_left();
}

/// A process that a wrong signal would end.
struct Bystander(Child);

impl Bystander {
    fn start() -> Bystander {
        let mut command = std::process::Command::new("sleep");
        Bystander(command.arg("600").stdin(Stdio::null()).spawn().unwrap())
    }
    fn record(&self) -> Value {
        let pid = pinfold::base::Pid::new(i32::try_from(self.0.id()).unwrap()).unwrap();
        serde_json::to_value(pinfold::base::ProcessRecord::of(pid).unwrap()).unwrap()
    }
    #[track_caller]
    fn lives(&mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "it was signalled");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_only_has_the_number_of_a_bridge_is_never_signalled() {
    let place = Place::new();
    let mut terminal = Terminal::open();
    let record = start(&place, &mut terminal);
    terminal.write(b"q");
    terminal.status();
    let mut bystander = Bystander::start();
    let file = std::fs::read_dir(panes(&place))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let file = file
        .filter(|path| path.extension() == Some(OsStr::new("json")))
        .last()
        .unwrap();
    let of_another_start = |mut bridge: Value| {
        bridge["startTicks"] = json!(bridge["startTicks"].as_u64().unwrap() + 1);
        bridge
    };
    let of_another_boot = |mut bridge: Value| {
        bridge["bootId"] = json!("00000000-0000-0000-0000-000000000000");
        bridge
    };
    for bridge in [
        of_another_start(bystander.record()),
        of_another_boot(bystander.record()),
    ] {
        let mut record = record.clone();
        record["bridge"] = bridge;
        std::fs::write(&file, record.to_string()).unwrap();
        for verb in ["stop", "verify"] {
            let said = place.pinfold([verb]);
            assert_eq!(said.status, Some(1));
            assert!(said.stderr.contains("no session is running"), "{}", said.stderr);
            bystander.lives();
        }
        let after = place.session();
        assert_eq!(after["lifecycleState"], "failed");
        assert_eq!(
            after["lastError"]["message"],
            "the bridge ended without recording its exit"
        );
    }
    // The control: with its true identity it is what `stop` means.
    let mut record = record;
    record["bridge"] = bystander.record();
    std::fs::write(&file, record.to_string()).unwrap();
    place.pinfold(["stop"]);
    until(LIMIT, "the named process ends", || bystander.0.try_wait().unwrap());
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing() {
    if !nix::unistd::geteuid().is_root() {
        // The same suite runs as root.
        eprintln!("skipped: a full disk is made by mounting a small one, which takes root");
        return;
    }
    let mut failures = 0;
    for pages in [1, 2, 3, 4, 6, 8, 64] {
        let mut place = Place::new();
        let small = place.path().join("small");
        std::fs::create_dir(&small).unwrap();
        place.variables.push(("XDG_STATE_HOME".into(), small.clone().into()));
        let script = format!(
            "mount -t tmpfs -o mode=700,size={}k none \"$1\" && shift && exec \"$@\"",
            pages * 4
        );
        let (program, binary) = (pinfold(), fake(&place, "stray"));
        let words = ["unshare", "-m", "sh", "-c", &script, "sh"].map(OsStr::new);
        let start = ["start", "--host", "terminal", "--binary"].map(OsStr::new);
        let words = [
            &words[..],
            &[small.as_os_str(), program.as_os_str()],
            &start[..],
            &[binary.as_os_str()],
        ]
        .concat();
        let mut terminal = Terminal::open();
        let before = terminal.modes();
        terminal.lead(&place, &words);
        let ended = until(LIMIT, "it ends or runs", || {
            let ended = terminal.leader.as_mut().unwrap().try_wait().unwrap();
            (ended.is_some() || terminal.text().contains("CLIENT READY")).then_some(ended.is_some())
        });
        if !ended {
            terminal.write(b"q");
        }
        let status = terminal.status();
        match ended {
            true => {
                failures += 1;
                assert_eq!(status, Some(125), "{pages}: {}", terminal.text());
                assert!(
                    terminal.text().contains("No space left on device"),
                    "{pages}: {}",
                    terminal.text()
                );
            }
            false => assert!(status.is_some(), "{pages}: {}", terminal.text()),
        }
        assert_eq!(terminal.modes(), before);
        place.nothing_is_left();
    }
    assert!((1..7).contains(&failures), "{failures} of 7 sizes were too small");
}
