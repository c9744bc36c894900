//! `bin/run.sh` as a person or Herdr calls it: through links, from other folders, with and without a binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/run.sh");

/// One test at a time: a file that another thread's child still holds open for writing cannot be executed (ETXTBSY).
static TURN: Mutex<()> = Mutex::new(());

struct Place {
    folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// A package folder with an odd name that holds the script and nothing else.
fn package() -> (Place, PathBuf) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = TempDir::new().unwrap();
    let root = place.path().join("it's a \"pinfold\" $(exit 3)");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::copy(SCRIPT, root.join("bin/run.sh")).unwrap();
    (
        Place {
            folder: place,
            _turn: turn,
        },
        root,
    )
}

/// A program that prints its folder and each of its arguments on a line, and exits with 7.
fn program(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(
        path,
        "#!/bin/sh\nprintf '%s\\n' \"${0##*/}\" \"$(pwd -P)\" \"$@\"\nexit 7\n",
    )
    .unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn call(script: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(script);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir("/");
    command.envs(variables.iter().copied()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn passes_verb_arguments_folder_and_status_on_unchanged() {
    let (_place, root) = package();
    program(&root.join("bin/pinfold"));
    let output = call(
        &root.join("bin/run.sh"),
        &["run", "--allow", "a b", "--", "-x", "$(y)", ""],
        &[],
    );
    assert_eq!(out(&output), "pinfold\n/\nrun\n--allow\na b\n--\n-x\n$(y)\n\n");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stderr, b"");
}

#[test]
fn finds_its_folder_through_links() {
    let (place, root) = package();
    program(&root.join("target/release/pinfold"));
    let (first, second) = (
        place.folder.path().join("first link"),
        place.folder.path().join("second"),
    );
    symlink(root.join("bin/run.sh"), &first).unwrap();
    symlink("first link", &second).unwrap();
    for link in [first, second] {
        assert_eq!(out(&call(&link, &["list"], &[])), "pinfold\n/\nlist\n");
    }
}

#[test]
fn prefers_the_named_binary_then_the_installed_one() {
    let (place, root) = package();
    for name in ["target/release/pinfold", "bin/pinfold"] {
        program(&root.join(name));
    }
    std::fs::write(root.join("target/release/pinfold"), "#!/bin/sh\necho the built one\n").unwrap();
    assert!(out(&call(&root.join("bin/run.sh"), &["list"], &[])).starts_with("pinfold\n"));
    let named = place.folder.path().join("named");
    program(&named);
    let variables = [("PINFOLD_BINARY", named.to_str().unwrap())];
    assert!(out(&call(&root.join("bin/run.sh"), &["list"], &variables)).starts_with("named\n"));
    std::fs::remove_file(&named).unwrap();
    let output = call(&root.join("bin/run.sh"), &["list"], &variables);
    assert_eq!(
        output.status.code(),
        Some(127),
        "a named binary that is gone is not replaced in silence"
    );
}

#[test]
fn says_what_to_do_when_there_is_no_binary() {
    let (_place, root) = package();
    let output = call(&root.join("bin/run.sh"), &["list"], &[]);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(127), ""));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cargo build --release --locked"));
}

#[test]
fn gives_an_action_its_result_line_when_there_is_no_binary() {
    let (_place, root) = package();
    let output = call(
        &root.join("bin/run.sh"),
        &["action"],
        &[("HERDR_PLUGIN_ACTION_ID", "start\"\\\n-agent")],
    );
    assert_eq!(output.status.code(), Some(127));
    let line = out(&output);
    let json = line
        .strip_prefix("HERDR_SANDBOX_RESULT: ")
        .expect("the result line comes first");
    let result: serde_json::Value = serde_json::from_str(json).unwrap();
    let fields = ["schemaVersion", "plugin", "action", "ok", "errorKind", "message"];
    assert_eq!(result.as_object().unwrap().keys().collect::<Vec<_>>(), fields);
    assert_eq!(result["action"], "start\"\\-agent");
    assert_eq!(
        (&result["ok"], &result["errorKind"]),
        (&false.into(), &"startup".into())
    );
}

#[test]
fn demo_uses_a_current_binary_and_says_how_to_get_cargo_when_it_must_build() {
    let (_place, root) = package();
    std::fs::create_dir(root.join("src")).unwrap();
    for name in ["Cargo.toml", "Cargo.lock", "src/lib.rs"] {
        std::fs::write(root.join(name), "").unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    program(&root.join("target/release/pinfold"));
    let output = call(&root.join("bin/run.sh"), &["demo", "--json"], &[]);
    assert_eq!(
        (out(&output).as_str(), output.status.code()),
        ("pinfold\n/\ndemo\n--json\n", Some(7))
    );

    std::thread::sleep(std::time::Duration::from_millis(20));
    std::fs::write(root.join("src/lib.rs"), "// changed").unwrap();
    let tools = root.join("tools");
    std::fs::create_dir(&tools).unwrap();
    for tool in ["sh", "dirname", "readlink", "find", "head"] {
        symlink(which::which(tool).unwrap(), tools.join(tool)).unwrap();
    }
    let output = call(
        &root.join("bin/run.sh"),
        &["demo"],
        &[("PATH", tools.to_str().unwrap())],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.contains("cargo is missing") && message.contains("rustup.rs"),
        "{message}"
    );
}

#[test]
fn without_a_verb_it_prints_its_usage_and_status_two() {
    let (_place, root) = package();
    let output = call(&root.join("bin/run.sh"), &[], &[]);
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(2), b"".as_slice())
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("bin/run.sh demo"));
    let help = call(&root.join("bin/run.sh"), &["--help"], &[]);
    assert!(help.status.success() && out(&help).contains("bin/run.sh test"));
}
