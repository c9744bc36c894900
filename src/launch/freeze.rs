//! A suspended launch stands still as a whole: its supervisor is stopped with it, and nobody would guard, verify or
//! decide what a process in the background does meanwhile.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Rounds in which processes may still be made while others are stopped.
const ROUNDS: usize = 100;

/// The processes of one sandbox that were stopped, and go on when this is let go.
#[derive(Debug)]
pub struct Frozen {
    namespace: PathBuf,
    stopped: BTreeSet<i32>,
}

impl Frozen {
    /// Stops every process of the sandbox but its first, which relays; again and again, until no new one is found.
    pub fn of(first: i32) -> Option<Frozen> {
        let namespace = namespace(first)?;
        let mut frozen = Frozen {
            namespace,
            stopped: BTreeSet::new(),
        };
        for _ in 0..ROUNDS {
            let members = members(&frozen.namespace);
            let awake: Vec<i32> = members.filter(|pid| *pid != first && !is_stopped(*pid)).collect();
            if awake.is_empty() {
                break;
            }
            for pid in awake {
                // What has ended meanwhile does nothing.
                let _ = kill(Pid::from_raw(pid), Signal::SIGSTOP);
                frozen.stopped.insert(pid);
            }
        }
        Some(frozen)
    }

    /// Lets those go on that were stopped here; what somebody inside had stopped before stays so.
    pub fn thaw(self) {
        for pid in self.stopped {
            if namespace(pid).as_ref() == Some(&self.namespace) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
            }
        }
    }
}

fn members(own: &PathBuf) -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(move |pid| namespace(*pid).as_ref() == Some(own))
}

fn namespace(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// Stopped, traced, or at its end.
fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, None | Some('T' | 't' | 'Z' | 'X'))
}
