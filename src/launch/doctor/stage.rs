//! The doctor's end of the process that holds the targets.

use super::probe_argv;
use super::targets::{Addresses, Layout};
use crate::base::{AbsPath, Explain, Kind, Pid, Port, Secret, dirs};
use crate::launch::Setting;
use crate::sandbox::attend::Signals;
use crate::verify::probe::{Outcome, Planned, Shares, Targets, Try};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long an answer may take; an attempt that meets silence takes two seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the process may take to clear up.
const CLEARING: Duration = Duration::from_secs(3);
/// Variables that only the launcher has: one that every profile denies by its name, and one that is merely not allowed.
const TOKENS: [&str; 2] = ["PINFOLD_DOCTOR_TOKEN", "OF_THE_LAUNCHER"];
/// A process inside has one of the first numbers: a target with one of those could not be told from it.
const FIRST_NUMBERS: i32 = 64;

/// Why there is nothing to attack.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error("the targets of the attempts cannot be made ({0})")]
    Io(std::io::Error),
    #[error("the process that holds the targets said something else than expected ({0})")]
    Json(serde_json::Error),
    #[error("the process that holds the targets did not answer")]
    Silent,
    #[error("interrupted; nothing was left behind")]
    Interrupted,
}

impl StageError {
    /// From a system call.
    pub fn io(errno: nix::errno::Errno) -> StageError {
        StageError::Io(errno.into())
    }
}

impl Explain for StageError {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
    fn hint(&self) -> Option<String> {
        matches!(self, StageError::Io(_)).then(|| "TMPDIR must name a folder that can be written".to_owned())
    }
}

/// The process; dropped, it and everything that it made are gone.
pub struct Stage {
    child: Child,
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    read: Vec<u8>,
    token: Secret,
    addresses: Option<Addresses>,
}

impl Stage {
    /// Starts it and waits for its targets.
    pub fn open(setting: &Setting) -> Result<Stage, StageError> {
        let token = Secret::fresh();
        let argv = probe_argv(&setting.program, "--targets");
        let mut child = Command::new(&setting.program)
            .args(argv.iter().skip(1))
            .envs(TOKENS.map(|name| (name, token.reveal())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(StageError::Io)?;
        let requests = child.stdin.take();
        let Some(answers) = child.stdout.take() else {
            return Err(StageError::Silent);
        };
        let mut stage = Stage {
            child,
            requests,
            answers,
            read: Vec::new(),
            token,
            addresses: None,
        };
        stage.addresses = Some(stage.answer(&setting.signals)?);
        Ok(stage)
    }

    /// The variables that only the launcher has, and their values.
    pub fn tokens(&self) -> Vec<(OsString, OsString)> {
        let pair = |name: &str| (name.into(), self.token.reveal().into());
        TOKENS.iter().map(|name| pair(name)).collect()
    }

    /// A path below the folder of the targets.
    pub fn at(&self, name: &str) -> AbsPath {
        let folder = self.addresses.as_ref().map(|addresses| addresses.folder.as_path());
        let path = folder.unwrap_or(Path::new("/")).join(name);
        AbsPath::new(path).unwrap_or_else(|_| AbsPath::root())
    }

    /// The workspace of the throw-away sandbox.
    pub fn workspace(&self) -> AbsPath {
        self.at(Layout::WORKSPACE)
    }

    /// Everything that can be attacked.
    pub fn targets(&self, setting: &Setting, joined: Option<Port>) -> Targets {
        let at = |name: &str| Some(self.at(name).as_path().to_owned());
        let own = dirs::make(&setting.dirs.state).is_ok();
        let id = i32::try_from(self.child.id()).ok().filter(|id| *id > FIRST_NUMBERS);
        let found = self.addresses.as_ref();
        Targets {
            secret: at(Layout::SECRET),
            folder: at(Layout::OUTSIDE),
            protected: at(Layout::CONFIG),
            protected_folder: at(Layout::HOOKS),
            writable: at(Layout::WORKSPACE),
            writable_file: at(Layout::FILE),
            own: own.then(|| {
                setting
                    .dirs
                    .state
                    .as_path()
                    .join(format!(".doctor-{}", std::process::id()))
            }),
            socket: at(Layout::SOCKET),
            socket_within: at(Layout::SOCKET_WITHIN),
            datagrams: at(Layout::DATAGRAMS),
            abstract_name: found.map(|found| found.abstract_name.clone().into()),
            tcp: found.map(|found| found.tcp),
            udp: found.map(|found| found.udp),
            forbidden: found.and_then(|found| found.forbidden),
            joined,
            process: id.and_then(Pid::new),
            terminal: found.and_then(|found| found.terminal.clone()).map(Into::into),
            tokens: TOKENS.map(Into::into).to_vec(),
            shares: Shares::Nothing,
        }
    }

    /// The control of each attempt, made outside.
    pub fn controls(&mut self, planned: &[Planned], signals: &Signals) -> Result<Vec<Outcome>, StageError> {
        let tries: Vec<Try> = planned.iter().map(|one| Try::new(one.control, &one.args)).collect();
        let mut line = serde_json::to_vec(&tries).map_err(StageError::Json)?;
        line.push(b'\n');
        let requests = self.requests.as_mut().ok_or(StageError::Silent)?;
        requests.write_all(&line).map_err(StageError::Io)?;
        self.answer(signals)
    }

    /// The next line that the process says.
    fn answer<T: DeserializeOwned>(&mut self, signals: &Signals) -> Result<T, StageError> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=at).collect();
                return serde_json::from_slice(&line).map_err(StageError::Json);
            }
            if signals.next().is_some_and(is_an_end) {
                return Err(StageError::Interrupted);
            }
            let left = end.saturating_duration_since(Instant::now());
            let limit = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut polled = [
                PollFd::new(self.answers.as_fd(), PollFlags::POLLIN),
                PollFd::new(signals.file(), PollFlags::POLLIN),
            ];
            match poll(&mut polled, limit) {
                Ok(0) => return Err(StageError::Silent),
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(StageError::io(errno)),
            }
            if polled[0].revents().is_some_and(|events| !events.is_empty()) {
                let mut chunk = [0; 4096];
                match self.answers.read(&mut chunk).map_err(StageError::Io)? {
                    0 => return Err(StageError::Silent),
                    length => self.read.extend(chunk.iter().take(length)),
                }
            }
        }
    }
}

/// Whether a signal asks for the end.
pub fn is_an_end(signal: nix::sys::signal::Signal) -> bool {
    use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    matches!(signal, SIGHUP | SIGINT | SIGQUIT | SIGTERM)
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.requests.take());
        let end = Instant::now() + CLEARING;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > end {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(addresses) = &self.addresses {
            // It has done that itself, unless it was killed.
            let _ = std::fs::remove_dir_all(&addresses.folder);
        }
    }
}
