//! The real OpenCode against the scripted model, unsandboxed on this machine's loopback with a home of its own: shows
//! that the agent's contract (argv, environment, readiness, model API) is what the real program does.
//!
//! The program is the one that `PINFOLD_TEST_OPENCODE` names, else the one that `bin/run.sh test` installs into
//! `target/opencode`. Without either the tests say so and pass, unless `JAIL_MUST_WORK=1`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use pinfold::agent::scripted::{self, Call, Script, Server, Step};
use pinfold::agent::{self, Agent, NotReady, PINNED, Patience, Probe, Program, Search, Side, wait_ready};
use pinfold::base::{AbsPath, Port, Secret};
use pinfold::policy::Environment;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

fn opencode() -> &'static dyn Agent {
    agent::named(OsStr::new("opencode")).unwrap()
}

/// The program under test, or nothing after saying why.
fn program() -> Option<Program> {
    let named = std::env::var_os("PINFOLD_TEST_OPENCODE").map(PathBuf::from);
    let Some(path) = named.or_else(installed) else {
        let reason = "no OpenCode: set PINFOLD_TEST_OPENCODE, or let `bin/run.sh test` install it";
        assert!(
            std::env::var_os("JAIL_MUST_WORK").is_none_or(|value| value != "1"),
            "{reason}"
        );
        eprintln!("skipped: {reason}");
        return None;
    };
    let data = AbsPath::root();
    let search = Search {
        configured: Some(&path),
        path: None,
        workspace: None,
        data: &data,
    };
    let candidate = opencode().find(&search).unwrap();
    let version = candidate.hint.expect("the npm package says its version");
    Some(candidate.with_version(version))
}

fn installed() -> Option<PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/opencode/node_modules");
    let packages = std::fs::read_dir(modules)
        .ok()?
        .map(|entry| entry.unwrap().path().join("bin/opencode"));
    packages.filter(|path| path.is_file()).min()
}

/// Starting OpenCode takes several seconds of processor time: one at a time keeps each within its patience.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A running server with a home and a project of its own.
struct Launch {
    child: Mutex<Child>,
    port: Port,
    home: tempfile::TempDir,
    project: PathBuf,
}

impl Launch {
    fn with_model(program: &Program, model: &Server, password: &Secret) -> Launch {
        let address = format!("http://{}/v1", model.address());
        Launch::start(program, free_port(), &address, Some(password))
    }

    fn start(program: &Program, port: Port, model: &str, password: Option<&Secret>) -> Launch {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project with space");
        let config = home.path().join(".config/opencode");
        for folder in [&project, &config] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(config.join("opencode.json"), scripted::configuration(model)).unwrap();
        std::fs::write(config.join(".gitignore"), "").unwrap();
        let mut environment = Environment::default();
        // The proxy is a port where nothing listens: whatever does not go to loopback fails at once.
        for (name, value) in [("PATH", "/usr/bin:/bin"), ("HTTP_PROXY", DEAD), ("HTTPS_PROXY", DEAD)] {
            environment.0.insert(name.into(), value.into());
        }
        environment.0.insert("HOME".into(), home.path().into());
        environment.0.insert("OPENCODE_DISABLE_MODELS_FETCH".into(), "1".into());
        match password {
            Some(password) => opencode().additions(Side::Server, password).apply(&mut environment),
            None => drop(environment.0.insert("NO_PROXY".into(), "127.0.0.1".into())),
        }
        let argv = opencode().server_argv(program, port);
        let mut command = Command::new(&argv[0]);
        command
            .args(&argv[1..])
            .current_dir(&project)
            .env_clear()
            .envs(environment.0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Launch {
            child: Mutex::new(command.spawn().unwrap()),
            port,
            home,
            project,
        }
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port.get()))
    }

    fn exited(&self) -> Option<String> {
        self.child
            .lock()
            .unwrap()
            .try_wait()
            .unwrap()
            .map(|status| status.to_string())
    }

    fn wait(&self, probe: &Probe, total: Duration) -> Result<agent::Ready, NotReady> {
        wait_ready(
            probe,
            Patience {
                total,
                ..Patience::default()
            },
            || self.connect(),
            || self.exited(),
        )
    }

    /// One API request with a JSON body, answered with JSON.
    fn post(&self, path: &str, password: &Secret, body: &Value) -> Value {
        let (probe, body) = (probe(1, self.port, password), body.to_string());
        let request = String::from_utf8(probe.request(path, agent::Password::Sent)).unwrap();
        let head = format!("POST{}", request.strip_prefix("GET").unwrap());
        let extra = format!(
            "\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = self.connect().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        stream.write_all(head.replace("\r\n\r\n", &extra).as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 200"), "{path}: {text}");
        // With or without chunks, the JSON object is all that stands between the outermost braces.
        let head_end = text.find("\r\n\r\n").unwrap();
        let (open, close) = (head_end + text[head_end..].find('{').unwrap(), text.rfind('}').unwrap());
        serde_json::from_str(&text[open..=close]).unwrap_or_else(|error| panic!("{error} in {text}"))
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

const DEAD: &str = "http://127.0.0.1:9";
const MINUTE: Duration = Duration::from_secs(60);

fn free_port() -> Port {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Port::new(listener.local_addr().unwrap().port()).unwrap()
}

fn probe(major: u32, port: Port, password: &Secret) -> Probe {
    let version = agent::Version {
        major,
        minor: 0,
        patch: 0,
    };
    let program = Program {
        path: AbsPath::root(),
        source: agent::Source::Configured,
        version,
    };
    opencode().probe(&program, port, password)
}

