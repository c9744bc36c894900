//! The step wait: until a command has ended, with signals, stops and verification on the way.

use super::watch::{OVERDUE, Round, Watch};
use crate::base::{Explain, Kind};
use crate::sandbox::attend::{Event, Signals, Stopping, Wakes, next, stop};
use crate::sandbox::door::Door;
use crate::sandbox::terminal::Relay;
use crate::sandbox::{Exit, Running, Told};
use crate::verify::Report;
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// How long a command may take after it was asked to end.
const GRACE: Duration = Duration::from_secs(3);
/// The same when the pane is gone: multiplexers kill what is left in it after half a second.
const HURRY: Duration = Duration::from_millis(150);

/// What a failed verification does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    Stop,
    /// Record it, and go on.
    Warn,
}

/// Why the wait ended.
#[derive(Debug)]
pub enum Outcome {
    /// The sandbox with this index ended first.
    Ended(usize, Exit),
    /// A verification failed.
    Unconfined(Report),
    /// The process at the door was ended.
    DoorGone,
    /// The supervisor cannot watch any more.
    Broken(nix::errno::Errno),
}

/// A verification that failed while the launch lived.
#[derive(Debug, thiserror::Error)]
#[error("verification failed, and the launch was stopped: {0}")]
pub struct Unconfined(pub String);

impl Explain for Unconfined {
    fn kind(&self) -> Kind {
        Kind::Unconfined
    }
    fn hint(&self) -> Option<String> {
        let replaced = self.0.ends_with("is not mounted");
        let hint = if replaced {
            "a protected file was replaced from outside, as `git config` in another terminal does: look at it, and start again"
        } else {
            "nothing of it runs any more; `pinfold doctor` tries the same sandbox and says more"
        };
        Some(hint.into())
    }
}

impl Unconfined {
    /// From the first finding.
    pub fn of(report: &Report) -> Unconfined {
        let first = report
            .findings
            .first()
            .map(|finding| format!("{}: {}", finding.check, finding.problem));
        Unconfined(first.unwrap_or_else(|| "no finding was told".into()))
    }
}

/// Waits for running commands. The last of `running` has the terminal and gets signals.
pub struct Attendance<'a> {
    pub running: &'a [&'a Running],
    pub relay: Option<Relay>,
    pub signals: &'a Signals,
    pub watch: &'a Watch,
    pub on_failure: OnFailure,
    door: Option<&'a Door>,
    /// Set by the first request to end.
    deadline: Option<Instant>,
    /// The stop that is under way: who stops, and how many sandboxes have yet to say that they stand still.
    stopping: Option<(Stopping, usize)>,
    /// When the next round of verification is overdue, and whether it was asked for once more.
    overdue: (Instant, bool),
}

