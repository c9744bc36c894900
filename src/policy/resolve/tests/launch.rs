//! What the launch is given besides files: variables, rules of the network, prepared folders.

use super::*;

#[test]
fn passes_no_secret_loader_or_socket_of_the_environment() {
    let mut host = MemoryHost::debian();
    let never = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
        "ENV",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "GIT_DIR",
        "GIT_SSH_COMMAND",
        "OPENCODE_CONFIG",
        "OPENCODE",
        "API_TOKEN",
        "OPENAI_API_KEY",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "TMUX",
        "TMUX_PANE",
        "HERDR_SOCKET_PATH",
        "HTTP_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "no_proxy",
        "AWS_SECRET_ACCESS_KEY",
        "XDG_RUNTIME_DIR",
        "PINFOLD_X",
        "BASH_FUNC_x%%",
        "SOMETHING",
    ];
    for name in never.iter().chain(&["LC_ALL", "TERM"]) {
        host = host.env(name, "x");
    }
    let everything = r#"{"environment": {"allow_vars": ["*"]}}"#;
    for (text, extra) in [("{}", None), (everything, Some("SOMETHING"))] {
        let policy = with(&host, text).unwrap();
        let names: Vec<_> = policy.environment.0.keys().map(|name| name.to_str().unwrap()).collect();
        let mut expected = vec!["HOME", "LANG", "LC_ALL", "PATH", "TERM"];
        expected.extend(extra);
        expected.sort_unstable();
        assert_eq!(names, expected, "{text}");
    }
}

#[test]
fn the_launch_wins_over_the_command_line_and_that_over_the_profile() {
    let host = MemoryHost::debian().env("X", "host");
    let text =
        r#"{"environment": {"allow_vars": ["X"], "set_vars": {"X": "profile", "Y": "profile", "Z": "profile"}}}"#;
    let set = |name: &str| EnvWish::Set(name.into(), "typed".into());
    let request = Request {
        env: vec![set("Y"), set("Z")],
        added_env: vec![("Z".into(), "launch".into())],
        ..request()
    };
    let policy = resolve(&profile(&host, text), &request, &host).unwrap();
    let value = |name: &str| {
        policy
            .environment
            .0
            .get(std::ffi::OsStr::new(name))
            .unwrap()
            .to_str()
            .unwrap()
    };
    assert_eq!((value("X"), value("Y"), value("Z")), ("profile", "typed", "launch"));
    for name in ["", "A=B", "A\0"] {
        let request = Request {
            env: vec![EnvWish::Pass(name.into())],
            ..super::tests::request()
        };
        assert!(
            matches!(
                resolve(&shipped("default"), &request, &host),
                Err(ResolveError::VariableName(_))
            ),
            "{name:?}"
        );
    }
}

#[test]
fn names_the_place_of_a_bad_rule_and_refuses_domains_without_a_network() {
    let host = MemoryHost::debian();
    let error = with(&host, r#"{"network": {"allow_domain": ["ok.test", "*.com"]}}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#""*.com" covers a whole top-level domain (network.allow_domain[1] in mine)"#
    );
    assert!(matches!(
        with(&host, r#"{"pinfold": {"services": {"x.pinfold": "8.8.8.8:53"}}}"#),
        Err(ResolveError::Rule { .. })
    ));
    let request = Request {
        block_net: true,
        allow_domains: vec!["ok.test".to_owned()],
        ..request()
    };
    assert!(matches!(
        resolve(&shipped("default"), &request, &host),
        Err(ResolveError::NoNetwork(_))
    ));
}

#[test]
fn lists_what_the_caller_makes_and_nothing_outside_its_folders() {
    let (host, request) = opencode(&MemoryHost::debian());
    let found = preparations(&shipped("opencode-server"), &request, &host).unwrap();
    let data = "/home/ann/.local/share/pinfold/agents/opencode-1/data";
    let expected = [
        (data.to_owned(), FileKind::Dir),
        (format!("{data}/auth.json"), FileKind::File),
    ];
    let found: Vec<_> = found.into_iter().map(|one| (one.path.to_string(), one.kind)).collect();
    assert_eq!(found, expected);
    let planted = host
        .dir(data)
        .link(&format!("{data}/auth.json"), "/home/ann/.ssh/id_ed25519");
    let error = resolve(&shipped("opencode-server"), &request, &planted).unwrap_err();
    assert!(matches!(error, ResolveError::Ghost { .. }), "{error}");
}
