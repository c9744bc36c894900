use super::*;
use crate::base::Explain as _;
use std::path::PathBuf;

/// A folder with a `bin/npm` that does what `script` says instead of asking a registry.
struct Machine {
    _dir: tempfile::TempDir,
    root: PathBuf,
    data: AbsPath,
    environment: Vec<(OsString, OsString)>,
}

/// What a fitting npm does: the program of this machine where OpenCode's would stand. `$3` is the prefix.
const GOOD: &str = r#"p=$(echo "$9" | sed 's/@.*//'); mkdir -p "$3/node_modules/$p/bin" && cp /bin/true "$3/node_modules/$p/bin/opencode""#;

impl Machine {
    fn new(script: &str) -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        let npm = root.join("bin/npm");
        // Written by a child: if this process held it open for writing, a test that forks beside us would make it busy.
        let write = Command::new("/bin/sh")
            .args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$0"; chmod 755 "$0""#])
            .arg(&npm)
            .arg(script)
            .status();
        assert!(write.unwrap().success());
        let path = format!("{}:/usr/bin:/bin", root.join("bin").display());
        let environment = [
            ("PATH", path.as_str()),
            ("HOME", "/nowhere"),
            ("SECRET", "x"),
            ("npm_config_registry", "r"),
        ];
        let environment = environment.map(|(n, v)| (n.into(), v.into())).into();
        Machine {
            data: AbsPath::new(root.join("data")).unwrap(),
            root,
            _dir: dir,
            environment,
        }
    }

    fn run_within(&self, limit: Duration) -> (Result<AbsPath, InstallError>, Vec<Progress>) {
        let mut told = Vec::new();
        let installation = Installation {
            data: &self.data,
            workspace: None,
            environment: &self.environment,
            limit,
        };
        let outcome = installation.run(&mut |progress| {
            told.push(progress);
            ControlFlow::Continue(())
        });
        (outcome, told)
    }

    fn run(&self) -> Result<AbsPath, InstallError> {
        self.run_within(Duration::from_secs(20)).0
    }

    fn home(&self) -> PathBuf {
        folder(&self.data)
    }

    /// Names in the folder of the agent, without the lock.
    fn left(&self) -> Vec<OsString> {
        let entries = fs::read_dir(self.home())
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name != ".lock").collect()
    }
}

#[test]
fn installs_where_the_program_is_looked_for_and_leaves_nothing_else() {
    let machine = Machine::new(GOOD);
    let (result, told) = machine.run_within(Duration::from_secs(20));
    let program = result.unwrap();
    assert_eq!(
        program.as_path(),
        program_in(&machine.home(), &packages(uses_musl())[0])
    );
    assert_eq!(machine.left(), ["node_modules"]);
    assert!(
        matches!(&told[0], Progress::Step(text) if text.contains(PINNED)),
        "{told:?}"
    );
}

#[test]
fn replaces_an_older_installation_whole() {
    let machine = Machine::new(GOOD);
    fs::create_dir_all(machine.home().join("node_modules/old")).unwrap();
    fs::create_dir_all(machine.home().join(".installing/left/over")).unwrap();
    machine.run().unwrap();
    assert!(!machine.home().join("node_modules/old").exists());
    assert_eq!(machine.left(), ["node_modules"]);
}

#[test]
fn a_failure_leaves_the_older_installation_alone() {
    let none = r#"mkdir "$3/node_modules""#;
    let script = r#"p=$(echo "$9" | sed 's/@.*//'); mkdir -p "$3/node_modules/$p/bin"; f="$3/node_modules/$p/bin/opencode"; echo '#!/bin/sh' > "$f"; chmod +x "$f""#;
    let plain = r#"p=$(echo "$9" | sed 's/@.*//'); mkdir -p "$3/node_modules/$p/bin"; cp /bin/true "$3/node_modules/$p/bin/opencode"; chmod -x "$3/node_modules/$p/bin/opencode""#;
    for (npm, expected) in [
        ("exit 3", "npm did not install"),
        (none, "holds no program"),
        (script, "holds a script"),
        (plain, "holds no program"),
    ] {
        let machine = Machine::new(npm);
        fs::create_dir_all(machine.home().join("node_modules/old")).unwrap();
        let error = machine.run().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(machine.home().join("node_modules/old").exists(), "{npm}");
        assert_eq!(machine.left(), ["node_modules"], "{npm}");
    }
}

