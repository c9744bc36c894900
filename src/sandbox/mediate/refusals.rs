//! What the mediator refused in one launch, kept for the person: bounded, each thing once, and never in the way of a call.

use crate::base::{AbsPath, dirs, regular};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Different things that are kept of one launch.
const MOST: usize = 256;

/// What was to be connected to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A Unix socket of the host, in a folder that is granted.
    Socket(PathBuf),
    /// The same, where nothing is visible inside.
    Invisible(PathBuf),
    /// A port inside that is the supervisor's alone.
    Port(u16),
    /// In one network with the machine's: a port of its loopback.
    Loopback(u16),
    /// The same: a port to listen on.
    Listen(u16),
    /// The same: an address elsewhere, past the broker.
    Elsewhere(std::net::SocketAddr),
}

/// One line of the file. A thing has a line the first time, and again when its count has doubled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Seconds since 1970.
    pub time: u64,
    pub what: What,
    pub count: u64,
}

/// Counts, and the file that they are told to.
#[derive(Debug)]
pub struct Refusals {
    file: AbsPath,
    counts: Mutex<BTreeMap<What, u64>>,
}

impl Refusals {
    /// The file is made with the first refusal.
    pub fn to(file: AbsPath) -> Refusals {
        Refusals {
            file,
            counts: Mutex::default(),
        }
    }

    /// Counts one; what cannot be written is lost, and the launch goes on.
    pub fn note(&self, what: What) {
        let mut counts = self.counts.lock().unwrap_or_else(|poison| poison.into_inner());
        let full = counts.len() >= MOST;
        let count = match counts.get_mut(&what) {
            Some(count) => count,
            None if full => return,
            None => counts.entry(what.clone()).or_default(),
        };
        *count = count.saturating_add(1);
        if count.is_power_of_two() {
            let count = *count;
            self.write(&Refusal {
                time: now(),
                what,
                count,
            });
        }
    }

    fn write(&self, refusal: &Refusal) {
        let Ok(mut line) = serde_json::to_vec(refusal) else {
            return;
        };
        line.push(b'\n');
        let folder = self.file.parent().is_some_and(|folder| dirs::make(&folder).is_ok());
        if folder && let Ok(mut file) = regular::open(self.file.as_path(), OpenOptions::new().append(true).create(true))
        {
            let _ = file.write_all(&line);
        }
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(file: &AbsPath) -> Vec<Refusal> {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn each_thing_is_told_once_and_when_it_has_doubled() {
        let dir = tempfile::tempdir().unwrap();
        let file = AbsPath::new(dir.path().join("logs/x")).unwrap();
        let refusals = Refusals::to(file.clone());
        assert!(lines(&file).is_empty(), "nothing refused, no file");
        for _ in 0..9 {
            refusals.note(What::Port(80));
        }
        refusals.note(What::Socket("/a".into()));
        let counts: Vec<u64> = lines(&file).iter().map(|line| line.count).collect();
        assert_eq!(counts, [1, 2, 4, 8, 1]);
    }

    #[test]
    fn things_without_end_do_not_fill_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let file = AbsPath::new(dir.path().join("x")).unwrap();
        let refusals = Refusals::to(file.clone());
        for number in 0..1000 {
            refusals.note(What::Socket(format!("/{number}").into()));
        }
        assert_eq!(lines(&file).len(), MOST);
        refusals.note(What::Socket("/0".into()));
        assert_eq!(lines(&file).len(), MOST + 1, "what is known still counts");
    }
}
