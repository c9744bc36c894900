use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn version(text: &str) -> Version {
    Version::first_in(text.as_bytes()).unwrap()
}

fn program(text: &str) -> Program {
    Program {
        path: AbsPath::new("/oc").unwrap(),
        source: Source::Path,
        version: version(text),
    }
}

fn port() -> Port {
    Port::new(14096).unwrap()
}

fn strings(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A real program of this machine under the given name.
fn plant(path: &Path) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy("/bin/true", path).unwrap();
    path.canonicalize().unwrap()
}

fn shim(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "echo the post-install step was not run\n").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

struct Machine {
    _dir: tempfile::TempDir,
    root: PathBuf,
    data: AbsPath,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let data = AbsPath::new(root.join("data")).unwrap();
        Machine { _dir: dir, root, data }
    }
    fn find(&self, configured: Option<&Path>, path: &str) -> Result<Candidate, AgentError> {
        let path = self.root.join(path);
        let path = Some(path.as_os_str());
        OpenCode.find(&Search {
            configured,
            path,
            workspace: None,
            data: &self.data,
        })
    }
}

#[test]
fn server_listens_on_its_own_loopback_in_both_versions() {
    for text in ["1.18.33", "2.0.20"] {
        let argv = OpenCode.server_argv(&program(text), port());
        assert_eq!(
            argv,
            strings(&["/oc", "serve", "--hostname", "127.0.0.1", "--port", "14096"])
        );
    }
}

#[test]
fn client_meets_the_server_as_its_version_says() {
    let url = "http://127.0.0.1:14096";
    let table: &[(&str, Resume, &[&str], &[&str])] = &[
        ("1.18.33", Resume::Fresh, &[], &["/oc", "attach", url]),
        (
            "1.18.33",
            Resume::Last,
            &["--mini"],
            &["/oc", "attach", url, "--continue", "--mini"],
        ),
        (
            "2.0.20",
            Resume::Fresh,
            &["-s", "ses_1"],
            &["/oc", "--server", url, "-s", "ses_1"],
        ),
        ("2.0.20", Resume::Last, &[], &["/oc", "--server", url, "--continue"]),
    ];
    for (text, resume, user, expected) in table {
        let argv = OpenCode
            .client_argv(&program(text), port(), *resume, &strings(user))
            .unwrap();
        assert_eq!(argv, strings(expected), "{text} {user:?}");
    }
}

#[test]
fn refuses_every_argument_that_would_undo_the_join() {
    let table: &[&[&str]] = &[
        &["--server", "http://evil"],
        &["--server=http://evil"],
        &["--url=http://evil"],
        &["--standalone"],
        &["--password", "x"],
        &["--password.x", "x"],
        &["-p", "x"],
        &["-px"],
        &["-cp", "x"],
        &["-c", "-u=me"],
        &["--username", "me"],
        &["--hostname", "0.0.0.0"],
        &["--port", "1"],
        &["--no-port"],
        &["--mdns"],
        &["--mdns-domain", "x"],
        &["--mdnsDomain", "x"],
        &["--cors", "*"],
        &["--service"],
        &["--stdio"],
        &["attach", "http://evil"],
        &["/somewhere"],
        &["-c", "attach"],
        &["-c", "serve"],
        &["--", "attach"],
    ];
    for user in table {
        let result = OpenCode.client_argv(&program("1.18.33"), port(), Resume::Fresh, &strings(user));
        assert!(matches!(result, Err(AgentError::Argument { .. })), "{user:?} was taken");
    }
}

#[test]
fn takes_harmless_arguments_and_bytes_that_are_no_text() {
    for user in [
        &["-c"][..],
        &["-s", "ses_up"],
        &["--model", "a/b"],
        &["--prompt", "--dir"],
        &["-c", "--fork"],
    ] {
        let argv = OpenCode.client_argv(&program("1.18.33"), port(), Resume::Fresh, &strings(user));
        assert!(argv.is_ok(), "{user:?} was refused");
    }
    let odd = [OsString::from("--dir"), OsString::from_vec(b"/p\xff\n".to_vec())];
    assert_eq!(
        OpenCode
            .client_argv(&program("2.0.1"), port(), Resume::Fresh, &odd)
            .unwrap()[3..],
        odd
    );
}

