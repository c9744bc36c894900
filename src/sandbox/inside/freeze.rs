//! Everything inside stands still while nobody looks: before the supervisor stops, and until it goes on. Carried out by
//! the first process, which no SIGSTOP of its own reaches.

use super::descendants;
use crate::policy::Mode;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::time::Duration;

/// Looks at whether everything has stopped, a millisecond apart.
const LOOKS: u32 = 1000;

/// A sandbox that was frozen.
pub struct Frozen {
    mode: Mode,
    /// Those that stood still before, by a shell's job control for one: they are not continued.
    before: Vec<Pid>,
    /// Whether nothing runs any more; false where something could not be stopped in time.
    pub whole: bool,
}

/// Stops every process of the sandbox but this one.
pub fn freeze(mode: Mode) -> Frozen {
    let before = others(mode).into_iter().filter(|pid| is_stopped(*pid)).collect();
    let whole = (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        stop(mode);
        others(mode).into_iter().all(is_still)
    });
    Frozen { mode, before, whole }
}

/// In a PID namespace one call reaches all: a fork in its middle begins again after the stop. Without one that call would
/// reach the person's other programs, so each is stopped by itself, and what they forked meanwhile by the next look.
fn stop(mode: Mode) {
    match mode {
        // ESRCH: there is none.
        Mode::Full => {
            let _ = kill(Pid::from_raw(-1), Signal::SIGSTOP);
        }
        Mode::Reduced => {
            for pid in others(mode).into_iter().filter(|pid| !is_still(*pid)) {
                let _ = kill(pid, Signal::SIGSTOP);
            }
        }
    }
}

impl Frozen {
    /// Continues those that `freeze` stopped.
    pub fn thaw(self) {
        for pid in others(self.mode).into_iter().filter(|pid| !self.before.contains(pid)) {
            let _ = kill(pid, Signal::SIGCONT);
        }
    }
}

/// Every other process of the sandbox.
fn others(mode: Mode) -> Vec<Pid> {
    let own = nix::unistd::getpid();
    match mode {
        Mode::Full => numbers(Path::new("/proc")).filter(|pid| *pid != own).collect(),
        Mode::Reduced => descendants::all(),
    }
}

fn numbers(folder: &Path) -> impl Iterator<Item = Pid> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw))
}

/// Whether no thread of the process runs a program's instruction: stopped, dead, or waiting in the kernel for something
/// that no signal interrupts, after which it stops.
fn is_still(pid: Pid) -> bool {
    states(pid).all(|state| matches!(state, b'T' | b't' | b'Z' | b'X' | b'x' | b'D'))
}

/// Whether somebody has stopped it. What only waits in the kernel, as a parent does in vfork(2), is not: whoever did not
/// continue it would leave it with a stop that comes when the wait is over.
fn is_stopped(pid: Pid) -> bool {
    states(pid).any(|state| matches!(state, b'T' | b't'))
}

/// The state of each thread (proc_pid_stat(5)); one that has ended has none.
fn states(pid: Pid) -> impl Iterator<Item = u8> {
    let tasks = format!("/proc/{pid}/task");
    numbers(Path::new(&tasks)).filter_map(move |task| {
        let stat = std::fs::read(format!("{tasks}/{task}/stat")).ok()?;
        // The name before it may hold anything.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        stat.get(end + 2).copied()
    })
}