#[test]
fn prints_the_version_that_its_package_names() {
    let Some(program) = program() else { return };
    let _turn = ONE_AT_A_TIME.lock();
    let home = tempfile::tempdir().unwrap();
    let candidate = agent::Candidate {
        path: program.path.clone(),
        source: program.source,
        hint: Some(program.version),
    };
    let argv = opencode().version_argv(&candidate);
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap();
    let version = opencode().parse_version(&output.stdout).unwrap();
    assert_eq!(version, program.version);
    assert_eq!(version.to_string(), PINNED);
}

#[test]
fn plays_a_whole_turn_with_tool_calls() {
    let Some(program) = program() else { return };
    let _turn = ONE_AT_A_TIME.lock();
    let steps = vec![
        Step::shell(
            "printf made > 'a file'; printf 'out\\nput'; echo \"$OPENCODE_SERVER_PASSWORD\" | wc -c",
            "makes a file",
        ),
        Step {
            text: "Two at once.".to_owned(),
            calls: vec![
                Call {
                    tool: "read".to_owned(),
                    arguments: json!({"filePath": "a file"}),
                },
                Call {
                    tool: "bash".to_owned(),
                    arguments: json!({"command": "exit 7", "description": "fails"}),
                },
            ],
        },
        Step::say("All done."),
    ];
    let model = Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), Script::Steps(steps)).unwrap();
    let password = Secret::fresh();
    let launch = Launch::with_model(&program, &model, &password);
    let ready = launch
        .wait(&opencode().probe(&program, launch.port, &password), MINUTE)
        .unwrap();
    assert_eq!(ready.version, program.version);

    let session = launch.post("/session", &password, &json!({}));
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let prompt = json!({"parts": [{"type": "text", "text": "Do the honest work."}]});
    let message = launch.post(&path, &password, &prompt);

    let texts: Vec<_> = message["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    assert_eq!(texts, ["All done."], "{message:#}");
    assert_eq!(std::fs::read_to_string(launch.project.join("a file")).unwrap(), "made");
    let transcript = model.transcript();
    assert_eq!(transcript.steps, 3, "{transcript:#?}");
    let results: Vec<_> = transcript
        .results
        .iter()
        .map(|r| (r.step, r.call, r.tool.as_str()))
        .collect();
    assert_eq!(results, [(0, 0, "bash"), (1, 0, "read"), (1, 1, "bash")]);
    // 64 digits and the line's end: a tool really can read the password, so the join has to be closed to it.
    assert_eq!(transcript.results[0].output.trim(), "out\nput65");
    assert!(transcript.results[1].output.contains("made"), "{transcript:#?}");
    assert!(
        transcript.tools.iter().any(|tool| tool == "write"),
        "{:?}",
        transcript.tools
    );
    assert!(
        launch.home.path().join(".local/share/opencode").is_dir(),
        "it kept its data somewhere else"
    );
}

#[test]
fn runs_what_a_prompt_asks_for() {
    let Some(program) = program() else { return };
    let _turn = ONE_AT_A_TIME.lock();
    let model = Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), Script::Prompted).unwrap();
    let password = Secret::fresh();
    let launch = Launch::with_model(&program, &model, &password);
    launch
        .wait(&opencode().probe(&program, launch.port, &password), MINUTE)
        .unwrap();
    let session = launch.post("/session", &password, &json!({}));
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let prompt = json!({"parts": [{"type": "text", "text": "RUN: echo $((6 * 7))"}]});
    let message = launch.post(&path, &password, &prompt);
    assert!(message.to_string().contains("The command printed:\\n42"), "{message:#}");
    assert!(
        model.transcript().titles > 0,
        "no title was asked for, so the script's handling of it is untested"
    );

    // The same server, seen by probes that expect something else.
    let other = probe(1, launch.port, &Secret::fresh());
    assert!(matches!(launch.wait(&other, MINUTE), Err(NotReady::Refuses)));
    let second = probe(2, launch.port, &password);
    match launch.wait(&second, Duration::from_secs(3)) {
        Err(NotReady::NeverAnswered { last, .. }) => assert!(last.contains("text/html"), "{last}"),
        other => panic!("1.x passed for 2.x: {other:?}"),
    }
}

#[test]
fn a_server_without_a_password_is_refused() {
    let Some(program) = program() else { return };
    let _turn = ONE_AT_A_TIME.lock();
    let launch = Launch::start(&program, free_port(), DEAD, None);
    let result = launch.wait(&opencode().probe(&program, launch.port, &Secret::fresh()), MINUTE);
    assert!(matches!(result, Err(NotReady::Open)), "{result:?}");
}

#[test]
fn a_server_whose_port_is_taken_is_seen_to_have_ended() {
    let Some(program) = program() else { return };
    let _turn = ONE_AT_A_TIME.lock();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = Port::new(taken.local_addr().unwrap().port()).unwrap();
    let password = Secret::fresh();
    let launch = Launch::start(&program, port, DEAD, Some(&password));
    match launch.wait(&opencode().probe(&program, port, &password), MINUTE) {
        Err(NotReady::Exited { how, last }) => {
            assert_eq!(how, "exit status: 1");
            // The listener of this test accepts in the kernel and never answers.
            assert_eq!(last, "it took a request and did not answer it");
        }
        other => panic!("{other:?}"),
    }
}
