//! A person's folders, private to one test, and what Pinfold leaves in them and among the processes.

use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything that should happen; who waits for less waits for something that should not.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The `pinfold` under test.
pub fn pinfold() -> PathBuf {
    std::env::var_os("PINFOLD_BIN").map_or_else(|| env!("CARGO_BIN_EXE_pinfold").into(), PathBuf::from)
}

/// Looks again and again until there is something.
#[track_caller]
pub fn until<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// One person's home and project.
pub struct Place {
    folder: tempfile::TempDir,
    pub project: PathBuf,
    /// Beside those that every place has.
    pub variables: Vec<(OsString, OsString)>,
}

/// What a finished command said.
pub struct Said {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("pinfold-e2e-").tempdir().unwrap();
        let place = Place {
            project: folder.path().join("project"),
            variables: Vec::new(),
            folder,
        };
        for folder in [place.home(), place.project.join(".git")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(place.project.join("marker-of-the-project"), "here\n").unwrap();
        place
    }

    /// In every command line and environment of this place's processes.
    pub fn mark(&self) -> &OsStr {
        self.path().file_name().unwrap()
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    pub fn state(&self) -> PathBuf {
        self.home().join(".local/state/pinfold")
    }

    /// The whole environment of a person of this place.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let fixed = [
            ("PATH", OsString::from("/usr/local/bin:/usr/bin:/bin")),
            ("HOME", self.home().into()),
            ("TMUX_TMPDIR", self.path().into()),
            ("TERM", "xterm-256color".into()),
            ("LANG", "C.UTF-8".into()),
            ("SHELL", "/bin/sh".into()),
        ];
        let fixed = fixed.into_iter().map(|(name, value)| (OsString::from(name), value));
        fixed.chain(self.variables.iter().cloned()).collect()
    }

    /// A command of this place's person, in the project.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment()).current_dir(&self.project);
        command
    }

    /// `pinfold` with these words, to its end, without a terminal.
    #[track_caller]
    pub fn pinfold<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Said {
        let mut command = self.command(pinfold());
        command.args(words);
        finished(command)
    }

    /// Its answer as JSON.
    #[track_caller]
    pub fn json<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Value {
        let said = self.pinfold(words);
        serde_json::from_str(&said.stdout)
            .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", said.stdout, said.stderr))
    }

    /// Every recorded session.
    #[track_caller]
    pub fn sessions(&self) -> Vec<Value> {
        self.json(["list", "--json"])["sessions"].as_array().unwrap().clone()
    }

    /// The only recorded session.
    #[track_caller]
    pub fn session(&self) -> Value {
        let mut sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:#?}");
        sessions.remove(0)
    }

    /// The session that `start --json` answered with, once it is in that state.
    #[track_caller]
    pub fn session_of(&self, answer: &str, state: &str) -> Value {
        let answer: Value = serde_json::from_str(answer).unwrap();
        until(LIMIT, &format!("{} is {state}", answer["session"]), || {
            let found = self
                .sessions()
                .into_iter()
                .find(|s| s["launchId"] == answer["launch"])?;
            let settled = found["lifecycleState"] == "failed" && state != "failed";
            assert!(!settled, "{found:#}");
            (found["lifecycleState"] == state).then_some(found)
        })
    }

    /// The only session, once it is in that state.
    #[track_caller]
    pub fn session_in(&self, state: &str) -> Value {
        until(LIMIT, &format!("the session is {state}"), || {
            let found = self.sessions().into_iter().find(|s| s["lifecycleState"] == state);
            found.or_else(|| self.ended_badly(state))
        })
    }

    /// A failure while something else is waited for is told at once.
    #[track_caller]
    fn ended_badly(&self, wanted: &str) -> Option<Value> {
        let failed = self.sessions().into_iter().find(|s| s["lifecycleState"] == "failed");
        assert!(failed.is_none() || wanted == "failed", "{failed:#?}");
        None
    }

    /// Processes of this place that are Pinfold's or in a sandbox of a recorded session.
    pub fn left(&self) -> Vec<String> {
        let sandboxes = self.namespaces();
        let mine = |pid: &i32| sandboxes.contains(&namespace(*pid)) || self.is_pinfolds(*pid);
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(mine).filter_map(described).collect()
    }

    /// Those of sandboxes whose first process lives: without it nothing can live in one, and its number is given to
    /// the next.
    fn namespaces(&self) -> BTreeSet<u64> {
        let sessions = self.sessions();
        let sides = sessions
            .iter()
            .flat_map(|session| [&session["server"], &session["client"]]);
        let alive = |side: &&Value| {
            let init = serde_json::from_value(side["init"].clone());
            init.is_ok_and(|init: pinfold::base::ProcessRecord| init.is_alive())
        };
        sides
            .filter(alive)
            .filter_map(|side| side["pidNamespace"].as_u64())
            .collect()
    }

    fn is_pinfolds(&self, pid: i32) -> bool {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let marked = |bytes: &[u8]| find(bytes, self.mark().as_bytes());
        let words = read("cmdline");
        // A shell that started it has its words as well.
        let ours = read("comm") == b"pinfold\n" && (marked(&words) || marked(&read("environ")));
        ours || words.split(|b| *b == 0).next().is_some_and(marked)
    }

    /// Nothing runs any more, and nothing listens at the session's port.
    #[track_caller]
    pub fn nothing_is_left(&self) {
        let start = Instant::now();
        while !self.left().is_empty() && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(self.left(), Vec::<String>::new());
        for port in self.sessions().iter().filter_map(|s| s["port"].as_u64()) {
            let at = ("127.0.0.1", u16::try_from(port).unwrap());
            assert!(std::net::TcpStream::connect(at).is_err(), "something listens at {port}");
        }
    }
}

/// To its end; the test fails if that takes too long.
#[track_caller]
pub fn finished(mut command: Command) -> Said {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipes = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        pipes.0.read_to_end(&mut stdout).unwrap();
        pipes.1.read_to_end(&mut stderr).unwrap();
        (stdout, stderr)
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (stdout, stderr) = reader.join().unwrap();
    Said {
        status: status.code(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// The PID namespace of a process; 0 if it cannot be read.
pub fn namespace(pid: i32) -> u64 {
    let link = std::fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap_or_default();
    let digits: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// A process in one line, unless it has ended.
fn described(pid: i32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let state = status.lines().find_map(|line| line.strip_prefix("State:\t"))?;
    let ended = state.starts_with(['Z', 'X']);
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    (!ended).then(|| {
        format!(
            "{pid} {state}: {}",
            OsString::from_vec(words).to_string_lossy().replace('\0', " ")
        )
    })
}

/// The command of a sandbox (the child of its first process), as the host numbers it.
#[track_caller]
pub fn command_of(session: &Value, side: &str) -> i32 {
    let init = session[side]["init"]["pid"].as_i64().unwrap();
    let children = format!("/proc/{init}/task/{init}/children");
    let children = std::fs::read_to_string(children).unwrap();
    children.split_whitespace().next().unwrap().parse().unwrap()
}

/// SIGKILL and the like, for a process that this test started.
pub fn signal(pid: i32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
}

/// The process that owns a session.
#[track_caller]
pub fn bridge_of(session: &Value) -> i32 {
    i32::try_from(session["bridge"]["pid"].as_i64().unwrap()).unwrap()
}
