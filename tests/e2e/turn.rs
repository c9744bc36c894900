//! The real OpenCode in a real tmux pane: a whole turn, what its tool can see, and what is left afterwards.

use crate::agent::{model, opencode};
use crate::pane::{Terminal, Tmux};
use crate::place::{LIMIT, Place, bridge_of, command_of, finished, pinfold, signal, until};
use nix::sys::signal::Signal;
use pinfold::agent::scripted::{Script, Server, Step};
use rand::RngExt as _;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// It takes several seconds of processor time to start.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const TOKEN: &str = "token-of-the-launcher-4711";
const HOST_PROCESS: &str = "86111";
const SECRET: &str = "nobody may read this";

/// What the model asks the agent's shell to do: honest work, and attempts to get out. Every line of its output is one
/// answer; what is not answered is missing.
const PROBE: &str = r#"
echo "made by the agent" > made-by-the-agent && echo "work: done"
P=$(tr '\0' '\n' < /proc/$OPENCODE_PID/cmdline | grep -x -A1 -e --port | tail -n 1)
echo "port: $P"
echo "password: ${#OPENCODE_SERVER_PASSWORD}"
curl -s -m 5 -o /dev/null http://model.pinfold/v1/models
echo "model through the broker: $?"
curl -s -m 5 --noproxy '*' -o /dev/null -u "opencode:$OPENCODE_SERVER_PASSWORD" "http://127.0.0.1:$P/global/health"
echo "server: $?"
cat SECRET_FILE >/dev/null 2>&1 && echo "secret: read" || echo "secret: denied"
cat marker-of-the-project >/dev/null 2>&1 && echo "project: read" || echo "project: denied"
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' > /tmp/words
grep -q -x serve /tmp/words && echo "own processes: seen"
grep -q -x 86"$()"111 /tmp/words && echo "host processes: seen" || echo "host processes: hidden"
cat /proc/[0-9]*/environ 2>/dev/null | grep -q TOKEN && echo "token: read" || echo "token: hidden"
echo evil > .git/hooks/pre-commit 2>/dev/null && echo "hook: written" || echo "hook: denied"
setsid nohup sh -c 'trap "" HUP TERM INT; while :; do sleep 3600; done' >/dev/null 2>&1 &
echo "end: reached"
"#;

fn script(secret: &Path) -> Script {
    let probe = PROBE
        .replace("SECRET_FILE", &format!("'{}'", secret.display()))
        .replace("TOKEN", TOKEN);
    let background =
        "setsid nohup sh -c 'trap \"\" HUP TERM; while :; do sleep 3600; done' >/dev/null 2>&1 & echo started";
    Script::Steps(vec![
        Step::shell(probe, "look around"),
        Step::say("The first turn is over."),
        Step::shell(background, "stay"),
        Step::say("The second turn is over."),
    ])
}

/// Starts in a pane, from a shell in another one, and waits for the client's screen.
#[track_caller]
fn start(tmux: &Tmux<'_>, place: &Place, more: &[&str]) -> (Value, String) {
    let mut command = tmux.pinfold();
    command.args(["start", "--json"]).args(more);
    let said = finished(command);
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    let session = place.session_of(&said.stdout, "running");
    let pane = Tmux::pane_of(&session);
    assert!(tmux.panes().contains(&pane));
    (session, pane)
}

/// Types a prompt, once the client takes one.
#[track_caller]
fn prompt(tmux: &Tmux<'_>, pane: &str, text: &str, end: &str) {
    until(LIMIT, "the client's screen", || {
        let screen = tmux.screen(pane);
        (screen.contains("Scripted") || screen.contains("Ask anything")).then_some(())
    });
    // What is typed before the client reads its keys is lost with its first drawing.
    until(
        LIMIT,
        &format!("the prompt is in its field:\n{}", tmux.screen(pane)),
        || {
            if !tmux.screen(pane).contains(text) {
                tmux.run(["send-keys", "-t", pane, "-l", text]);
                std::thread::sleep(Duration::from_millis(500));
            }
            tmux.screen(pane).contains(text).then_some(())
        },
    );
    tmux.run(["send-keys", "-t", pane, "Enter"]);
    tmux.shows(pane, end);
}

