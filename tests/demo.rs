//! `pinfold demo` as a person or CI calls it: the real OpenCode, the real kernel, no terminal of its own.
//!
//! OpenCode is the one that `PINFOLD_TEST_OPENCODE` names, else the one that `bin/run.sh test` installs into
//! `target/opencode`. Without either the test says so and passes, unless `JAIL_MUST_WORK=1`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const PINFOLD: &str = env!("CARGO_BIN_EXE_pinfold");

/// OpenCode takes several seconds of processor time to start: one at a time keeps each within its patience.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The program under test, or nothing after saying why.
fn opencode() -> Option<PathBuf> {
    let named = std::env::var_os("PINFOLD_TEST_OPENCODE").map(PathBuf::from);
    let found = named.or_else(installed);
    if found.is_none() {
        let reason = "no OpenCode: set PINFOLD_TEST_OPENCODE, or let `bin/run.sh test` install it";
        let must_work = std::env::var_os("JAIL_MUST_WORK").is_some_and(|value| value == "1");
        assert!(!must_work, "{reason}");
        eprintln!("skipped: {reason}");
    }
    found
}

fn installed() -> Option<PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/opencode/node_modules");
    let packages = std::fs::read_dir(modules).ok()?;
    let programs = packages.map(|entry| entry.unwrap().path().join("bin/opencode"));
    programs.filter(|path| path.is_file()).min()
}

/// A demonstration with a home and a folder for temporary files of its own.
struct Demo {
    folder: tempfile::TempDir,
}

impl Demo {
    fn new() -> Demo {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "tmp", "empty"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Demo { folder }
    }

    fn command(&self, arguments: &[&str], path: &str) -> Command {
        let mut command = Command::new(PINFOLD);
        command.arg("demo").args(arguments).env_clear();
        command.env("PATH", path).env("HOME", self.folder.path().join("home"));
        command.env("TMPDIR", self.folder.path().join("tmp"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Nothing of it may be left in its folder for temporary files.
    fn assert_clean(&self) {
        let left: Vec<_> = std::fs::read_dir(self.folder.path().join("tmp")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

fn path() -> String {
    std::env::var("PATH").unwrap()
}

#[test]
fn work_is_done_and_every_way_out_is_denied() {
    let Some(opencode) = opencode() else { return };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let demo = Demo::new();
    let arguments = ["--json", "--binary", opencode.to_str().unwrap()];
    let output = demo.command(&arguments, &path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["ok"], true);
    assert_eq!(json["problems"], serde_json::json!([]));
    let attempts = json["attempts"].as_array().unwrap();
    let named = |words: &str| {
        let found = attempts
            .iter()
            .find(|row| row["attempt"].as_str().unwrap().contains(words));
        found.unwrap_or_else(|| panic!("{words:?} was not tried"))
    };
    for words in [
        "~/.ssh",
        "loopback",
        "multiplexer",
        "hook",
        ".git away",
        "not allowed",
        "server's port",
        "signal",
    ] {
        let row = named(words);
        assert_eq!(row["outside"]["result"], "worked", "{row}");
        assert_eq!(row["inside"]["result"], "denied", "{row}");
    }
    assert!(attempts.len() >= 16, "{}", attempts.len());
    for side in json["sandboxes"].as_array().unwrap() {
        assert!(side["processes"].as_u64().unwrap() >= 2, "{side}");
    }
    let logs = json["logs"].as_array().unwrap();
    assert_eq!(logs.len(), 2);
    let log = |index: usize| std::fs::read_to_string(logs[index].as_str().unwrap()).unwrap();
    assert!(log(0).contains("listening"));
    let decided = |name: &str, verdict: &str| {
        let lines: Vec<Value> = log(1).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines
            .iter()
            .any(|line| line["name"] == name && line["verdict"] == verdict)
    };
    assert!(
        decided("model.pinfold", "allowed") && decided("localhost", "refused"),
        "{}",
        log(1)
    );
    assert!(!decided("localhost", "allowed"));
    demo.assert_clean();
}

#[test]
fn an_interrupted_demonstration_leaves_nothing() {
    let Some(opencode) = opencode() else { return };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let demo = Demo::new();
    let arguments = ["--binary", opencode.to_str().unwrap()];
    let child = demo.command(&arguments, &path()).spawn().unwrap();
    let is_server = |words: &String| words.contains("serve\0--hostname");
    let runs = || processes_below(&demo.folder).iter().any(is_server);
    let begun = Instant::now();
    while !runs() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the launch never came");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(
        told(&output).contains("pinfold: interrupted (SIGINT)"),
        "{}",
        told(&output)
    );
    assert_eq!(processes_below(&demo.folder), Vec::<String>::new());
    demo.assert_clean();
}

/// Command lines of processes that work in the folder: the launch and all that is inside its sandboxes.
fn processes_below(folder: &tempfile::TempDir) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let here = all.filter(|entry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder.path().join("tmp")))
    });
    here.map(|entry| String::from_utf8_lossy(&std::fs::read(entry.path().join("cmdline")).unwrap_or_default()).into())
        .collect()
}

#[test]
fn says_what_is_missing_and_how_to_get_it() {
    let demo = Demo::new();
    let empty = demo.folder.path().join("empty");
    let output = demo.command(&["--json"], empty.to_str().unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["ok"], &json["errorKind"]),
        (&Value::Bool(false), &"not-found".into())
    );
    let text = told(&output);
    assert!(
        text.contains("npm is not on PATH") && text.contains("apt install npm"),
        "{text}"
    );
    let program = ["--binary", "/bin/true"];
    let output = demo.command(&program, empty.to_str().unwrap()).output().unwrap();
    let text = told(&output);
    assert!(
        text.contains("git is not installed") && text.contains("apt install git"),
        "{text}"
    );
    demo.assert_clean();
}
