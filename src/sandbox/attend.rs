//! Attending running sandboxes: one poll over their messages, the pane, our own signals and a wake-up.

use super::jailed::{Running, Told};
use super::terminal::Relay;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Signals that the supervisor takes from its file instead of by their default action.
const TAKEN: [Signal; 9] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGWINCH,
    Signal::SIGCONT,
    Signal::SIGUSR1,
    Signal::SIGTSTP,
    Signal::SIGPIPE,
];

/// Those that ask for an end.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP];

/// Signals that whoever started this process wants ignored, by it and by what it starts (nohup(1)).
pub fn ignored_from_the_start() -> Vec<Signal> {
    let asked = [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGTSTP,
    ];
    asked
        .into_iter()
        .filter(|signal| crate::sys::clone::is_ignored(*signal))
        .collect()
}

/// The supervisor's signals, taken from the first moment on, so that none can end it before it can clean up.
#[derive(Debug)]
pub struct Signals {
    file: SignalFd,
    ending: Cell<Option<Signal>>,
}

impl Signals {
    /// Blocks them in this thread, and so in all that are made later. Children put theirs back.
    pub fn take() -> nix::Result<Signals> {
        let ignored = ignored_from_the_start();
        let set: SigSet = TAKEN.into_iter().filter(|signal| !ignored.contains(signal)).collect();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None)?;
        let file = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let ending = Cell::new(None);
        Ok(Signals { file, ending })
    }

    /// The next one that has arrived, without waiting.
    pub fn next(&self) -> Option<Signal> {
        let info = self.file.read_signal().ok().flatten()?;
        let signal = Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()?;
        if ENDING.contains(&signal) {
            self.ending.set(Some(signal));
        }
        Some(signal)
    }

    /// The last signal that asked this process to end: of those that were taken so far and those that wait.
    pub fn ending(&self) -> Option<Signal> {
        while self.next().is_some() {}
        self.ending.get()
    }

    /// What to poll.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Who stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopping {
    /// This process: whoever sent the signal has sent it to the others as well.
    Alone,
    /// Its process group, as a terminal would: the key went to the sandbox, and nobody else has heard of it.
    Group,
}

/// Stops, and returns when somebody continues this process. The kernel does not stop a group that nobody could continue
/// (an orphaned one, setpgid(2)); then this returns at once.
pub fn stop(who: Stopping) {
    let set: SigSet = [Signal::SIGTSTP].into_iter().collect();
    let target = match who {
        Stopping::Alone => nix::unistd::getpid(),
        Stopping::Group => nix::unistd::Pid::from_raw(0),
    };
    let _ = nix::sys::signal::kill(target, Signal::SIGTSTP);
    // It is stopped between these two, by the signal's default action.
    let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&set), None);
    let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None);
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The sandbox with this index told something.
    Told(usize, Told),
    /// A signal for the supervisor (SIGHUP also when its pane is gone); changes of the window's size are dealt with and not told.
    Signal(Signal),
    /// `Wakes::watch` is readable.
    Woken,
    /// `Wakes::door` is readable.
    DoorGone,
    /// The deadline has passed.
    Late,
}

/// What else ends a wait.
#[derive(Debug, Clone, Copy)]
pub struct Wakes<'a> {
    pub watch: BorrowedFd<'a>,
    /// Of the door of a sandbox that has one.
    pub door: Option<BorrowedFd<'a>>,
}

/// Waits for the next event, moving the pane's bytes meanwhile.
pub fn next(
    running: &[&Running],
    relay: &mut Option<Relay>,
    signals: &Signals,
    wakes: Wakes<'_>,
    deadline: Option<Instant>,
) -> nix::Result<Event> {
    loop {
        if let Some(signal) = signals.next() {
            match (signal, relay.as_ref()) {
                (Signal::SIGWINCH, relay) => relay.into_iter().for_each(Relay::resize),
                (signal, _) => return Ok(Event::Signal(signal)),
            }
        }
        if relay.as_mut().is_some_and(Relay::hangs_up) {
            return Ok(Event::Signal(Signal::SIGHUP));
        }
        let ready = wait(running, relay.as_ref(), signals, wakes, deadline)?;
        if let Some(relay) = relay.as_mut() {
            relay.move_bytes();
        }
        match ready {
            Ready::Message(index) => match running.get(index).map(|running| running.told()) {
                Some(Told::Noise) | None => {}
                Some(told) => return Ok(Event::Told(index, told)),
            },
            Ready::Woken => return Ok(Event::Woken),
            Ready::DoorGone => return Ok(Event::DoorGone),
            Ready::Late => return Ok(Event::Late),
            Ready::Bytes => {}
        }
    }
}

enum Ready {
    Message(usize),
    Woken,
    DoorGone,
    Late,
    /// Only signals or terminal bytes.
    Bytes,
}

fn wait(
    running: &[&Running],
    relay: Option<&Relay>,
    signals: &Signals,
    wakes: Wakes<'_>,
    deadline: Option<Instant>,
) -> nix::Result<Ready> {
    let mut polled = vec![
        PollFd::new(wakes.watch, PollFlags::POLLIN),
        PollFd::new(signals.file(), PollFlags::POLLIN),
    ];
    polled.extend(
        running
            .iter()
            .map(|running| PollFd::new(running.messages(), PollFlags::POLLIN)),
    );
    let door = polled.len();
    polled.extend(wakes.door.map(|door| PollFd::new(door, PollFlags::POLLIN)));
    for (file, interest) in relay.map(Relay::interest).into_iter().flatten() {
        if !interest.is_empty() {
            polled.push(PollFd::new(file, interest));
        }
    }
    let timeout = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
        Some(Duration::ZERO) => return Ok(Ready::Late),
        Some(left) => PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX),
        None => PollTimeout::NONE,
    };
    match poll(&mut polled, timeout) {
        Ok(0) => return Ok(Ready::Late),
        Err(Errno::EINTR) => return Ok(Ready::Bytes),
        other => other?,
    };
    let is_ready = |index: usize| {
        polled
            .get(index)
            .and_then(PollFd::revents)
            .is_some_and(|events| !events.is_empty())
    };
    // A failed verification must not wait behind a sandbox that has much to say.
    if is_ready(0) {
        return Ok(Ready::Woken);
    }
    if wakes.door.is_some() && is_ready(door) {
        return Ok(Ready::DoorGone);
    }
    let message = (0..running.len()).find(|index| is_ready(index + 2));
    Ok(message.map_or(Ready::Bytes, Ready::Message))
}
