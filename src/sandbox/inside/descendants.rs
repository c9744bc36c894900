//! The end of everything below the first process of a reduced sandbox. In full mode the kernel does it: there the first
//! process is PID 1 of its namespace. Here it is a subreaper (prctl(2)): whatever loses its parent becomes its child, so
//! nothing leaves the tree.

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long is tried: what does not end by then waits in the kernel for something that no signal reaches.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// One process as /proc/PID/stat shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Born {
    parent: i32,
    start: u64,
}

/// SIGKILL to everything below this process, again and again until nothing is left: what was forked meanwhile is found by
/// the next round.
pub fn end_all() {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let all = processes();
        for pid in below(&all, nix::unistd::getpid().as_raw()) {
            end(pid, all.get(&pid).copied());
        }
        if collect() == Left::Nothing {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Everything below this process now.
pub fn all() -> Vec<Pid> {
    let found = below(&processes(), nix::unistd::getpid().as_raw());
    found.into_iter().map(Pid::from_raw).collect()
}

/// Whether children are left.
#[derive(PartialEq, Eq)]
enum Left {
    Nothing,
    Some,
}

fn collect() -> Left {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::EINTR) => {}
            Err(_) => return Left::Nothing,
            Ok(WaitStatus::StillAlive) => return Left::Some,
            Ok(_) => {}
        }
    }
}

/// Exactly that process, not a later one with its number.
fn end(pid: i32, seen: Option<Born>) {
    let Ok(pidfd) = crate::sys::pidfd::open(pid) else {
        return;
    };
    if born(pid) == seen {
        let _ = crate::sys::pidfd::signal(&pidfd, Signal::SIGKILL);
    }
}

fn processes() -> BTreeMap<i32, Born> {
    let folder = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, born(pid)?))).collect()
}

/// When a process began, which tells it from a later one with its number.
pub fn start_of(pid: i32) -> Option<u64> {
    born(pid).map(|born| born.start)
}

/// Parent and start time (proc_pid_stat(5), fields 4 and 22); the name before them may hold anything.
fn born(pid: i32) -> Option<Born> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 2;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Born { parent, start })
}

fn below(all: &BTreeMap<i32, Born>, top: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut next = vec![top];
    while let Some(parent) = next.pop() {
        let children = all
            .iter()
            .filter(|(_, born)| born.parent == parent)
            .map(|(pid, _)| *pid);
        next.extend(children.filter(|pid| found.insert(*pid)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_below_and_nothing_else() {
        let all: BTreeMap<i32, Born> = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (7, 2)]
            .map(|(pid, parent)| (pid, Born { parent, start: 0 }))
            .into();
        assert_eq!(below(&all, 2), [3, 4, 7].into());
        assert_eq!(below(&all, 6), [].into());
    }

    #[test]
    fn reads_this_process() {
        let own = born(nix::unistd::getpid().as_raw()).unwrap();
        assert_eq!(own.parent, nix::unistd::getppid().as_raw());
        assert!(own.start > 0);
    }
}