#[track_caller]
fn answers(server: &Server) -> String {
    let results = server.transcript().results;
    results.first().expect("the model was told a result").output.clone()
}

#[test]
fn an_agent_works_in_its_sandboxes_and_leaves_nothing_however_it_ends() {
    let Some(opencode) = opencode() else { return };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut place = Place::new();
    place.variables.push(("LAUNCHER_TOKEN".into(), TOKEN.into()));
    let secret = place.home().join("secret");
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::create_dir_all(place.project.join(".git/hooks")).unwrap();
    let (server, service) = model(&place, script(&secret));
    let tmux = Tmux::start(&place);
    // A process of the host that the agent's tool looks for, by a word that its own command line does not have whole.
    tmux.run(["new-window", "-d", "-t", "main", "sleep", HOST_PROCESS]);
    let binary = opencode.to_str().unwrap();
    let words = ["--binary", binary, service.as_str()];

    let (session, pane) = start(&tmux, &place, &words);
    tell_times(&session);
    prompt(&tmux, &pane, "please look around", "The first turn is over.");
    check_answers(&answers(&server), &session, &place);
    check_verification(&place);
    check_sides(&session, &place);
    check_shell(&place, &secret);
    // Ctrl-C in the client: the normal way out.
    tmux.run(["send-keys", "-t", &pane, "C-c"]);
    let after = place.session_in("exited");
    assert_eq!(
        (&after["lastExitCode"], &after["lastError"]),
        (&Value::from(0), &Value::Null)
    );
    until(LIMIT, "the pane is closed", || {
        (!tmux.panes().contains(&pane)).then_some(())
    });
    place.nothing_is_left();

    // The last session again, ended by `stop` in the middle of a tool's life.
    let again = [&words[..], &["--continue"]].concat();
    let (_, pane) = start(&tmux, &place, &again);
    tmux.shows(&pane, "The first turn is over.");
    prompt(&tmux, &pane, "and once more", "The second turn is over.");
    let said = place.pinfold(["stop"]);
    assert_eq!(said.status, Some(0), "{}{}", said.stdout, said.stderr);
    place.nothing_is_left();
    until(LIMIT, "the pane is closed", || {
        (!tmux.panes().contains(&pane)).then_some(())
    });

    // And with its bridge killed.
    let (session, _) = start(&tmux, &place, &again);
    signal(bridge_of(&session), Signal::SIGKILL);
    let launch = session["launchId"].as_str().unwrap();
    let after = until(LIMIT, "the record is put right", || {
        let session = place.sessions().into_iter().find(|s| s["launchId"] == launch)?;
        (session["lifecycleState"] == "failed").then_some(session)
    });
    assert_eq!(
        after["lastError"]["message"],
        "the bridge ended without recording its exit"
    );
    place.nothing_is_left();
}

#[test]
fn a_bridge_that_is_killed_at_any_moment_of_a_real_start_leaves_no_process() {
    let Some(opencode) = opencode() else { return };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for _ in 0..5 {
        let place = Place::new();
        let (_server, service) = model(&place, Script::Prompted);
        let mut terminal = Terminal::open();
        let (program, words) = (pinfold(), ["start", "--host", "terminal", &service, "--binary"]);
        let words = words.map(OsStr::new);
        let pid = terminal.lead(
            &place,
            &[&[program.as_os_str()], &words[..], &[opencode.as_os_str()]].concat(),
        );
        let delay = Duration::from_millis(rand::rng().random_range(0..8000));
        std::thread::sleep(delay);
        signal(pid, Signal::SIGKILL);
        terminal.status();
        place.nothing_is_left();
        let states = place.sessions();
        let right = |session: &Value| matches!(session["lifecycleState"].as_str(), Some("failed" | "provisional"));
        assert!(states.iter().all(right), "{delay:?}: {states:#?}");
    }
}

/// Seen with `--nocapture`.
fn tell_times(session: &Value) {
    let timings = &session["timings"];
    eprintln!("from the bridge's first step, in ms: {timings}");
    let of = |name: &str| timings[name].as_u64().unwrap();
    assert!(of("heldMs") + of("readyMs") <= of("verifiedMs"), "{timings}");
}

