use super::{Line, Log};
use serde_json::Value;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn line(name: &str) -> Line {
    Line {
        launch: "0123456789ab".into(),
        name: Some(name.into()),
        verdict: "refused",
        ..Line::default()
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn writes_one_json_object_a_line_with_mode_0600() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.log");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let log = Log::open(&path).unwrap();
    log.record(line("ok.test"));
    log.record(Line {
        port: Some(443),
        sent: Some(7),
        ..line("other.test")
    });
    let lines = lines(&path);
    assert_eq!(lines[0]["name"], "ok.test");
    assert_eq!(
        (&lines[1]["port"], &lines[1]["sent"], lines[1].get("ms")),
        (&443.into(), &7.into(), None)
    );
    assert!(lines[0]["time"].as_f64().unwrap() > 1.7e9);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn text_of_a_client_is_printable_ascii_and_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.log");
    let log = Log::open(&path).unwrap();
    let name = "a\u{1b}[2J\n\u{202e}\u{9b}\u{7f}\u{1f600}\"}";
    log.record(line(name));
    log.record(line(&"\u{fc}".repeat(4000)));
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.iter().all(|b| *b == b'\n' || (b' '..=b'~').contains(b)));
    let lines = lines(&path);
    assert_eq!(lines[0]["name"], name);
    assert_eq!(lines[1]["name"], "\u{fc}".repeat(127));
}

#[test]
fn refuses_links_and_pipes_and_takes_plain_files() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link, pipe) = (
        dir.path().join("real"),
        dir.path().join("link"),
        dir.path().join("pipe"),
    );
    symlink(&real, &link).unwrap();
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(Log::open(&link).is_err());
    assert!(!real.exists());
    assert!(Log::open(&pipe).is_err());
    assert!(Log::open("/dev/null").is_err());
    assert!(Log::open(dir.path().join("absent/egress.log")).is_err());
    assert!(Log::open(&real).is_ok());
}

#[test]
fn stays_within_two_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.log");
    let log = Log::with_size(&path, 1000).unwrap();
    for number in 0..100 {
        log.record(Line {
            id: number,
            ..line("ok.test")
        });
    }
    let aside = dir.path().join("egress.log.1");
    for file in [&path, &aside] {
        assert!(std::fs::metadata(file).unwrap().len() < 1200);
    }
    assert_eq!(lines(&path).last().unwrap()["id"], 99);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn stops_growing_when_it_cannot_be_set_aside_and_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.log");
    let aside = dir.path().join("egress.log.1");
    let log = Log::with_size(&path, 300).unwrap();
    std::fs::create_dir(&aside).unwrap();
    for number in 0..20 {
        log.record(Line {
            id: number,
            ..line("ok.test")
        });
    }
    assert!(std::fs::metadata(&path).unwrap().len() < 450);
    std::fs::remove_dir(&aside).unwrap();
    log.record(line("again.test"));
    let lines = lines(&path);
    assert!(lines[0]["lost"].as_u64().unwrap() > 10);
    assert_eq!(lines[1]["name"], "again.test");
}

#[test]
fn a_full_disk_neither_panics_nor_mixes_lines() {
    // A device that takes nothing stands in for a full disk: the file behind the log is swapped, as open() refuses it.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.log");
    let log = Log::open(&path).unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let real = std::mem::replace(&mut log.state.lock().unwrap().file, full);
    log.record(line("lost.test"));
    {
        let mut state = log.state.lock().unwrap();
        state.file = real;
        // As a write that stopped half way leaves it.
        std::io::Write::write_all(&mut state.file, b"{\"time\":1,\"na").unwrap();
        state.torn = true;
    }
    log.record(line("kept.test"));
    let text = std::fs::read_to_string(&path).unwrap();
    let last: Vec<&str> = text.lines().skip(1).collect();
    assert!(last[0].contains("\"lost\":1"), "{text}");
    assert!(last[1].contains("kept.test"), "{text}");
}
