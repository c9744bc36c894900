//! Which process is meant, though its number may have been given to another since.

use super::fault::{Explain, Kind};
use super::ids::Pid;
use serde::{Deserialize, Serialize};
use std::io;

/// One process for ever: its number, when it started, and in which boot of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessRecord {
    /// The number in the PID namespace of the recorder.
    pub pid: Pid,
    /// Clock ticks from boot to its start: field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

/// What the kernel says about a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Alive,
    /// It has ended: no such number, a zombie, another process with its number, or another boot.
    Gone,
    /// `/proc` could not be read.
    Unknown,
}

/// Why a process could not be identified.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("there is no process {0}")]
    Gone(Pid),
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("{0} does not read as the kernel documents it")]
    Malformed(String),
}

impl Explain for ProcessError {
    fn kind(&self) -> Kind {
        match self {
            ProcessError::Gone(_) => Kind::NotFound,
            ProcessError::Read { .. } | ProcessError::Malformed(_) => Kind::Unknown,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            ProcessError::Gone(_) => None,
            _ => Some("pinfold needs /proc; mount it, or run outside the container that hides it".to_owned()),
        }
    }
}

impl ProcessRecord {
    /// This process.
    pub fn current() -> Result<ProcessRecord, ProcessError> {
        let raw = nix::unistd::getpid().as_raw();
        let pid = Pid::new(raw).ok_or_else(|| ProcessError::Malformed("the own process id".to_owned()))?;
        ProcessRecord::of(pid)
    }

    /// The process that has this number now; a zombie counts as gone.
    pub fn of(pid: Pid) -> Result<ProcessRecord, ProcessError> {
        let stat = read_stat(pid)?;
        match stat.is_dead() {
            true => Err(ProcessError::Gone(pid)),
            false => Ok(ProcessRecord {
                pid,
                start_ticks: stat.start_ticks,
                boot_id: read_boot_id()?,
            }),
        }
    }

    /// Whether it certainly still runs.
    pub fn is_alive(&self) -> bool {
        self.liveness() == Liveness::Alive
    }

    /// Whether it runs, has ended, or cannot be told.
    pub fn liveness(&self) -> Liveness {
        match read_boot_id() {
            Ok(boot) if boot != self.boot_id => return Liveness::Gone,
            Ok(_) => {}
            Err(_) => return Liveness::Unknown,
        }
        match read_stat(self.pid) {
            Ok(stat) if stat.is_dead() || stat.start_ticks != self.start_ticks => Liveness::Gone,
            Ok(_) => Liveness::Alive,
            Err(ProcessError::Gone(_)) => Liveness::Gone,
            Err(_) => Liveness::Unknown,
        }
    }
}

/// The two fields of `/proc/PID/stat` that identity needs.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    start_ticks: u64,
}

impl Stat {
    fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

fn read_stat(pid: Pid) -> Result<Stat, ProcessError> {
    let path = format!("/proc/{pid}/stat");
    match std::fs::read(&path) {
        Ok(bytes) => parse_stat(&bytes).ok_or(ProcessError::Malformed(path)),
        // ESRCH: it ended between open and read.
        Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => {
            // Without /proc every file is missing, which says nothing about the process.
            match std::fs::exists("/proc/self/stat") {
                Ok(true) => Err(ProcessError::Gone(pid)),
                _ => Err(ProcessError::Read { path, source: e }),
            }
        }
        Err(source) => Err(ProcessError::Read { path, source }),
    }
}

/// The name (field 2) may hold anything, spaces, newlines and brackets too: fields are counted from the last `)`.
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let name_end = bytes.iter().rposition(|b| *b == b')')?;
    let mut fields = bytes[name_end + 1..]
        .split(u8::is_ascii_whitespace)
        .filter(|f| !f.is_empty());
    let state = fields.next().filter(|f| f.len() == 1)?[0];
    let start_ticks = std::str::from_utf8(fields.nth(22 - 4)?).ok()?.parse().ok()?;
    Some(Stat { state, start_ticks })
}

fn read_boot_id() -> Result<String, ProcessError> {
    let path = "/proc/sys/kernel/random/boot_id";
    let text = std::fs::read_to_string(path).map_err(|source| ProcessError::Read {
        path: path.to_owned(),
        source,
    })?;
    Some(text.trim().to_owned())
        .filter(|id| !id.is_empty())
        .ok_or_else(|| ProcessError::Malformed(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    /// A shell that waits for its input, which nobody sends.
    fn sleeper(program: &std::path::Path) -> Child {
        Command::new(program)
            .args(["-c", "read line"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn pid_of(child: &Child) -> Pid {
        Pid::new(i32::try_from(child.id()).unwrap()).unwrap()
    }

    #[test]
    fn this_process_is_alive_and_survives_json() {
        let record = ProcessRecord::current().unwrap();
        assert!(record.is_alive());
        let json = serde_json::to_value(&record).unwrap();
        let keys: Vec<_> = json.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["pid", "startTicks", "bootId"]);
        assert_eq!(serde_json::from_value::<ProcessRecord>(json).unwrap(), record);
    }

    #[test]
    fn another_process_with_the_same_number_is_not_it() {
        let record = ProcessRecord::current().unwrap();
        let earlier = ProcessRecord {
            start_ticks: record.start_ticks - 1,
            ..record
        };
        assert_eq!(earlier.liveness(), Liveness::Gone);
    }

    #[test]
    fn the_same_number_and_start_in_another_boot_is_not_it() {
        let record = ProcessRecord {
            boot_id: "another".to_owned(),
            ..ProcessRecord::current().unwrap()
        };
        assert_eq!(record.liveness(), Liveness::Gone);
    }

    #[test]
    fn a_zombie_is_gone() {
        let mut child = sleeper("/bin/sh".as_ref());
        let record = ProcessRecord::of(pid_of(&child)).unwrap();
        assert!(record.is_alive());
        child.kill().unwrap();
        // Not yet waited for: its number is still taken.
        let since = Instant::now();
        while record.is_alive() && since.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(std::fs::exists(format!("/proc/{}/stat", record.pid)).unwrap());
        assert!(!record.is_alive());
        assert!(matches!(ProcessRecord::of(record.pid), Err(ProcessError::Gone(_))));
        child.wait().unwrap();
        assert_eq!(record.liveness(), Liveness::Gone);
    }

    #[test]
    fn a_process_with_an_odd_name_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"a) Z 1\n\xff"));
        std::os::unix::fs::symlink("/bin/sh", &odd).unwrap();
        let mut child = sleeper(&odd);
        let alive = ProcessRecord::of(pid_of(&child)).map(|r| r.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(alive.unwrap());
    }

    #[test]
    fn reads_fields_after_the_last_bracket() {
        let stat =
            b"7 (a) R 1 (\xff) S 1 7 7 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 123456 1000 2 18446744073709551615\n";
        assert_eq!(
            parse_stat(stat),
            Some(Stat {
                state: b'S',
                start_ticks: 123_456
            })
        );
    }

    #[test]
    fn refuses_a_stat_that_is_cut_short() {
        for bytes in [
            &b""[..],
            b"7 (a",
            b"7 (a)",
            b"7 (a) S 1 2 3",
            b"7 (a) SS 1 7 7 0 -1 4 1 0 0 0 1 2 0 0 20 0 1 0 9 1",
        ] {
            assert_eq!(parse_stat(bytes), None);
        }
    }
}