#[track_caller]
fn check_answers(said: &str, session: &Value, place: &Place) {
    let port = format!("port: {}", session["port"]);
    let expected = [
        "work: done",
        port.as_str(),
        "model through the broker: 0",
        // Could not connect.
        "server: 7",
        "secret: denied",
        "project: read",
        "own processes: seen",
        "host processes: hidden",
        "token: hidden",
        "hook: denied",
        "end: reached",
    ];
    for line in expected {
        assert!(said.lines().any(|l| l == line), "{line:?} is not in:\n{said}");
    }
    // 192 bits take 32 characters of base64 and more of hexadecimal digits.
    let length = said.lines().find_map(|line| line.strip_prefix("password: ")).unwrap();
    assert!(length.parse::<u32>().unwrap() >= 32, "{said}");
    let made = std::fs::read_to_string(place.project.join("made-by-the-agent")).unwrap();
    assert_eq!(made, "made by the agent\n");
    assert!(!place.project.join(".git/hooks/pre-commit").exists());
    // The controls of what was denied: it can be done out here.
    let words = std::process::Command::new("sh")
        .args(["-c", "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'"])
        .output();
    let words = String::from_utf8_lossy(&words.unwrap().stdout).into_owned();
    assert!(words.lines().any(|word| word == HOST_PROCESS));
    assert_eq!(std::fs::read_to_string(place.home().join("secret")).unwrap(), SECRET);
}

#[track_caller]
fn check_verification(place: &Place) {
    let answer = place.json(["verify", "--json"]);
    assert_eq!(answer["verified"], true, "{answer:#}");
    let reports = answer["reports"].as_array().unwrap();
    let names: Vec<_> = reports
        .iter()
        .map(|report| report["sandbox"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["server", "client"]);
    let commands = |report: &Value| {
        let processes = report["processes"].as_array().unwrap();
        assert!(
            processes.iter().all(|process| process["confined"] == true),
            "{processes:#?}"
        );
        processes
            .iter()
            .map(|process| process["command"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let server = commands(&reports[0]);
    assert!(server.iter().any(|c| c.contains(" serve ")), "{server:?}");
    // It was re-parented: only the namespace leads to it.
    assert!(server.iter().any(|c| c.contains("while :; do sleep")), "{server:?}");
    assert!(commands(&reports[1]).iter().any(|c| c.contains(" attach ")));
}

/// As the kernel shows them from outside.
#[track_caller]
fn check_sides(session: &Value, place: &Place) {
    let marker = place.project.join("marker-of-the-project");
    let seen_by = |side: &str| {
        let root = format!("/proc/{}/root{}", command_of(session, side), marker.display());
        std::fs::exists(root).unwrap()
    };
    assert!(seen_by("server"));
    assert!(!seen_by("client"));
    let log = session["serverLog"].as_str().unwrap();
    let environment = std::fs::read(format!("/proc/{}/environ", command_of(session, "client"))).unwrap();
    let variables: Vec<_> = environment.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
    let password = variables
        .iter()
        .find_map(|v| v.strip_prefix("OPENCODE_SERVER_PASSWORD="))
        .unwrap();
    assert!(!std::fs::read_to_string(log).unwrap().contains(password));
    assert!(!place.json(["list", "--json"]).to_string().contains(password));
    for pid in [
        bridge_of(session),
        command_of(session, "server"),
        command_of(session, "client"),
    ] {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&words).contains(password));
    }
    let listening = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = format!("0100007F:{:04X} 00000000:0000 0A", session["port"].as_u64().unwrap());
    assert!(
        !listening.contains(&port),
        "the host's own loopback has the joined port"
    );
}

#[track_caller]
fn check_shell(place: &Place, secret: &Path) {
    let script = format!(
        "cat marker-of-the-project; cat '{}' || echo denied; env | grep -c PASSWORD; exit 42",
        secret.display()
    );
    let said = place.pinfold(["shell", "--", "sh", "-c", &script]);
    assert_eq!(
        (said.status, said.stdout.as_str()),
        (Some(42), "here\ndenied\n0\n"),
        "{}",
        said.stderr
    );
    let said = place.pinfold(["shell", "--", "no-such-program"]);
    assert_eq!(said.status, Some(127));
    assert!(
        said.stderr.contains("no-such-program cannot be run inside"),
        "{}",
        said.stderr
    );
}
