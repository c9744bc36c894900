//! The launch itself: `pinfold start` on a terminal of ours, a prompt typed into it, and its end.

use super::DemoError;
use super::area::Area;
use super::pty::{Pty, Read};
use crate::base::{Fault, Port};
use crate::launch::control;
use crate::sandbox::attend::Signals;
use crate::state::{Lifecycle, Record, Store};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// What a person would type.
const PROMPT: &[u8] = b"Make the test pass and commit it.";
const ENTER: &[u8] = b"\r";
const INTERRUPT: &[u8] = b"\x03";
/// What OpenCode's client shows when it takes a prompt; other words are met by patience.
const INVITATION: &[u8] = b"Ask anything";
/// How long after the launch is verified the client is taken to be ready though it showed no invitation.
const SETTLED: Duration = Duration::from_secs(20);
/// Between the keys of a prompt and Enter, so that neither is taken for a pasted text.
const PAUSE: Duration = Duration::from_millis(300);
/// How long until Enter is pressed once more.
const AGAIN: Duration = Duration::from_secs(15);
/// How long nothing new may happen.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long an end may take before it is asked for more firmly.
const END: Duration = Duration::from_secs(6);
/// How often things are looked at, in milliseconds.
const TICK: u16 = 50;
/// What is kept of the screen's bytes.
const SCREEN: usize = 16 << 10;

/// A running launch; it ends when this is dropped.
pub struct Session<'a> {
    child: Child,
    pty: Pty,
    begun: Instant,
    store: &'a Store,
    signals: &'a Signals,
    screen: Vec<u8>,
}

/// How far the turn has come.
enum Stage {
    /// Until both sandboxes are verified and released.
    Starting,
    /// Until the client takes a prompt.
    Verified(Instant),
    /// The prompt stands there.
    Typed(Instant),
    /// It was sent, and sent again.
    Sent(Instant),
    SentAgain,
    /// The model was asked.
    Working,
}

/// What a turn came to, while everything still runs.
pub struct Turn {
    /// From the start to both sandboxes verified.
    pub ready: Duration,
    /// With the reports of a verification after the turn.
    pub record: Record,
}

/// The command line of the launch.
pub fn command(program: &Path, agent: &Path, model: Port, area: &Area, aims: &[(&str, std::path::PathBuf)]) -> Command {
    let mut command = Command::new(program);
    command.args(["start", "--host", "terminal", "--binary"]).arg(agent);
    command
        .arg("--read")
        .arg(program)
        .arg("--service")
        .arg(format!("model.pinfold=127.0.0.1:{model}"));
    // Nothing here needs the list of models, and not every machine has a network.
    command.args(["--env", "OPENCODE_DISABLE_MODELS_FETCH=1"]);
    for (name, value) in aims {
        let mut variable = OsString::from(format!("{name}="));
        variable.push(value);
        command.arg("--env").arg(variable);
    }
    command.env_clear().envs(area.environment().iter().cloned());
    command
}