#[test]
fn does_not_print_a_password_that_it_refuses() {
    for word in ["--password=hunter2", "-phunter2"] {
        let user = strings(&[word]);
        let error = OpenCode
            .client_argv(&program("1.0.0"), port(), Resume::Fresh, &user)
            .unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn strips_standalone_from_any_list_of_words() {
    let words = strings(&[
        "a",
        "--standalone",
        "--standalone=1",
        "--standalone-not",
        "b",
        "--standalone",
    ]);
    assert_eq!(OpenCode.strip(words), strings(&["a", "--standalone-not", "b"]));
}

#[test]
fn both_sides_get_both_passwords_and_no_user_name() {
    let password = Secret::fresh();
    for side in [Side::Server, Side::Client] {
        let additions = OpenCode.additions(side, &password);
        for name in PASSWORDS {
            assert_eq!(additions.set[OsStr::new(name)], password.reveal(), "{name} {side:?}");
        }
        assert!(additions.never.contains(&"OPENCODE_SERVER_USERNAME"), "{side:?}");
        assert!(!additions.inherits(OsStr::new("OPENCODE_CONFIG_CONTENT")), "{side:?}");
    }
}

#[test]
fn client_runs_no_code_of_the_project_and_knows_no_proxy() {
    let additions = OpenCode.additions(Side::Client, &Secret::fresh());
    assert_eq!(additions.set[OsStr::new("OPENCODE_PURE")], "1");
    assert_eq!(additions.set[OsStr::new("OPENCODE_DISABLE_PROJECT_CONFIG")], "1");
    for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "no_proxy"] {
        assert!(!additions.inherits(OsStr::new(name)), "{name}");
    }
}

#[test]
fn server_exempts_its_loopback_from_the_proxy() {
    let additions = OpenCode.additions(Side::Server, &Secret::fresh());
    for name in ["NO_PROXY", "no_proxy"] {
        assert_eq!(additions.set[OsStr::new(name)], "127.0.0.1,localhost,::1");
    }
    assert!(
        !additions.set.contains_key(OsStr::new("OPENCODE_PURE")),
        "the project's plug-ins are the server's business"
    );
}

#[test]
fn knows_versions_one_and_two_only() {
    let table: &[(&[u8], Option<&str>)] = &[
        (b"1.18.33\n", Some("1.18.33")),
        (b"opencode v2.0.20\n", Some("2.0.20")),
        (b"0.0.0-dev-202609212252\n", None),
        (b"lildax vlocal\n", None),
        (b"3.0.0\n", None),
        (b"", None),
        (b"\xff\x1b[2J", None),
    ];
    for (output, expected) in table {
        let got = OpenCode.parse_version(output).ok().map(|v| v.to_string());
        assert_eq!(got.as_deref(), *expected, "{}", output.escape_ascii());
    }
    let error = OpenCode.parse_version(b"\x1b[2Jv0.0.1").unwrap_err().to_string();
    assert!(error.contains("\\u{1b}") && !error.contains('\x1b'), "{error}");
}

#[test]
fn finds_the_program_behind_the_shim_of_npm() {
    let machine = Machine::new();
    let modules = machine.root.join("lib/node_modules");
    shim(&modules.join("opencode-ai/bin/opencode"));
    std::fs::create_dir(machine.root.join("bin")).unwrap();
    symlink(
        "../lib/node_modules/opencode-ai/bin/opencode",
        machine.root.join("bin/opencode"),
    )
    .unwrap();
    let Err(AgentError::OnlyScript { .. }) = machine.find(None, "bin") else {
        panic!("a script was taken")
    };

    let nested = modules.join("opencode-ai/node_modules").join(&packages(false)[0]);
    let real = plant(&nested.join("bin/opencode"));
    let package = format!(r#"{{"name":"{}","version":"1.18.33"}}"#, packages(false)[0]);
    std::fs::write(nested.join("package.json"), package).unwrap();
    let found = machine.find(None, "bin").unwrap();
    assert_eq!(found.path.as_path(), real);
    assert_eq!(found.source, Source::Path);
    assert_eq!(found.hint, Some(version("1.18.33")));
}

#[test]
fn finds_the_program_beside_the_shim_in_any_variant() {
    for package in packages(false) {
        let machine = Machine::new();
        shim(&machine.root.join("node_modules/opencode-ai/bin/opencode"));
        let real = plant(&program_in(&machine.root, &package));
        let found = machine.find(None, "node_modules/opencode-ai/bin").unwrap();
        assert_eq!((found.path.as_path(), found.hint), (real.as_path(), None), "{package}");
    }
}

#[test]
fn prefers_the_configured_program_and_tries_nothing_else() {
    let machine = Machine::new();
    let (chosen, other) = (
        plant(&machine.root.join("chosen")),
        plant(&machine.root.join("bin/opencode")),
    );
    assert_eq!(machine.find(Some(&chosen), "bin").unwrap().source, Source::Configured);
    assert_eq!(machine.find(None, "bin").unwrap().path.as_path(), other);
    let absent = machine.root.join("absent");
    assert!(matches!(
        machine.find(Some(&absent), "bin"),
        Err(AgentError::Unreadable { .. })
    ));
    assert!(matches!(
        machine.find(Some(Path::new("opencode")), "bin"),
        Err(AgentError::Relative { .. })
    ));
}

#[test]
fn falls_back_to_the_own_installation_and_names_it_when_missing() {
    let machine = Machine::new();
    let Err(error @ AgentError::Missing { .. }) = machine.find(None, "bin") else {
        panic!("found one in an empty folder")
    };
    assert!(
        error.to_string().contains("data/agents/opencode/node_modules/"),
        "{error}"
    );
    let own = plant(&program_in(&folder(&machine.data), &packages(false)[0]));
    let found = machine.find(None, "bin").unwrap();
    assert_eq!((found.path.as_path(), found.source), (own.as_path(), Source::Own));
}

#[test]
fn a_broken_program_on_path_does_not_hide_the_own_installation() {
    let machine = Machine::new();
    shim(&machine.root.join("bin/opencode"));
    assert!(matches!(machine.find(None, "bin"), Err(AgentError::OnlyScript { .. })));
    plant(&program_in(&folder(&machine.data), &packages(false)[0]));
    assert_eq!(machine.find(None, "bin").unwrap().source, Source::Own);
}

#[test]
fn a_hint_is_taken_from_opencodes_own_package_only() {
    let table = [
        (r#"{"name":"opencode-linux-x64","version":"1.18.33"}"#, Some("1.18.33")),
        (
            r#"{"name":"@opencode/cli-linux-x64","version":"2.0.20"}"#,
            Some("2.0.20"),
        ),
        (r#"{"name":"something","version":"1.18.33"}"#, None),
        (r#"{"name":"opencode-ai","version":"0.0.0-dev-1"}"#, None),
        ("{", None),
    ];
    for (text, expected) in table {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("package.json"), text).unwrap();
        assert_eq!(hint(&dir.path().join("bin/opencode")), expected.map(version), "{text}");
    }
}

#[test]
fn the_writable_folder_never_contains_the_program() {
    let machine = Machine::new();
    let path = AbsPath::new(program_in(&folder(&machine.data), &packages(false)[0])).unwrap();
    let own = Program {
        path,
        ..program("1.18.33")
    };
    let variables: BTreeMap<_, _> = OpenCode.variables(&own, &machine.data).into_iter().collect();
    assert_eq!(variables["AGENT_BINARY"], own.path.as_path());
    assert!(!own.path.as_path().starts_with(&variables["PINFOLD_AGENT_DATA"]));
    let second = OpenCode.variables(&program("2.0.1"), &machine.data);
    assert_ne!(
        second[1].1, variables["PINFOLD_AGENT_DATA"],
        "2.x would migrate the data of 1.x in place"
    );
}

#[test]
fn asks_each_version_at_its_own_path() {
    let probe = |text| OpenCode.probe(&program(text), port(), &Secret::fresh());
    assert_eq!(probe("1.18.33").paths, ["/global/health"]);
    assert_eq!(probe("2.0.20").paths, ["/api/info", "/api/health"]);
}