impl<'a> Attendance<'a> {
    /// Ready to wait.
    pub fn new(
        running: &'a [&'a Running],
        relay: Option<Relay>,
        signals: &'a Signals,
        watch: &'a Watch,
        on_failure: OnFailure,
    ) -> Attendance<'a> {
        Attendance {
            running,
            relay,
            signals,
            watch,
            on_failure,
            door: None,
            deadline: None,
            stopping: None,
            overdue: (Instant::now() + OVERDUE, false),
        }
    }

    /// With the door of one of them, without which none is of use.
    pub fn through(mut self, door: Option<&'a Door>) -> Attendance<'a> {
        self.door = door;
        self
    }

    /// Not longer than this.
    pub fn within(mut self, limit: Duration) -> Attendance<'a> {
        self.deadline = Some(Instant::now() + limit);
        self
    }

    /// Until a command ends or a verification fails; `seen` gets every round of reports. The relay comes back: what the
    /// command wrote last is shown once the sandboxes are gone.
    pub fn wait(mut self, mut seen: impl FnMut(&Round)) -> (Outcome, Option<Relay>) {
        let wakes = Wakes {
            watch: self.watch.wake(),
            door: self.door.and_then(Door::ended),
        };
        let outcome = loop {
            let deadline = self
                .deadline
                .map_or(self.overdue.0, |deadline| deadline.min(self.overdue.0));
            match next(self.running, &mut self.relay, self.signals, wakes, Some(deadline)) {
                Err(errno) => break Outcome::Broken(errno),
                Ok(Event::Told(index, Told::Ended(exit))) => break Outcome::Ended(index, exit),
                // Any other is a server, and what stops it is its own tool: that must not stop the supervisor as well.
                Ok(Event::Told(index, Told::Stopped)) if index + 1 == self.running.len() => self.command_stopped(),
                Ok(Event::Told(_, Told::Frozen { whole })) => self.one_is_frozen(whole),
                Ok(Event::Told(_, Told::Stopped | Told::Noise)) => {}
                Ok(Event::Signal(signal)) => self.pass_on(signal),
                Ok(Event::Late) => match self.late() {
                    Some(outcome) => break outcome,
                    None => continue,
                },
                Ok(Event::DoorGone) => break Outcome::DoorGone,
                Ok(Event::Woken) => match self.watch.rounds() {
                    Err(errno) => break Outcome::Broken(errno),
                    Ok(rounds) => {
                        if let Some(report) = self.look(rounds, &mut seen) {
                            break Outcome::Unconfined(report);
                        }
                    }
                },
            }
        };
        (outcome, self.relay)
    }

    /// A time has passed: that of the command, or that of the next verification, which then is asked for once more:
    /// this process may have been stopped for a while.
    fn late(&mut self) -> Option<Outcome> {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            return Some(Outcome::Ended(self.running.len().saturating_sub(1), Exit::Signal(9)));
        }
        match self.overdue {
            (at, _) if at > now => None,
            (_, true) => Some(Outcome::Broken(nix::errno::Errno::ETIMEDOUT)),
            (_, false) => {
                self.watch.ask();
                self.overdue = (now + OVERDUE, true);
                None
            }
        }
    }

    /// Passes the rounds on; a failure that ends the launch comes back.
    fn look(&mut self, rounds: Vec<Round>, seen: &mut impl FnMut(&Round)) -> Option<Report> {
        if !rounds.is_empty() {
            self.overdue = (Instant::now() + OVERDUE, false);
        }
        rounds.iter().for_each(seen);
        let failed = rounds
            .into_iter()
            .flat_map(|round| round.reports)
            .find(|report| !report.ok() && !report.ended);
        failed.filter(|_| self.on_failure == OnFailure::Stop)
    }

    /// A signal for the supervisor is meant for the command; one that asks for an end is asked for only so long.
    fn pass_on(&mut self, signal: Signal) {
        let Some(command) = self.running.last() else { return };
        match signal {
            Signal::SIGUSR1 => self.watch.ask(),
            Signal::SIGCONT => self.resume(),
            Signal::SIGTSTP => self.suspend(Stopping::Alone),
            Signal::SIGPIPE => {}
            _ => {
                command.signal(signal);
                let limit = match signal {
                    Signal::SIGTERM => GRACE,
                    Signal::SIGHUP => HURRY,
                    _ => return,
                };
                let end = Instant::now() + limit;
                self.deadline = Some(self.deadline.map_or(end, |deadline| deadline.min(end)));
            }
        }
    }

    /// The command was stopped with ctrl-Z. Without the pane's keys nobody has typed that, and nobody could type `fg`.
    fn command_stopped(&mut self) {
        if self.relay.as_ref().is_some_and(|relay| relay.pane.is_taken()) {
            self.suspend(Stopping::Group);
        }
    }

    /// This process is to stop, and its looks with it: first everything inside must stand still.
    fn suspend(&mut self, who: Stopping) {
        if self.stopping.is_none() {
            self.stopping = Some((who, self.running.len()));
            self.running.iter().for_each(|running| running.freeze());
        }
    }

    /// Once the last sandbox stands still, the terminal is given back and this process stops, until somebody continues
    /// it. Where something would run on, it does not stop.
    fn one_is_frozen(&mut self, whole: bool) {
        let Some((who, left)) = self.stopping.as_mut() else {
            return;
        };
        *left = left.saturating_sub(1);
        match (whole, *left, *who) {
            (true, 1.., _) => return,
            (true, 0, who) => {
                if let Some(relay) = self.relay.as_mut() {
                    relay.give_back();
                }
                stop(who);
            }
            (false, ..) => {}
        }
        self.stopping = None;
        self.running.iter().for_each(|running| running.thaw());
        self.resume();
    }

    /// The pane again, the command goes on, and what happened meanwhile outside is looked at now.
    fn resume(&mut self) {
        if let Some(relay) = self.relay.as_mut() {
            relay.take_again();
        }
        if let Some(command) = self.running.last() {
            command.resume();
            // A full-screen program draws anew, also where the size is the same.
            command.signal(Signal::SIGWINCH);
        }
        self.watch.ask();
    }
}