impl<'a> Session<'a> {
    /// Starts it on a terminal of its own.
    pub fn start(
        mut command: Command,
        folder: &Path,
        store: &'a Store,
        signals: &'a Signals,
    ) -> Result<Session<'a>, DemoError> {
        let pty = Pty::open()?;
        command
            .current_dir(folder)
            .stdin(pty.stream()?)
            .stdout(pty.stream()?)
            .stderr(pty.stream()?);
        let child = crate::sys::terminal::lead_session(&mut command).spawn();
        let path = command.get_program().into();
        let child = child.map_err(|source| DemoError::Files { path, source })?;
        Ok(Session {
            child,
            pty,
            begun: Instant::now(),
            store,
            signals,
            screen: Vec::new(),
        })
    }

    /// One whole turn: `steps` says how many answers the model has given, `wanted` when it is done; `tell` hears of news.
    pub fn turn(
        &mut self,
        steps: impl Fn() -> usize,
        wanted: usize,
        mut tell: impl FnMut(&str),
    ) -> Result<Turn, Fault> {
        let (mut stage, mut ready, mut seen) = (Stage::Starting, Duration::ZERO, 0);
        let mut news = Instant::now();
        while seen < wanted {
            self.look()?;
            let next = self.advance(&stage, steps())?;
            if let Some(next) = next {
                if let Stage::Verified(at) = next {
                    ready = at - self.begun;
                    tell(&format!(
                        "both sandboxes are verified after {:.1} s; the client draws",
                        ready.as_secs_f64()
                    ));
                }
                (stage, news) = (next, Instant::now());
            }
            if steps() > seen {
                (seen, news) = (steps(), Instant::now());
                tell(&format!("the model has given {seen} of {wanted} answers"));
            }
            if news.elapsed() > PATIENCE {
                return Err(self.late(&stage).into());
            }
        }
        let record = self.record()?.ok_or(DemoError::NoRecord)?;
        let record = control::verify(self.store, &record)?;
        Ok(Turn { ready, record })
    }

    /// The next stage, if it has come.
    fn advance(&self, stage: &Stage, steps: usize) -> Result<Option<Stage>, DemoError> {
        let now = Instant::now();
        Ok(match stage {
            Stage::Working => None,
            _ if steps > 0 => Some(Stage::Working),
            Stage::Starting => {
                let running = self
                    .record()?
                    .is_some_and(|record| record.lifecycle_state == Lifecycle::Running);
                running.then_some(Stage::Verified(now))
            }
            Stage::Verified(at) if self.shows(INVITATION) || at.elapsed() > SETTLED => {
                self.pty.write(PROMPT)?;
                Some(Stage::Typed(now))
            }
            Stage::Typed(at) if at.elapsed() > PAUSE => {
                self.pty.write(ENTER)?;
                Some(Stage::Sent(now))
            }
            Stage::Sent(at) if at.elapsed() > AGAIN => {
                self.pty.write(ENTER)?;
                Some(Stage::SentAgain)
            }
            Stage::Verified(_) | Stage::Typed(_) | Stage::Sent(_) | Stage::SentAgain => None,
        })
    }

    /// Ends the client as a person would, and waits for the end of everything.
    pub fn end(mut self) -> Result<ExitStatus, DemoError> {
        for _ in 0..3 {
            self.pty.write(INTERRUPT)?;
            let asked = Instant::now();
            while asked.elapsed() < END {
                if let Some(status) = self.child.try_wait().map_err(DemoError::Wait)? {
                    return Ok(status);
                }
                self.wait(TICK)?;
            }
        }
        Err(DemoError::NoEnd)
    }

    /// Waits a moment; takes the screen's bytes; an error if the launch has ended or somebody wants us to.
    fn look(&mut self) -> Result<(), DemoError> {
        self.wait(TICK)?;
        match self.child.try_wait().map_err(DemoError::Wait)? {
            Some(status) => {
                self.wait(0)?;
                Err(DemoError::Ended {
                    status: describe(status),
                    said: last_words(&self.screen),
                })
            }
            None => Ok(()),
        }
    }

    fn wait(&mut self, milliseconds: u16) -> Result<(), DemoError> {
        let mut polled = [
            PollFd::new(self.pty.file(), PollFlags::POLLIN),
            PollFd::new(self.signals.file(), PollFlags::POLLIN),
        ];
        // An interrupted wait is only a shorter one.
        let _ = poll(&mut polled, PollTimeout::from(milliseconds));
        if let Some(signal) = super::asked_to_end(self.signals) {
            return Err(DemoError::Interrupted(signal));
        }
        while let Read::Bytes(bytes) = self.pty.read() {
            self.screen.extend(bytes);
            self.screen.drain(..self.screen.len().saturating_sub(SCREEN));
        }
        Ok(())
    }

    fn shows(&self, text: &[u8]) -> bool {
        self.screen.windows(text.len()).any(|window| window == text)
    }

    fn record(&self) -> Result<Option<Record>, DemoError> {
        Ok(self.store.list().map_err(DemoError::State)?.records.into_iter().next())
    }

    fn late(&self, stage: &Stage) -> DemoError {
        DemoError::Late(match stage {
            Stage::Starting => "both sandboxes to be verified",
            Stage::Verified(_) => "the client to show its input",
            Stage::Typed(_) | Stage::Sent(_) | Stage::SentAgain => "the agent to ask its model",
            Stage::Working => "the agent to go on",
        })
    }
}

impl Drop for Session<'_> {
    /// Asks for an end, and then makes one; the kernel ends what is inside with the launch.
    fn drop(&mut self) {
        let Ok(pid) = i32::try_from(self.child.id()) else {
            return;
        };
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            let asked = Instant::now();
            while asked.elapsed() < END {
                // A failed look is as good as an end: the process is our own child.
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                if asked.elapsed() < Duration::from_millis(u64::from(TICK)) {
                    let _ = kill(nix::unistd::Pid::from_raw(pid), signal);
                }
                while let Read::Bytes(_) = self.pty.read() {}
                std::thread::sleep(Duration::from_millis(u64::from(TICK)));
            }
        }
    }
}

/// An end in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".into(),
    }
}

/// Begins a failure of Pinfold itself.
const OWN: &str = "pinfold: ";

/// Its own failure, or else the last line with words, without what only moves the cursor or colours.
fn last_words(screen: &[u8]) -> String {
    let text = String::from_utf8_lossy(screen);
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            // CSI: parameters and intermediates up to a final letter.
            '\u{1b}' => {
                if rest.next() == Some('[') {
                    let _ = rest.by_ref().find(|c| ('\u{40}'..='\u{7e}').contains(c));
                }
            }
            c => plain.push(c),
        }
    }
    let own = plain
        .rfind(OWN)
        .map(|at| &plain[at + OWN.len()..])
        .and_then(|said| said.lines().next());
    let last = own.or_else(|| plain.lines().map(str::trim).rfind(|line| !line.is_empty()));
    crate::base::text::visible(last.unwrap_or("nothing").trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_launch_are_its_own_failure() {
        let table = [
            ("", "nothing"),
            ("\u{1b}[?25hxpinfold: it broke\r\n  a hint\r\n", "it broke"),
            ("\u{1b}[2J\u{1b}[1;1HAsk anything\r\n\u{1b}[0mbye\r\n\r\n", "bye"),
            ("pinfold: a\u{1b}[31mb\u{7}\r\n", "ab\\u{7}"),
        ];
        for (screen, expected) in table {
            assert_eq!(last_words(screen.as_bytes()), expected, "{screen:?}");
        }
    }
}