#[test]
fn npm_gets_a_clean_environment() {
    let machine = Machine::new(&format!("env > \"$3/../seen\"; pwd >> \"$3/../seen\"; {GOOD}"));
    machine.run().unwrap();
    let seen = fs::read_to_string(machine.home().join("seen")).unwrap();
    for expected in ["HOME=/nowhere\n", "npm_config_registry=r\n", "/.installing\n"] {
        assert!(seen.contains(expected), "{expected} is not in {seen}");
    }
    assert!(!seen.contains("SECRET"), "{seen}");
}

#[test]
fn passes_on_only_what_the_registry_needs() {
    let table = [
        ("HTTPS_PROXY", true),
        ("https_proxy", true),
        ("NPM_CONFIG_REGISTRY", true),
        ("npm_config_cafile", true),
        ("NODE_EXTRA_CA_CERTS", true),
        ("NODE_OPTIONS", false),
        ("LD_PRELOAD", false),
        ("GITHUB_TOKEN", false),
        ("home", false),
    ];
    for (name, expected) in table {
        assert_eq!(passes(OsStr::new(name)), expected, "{name}");
    }
}

#[test]
fn npm_is_never_taken_from_the_workspace() {
    let machine = Machine::new(&format!("touch \"$0.ran\"; {GOOD}"));
    let only = machine.root.join("bin");
    let environment = [("PATH".into(), only.clone().into_os_string())];
    let workspace = AbsPath::new(&machine.root).unwrap();
    let installation = Installation {
        data: &machine.data,
        workspace: Some(&workspace),
        environment: &environment,
        limit: Duration::from_secs(20),
    };
    assert!(matches!(
        installation.run(&mut |_| ControlFlow::Continue(())),
        Err(InstallError::NoNpm)
    ));
    assert!(!only.join("npm.ran").exists());
}

#[test]
fn kills_npm_when_nobody_wants_to_wait() {
    let machine = Machine::new("exec sleep 60");
    let installation = Installation {
        data: &machine.data,
        workspace: None,
        environment: &machine.environment,
        limit: Duration::from_secs(60),
    };
    let start = Instant::now();
    let result = installation.run(&mut |progress| match progress {
        Progress::Step(_) => ControlFlow::Continue(()),
        Progress::Elapsed(_) => ControlFlow::Break(()),
    });
    assert!(matches!(result, Err(InstallError::BrokenOff)), "{result:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn kills_an_npm_that_takes_too_long_and_tells_the_seconds() {
    let machine = Machine::new("exec sleep 60");
    let start = Instant::now();
    let (result, told) = machine.run_within(Duration::from_millis(1300));
    assert!(matches!(result, Err(InstallError::TooSlow { .. })), "{result:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(told.contains(&Progress::Elapsed(1)), "{told:?}");
    assert!(machine.left().is_empty());
}

#[test]
fn waits_for_another_installation() {
    let machine = Machine::new(GOOD);
    fs::create_dir_all(machine.home()).unwrap();
    let held = File::create(machine.home().join(".lock")).unwrap();
    FileExt::lock_exclusive(&held).unwrap();
    let (result, _) = machine.run_within(Duration::from_millis(250));
    assert!(
        matches!(
            result,
            Err(InstallError::TooSlow {
                doing: "another installation was running",
                ..
            })
        ),
        "{result:?}"
    );
    drop(held);
    machine.run().unwrap();
}

#[test]
fn tells_npms_errors_by_their_codes() {
    let json = |code: &str| format!(r#"echo '{{"error":{{"code":"{code}","summary":"s\u001b[2J"}}}}'; exit 1"#);
    let table = [
        ("ENOTFOUND", "ENOTFOUND \"s\\u{1b}[2J\""),
        ("E404", "E404"),
        ("ENOSPC", "the disk is full"),
    ];
    for (code, expected) in table {
        let error = Machine::new(&json(code)).run().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint().is_some());
    }
    let error = Machine::new("echo 'npm broke' >&2; exit 7").run().unwrap_err();
    assert!(
        error.to_string().contains("npm broke") && error.to_string().contains('7'),
        "{error}"
    );
}
