//! The folder of session logs, which does not grow without end.

use super::StateError;
use crate::base::dirs;
use crate::base::regular::{self, ReadError};
use crate::base::{AbsPath, PathError};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::SystemTime;

/// The logs of how many ended sessions are kept.
pub const KEPT: usize = 50;

/// The folder's name below the state folder.
pub(super) const FOLDER: &str = "logs";

const ENDINGS: [&str; 4] = ["-server.log", "-network.log", "-refused.log", "-network.log.1"];

/// `<state>/logs`.
#[derive(Debug, Clone)]
pub struct Logs {
    folder: AbsPath,
}

impl Logs {
    pub(super) fn open(folder: AbsPath) -> Result<Logs, StateError> {
        dirs::make(&folder)?;
        Ok(Logs { folder })
    }

    /// Where a session's server writes.
    pub fn server(&self, session: &str) -> Result<AbsPath, PathError> {
        self.folder.join(format!("{session}{}", ENDINGS[0]))
    }

    /// Where the broker writes its decisions on a session.
    pub fn network(&self, session: &str) -> Result<AbsPath, PathError> {
        self.folder.join(format!("{session}{}", ENDINGS[1]))
    }

    /// Where the mediator writes what it refused in a session.
    pub fn refused(&self, session: &str) -> Result<AbsPath, PathError> {
        self.folder.join(format!("{session}{}", ENDINGS[2]))
    }

    /// The same below a state folder that need not be there yet.
    pub fn refused_in(state: &AbsPath, session: &str) -> Result<AbsPath, PathError> {
        state.join(FOLDER)?.join(format!("{session}{}", ENDINGS[2]))
    }

    /// The sessions that have logs, the one that was last written to first.
    pub fn newest_first(&self) -> Result<Vec<String>, StateError> {
        let mut sessions = self.sessions()?;
        sessions.sort_by(|a, b| (b.1.last, &b.0).cmp(&(a.1.last, &a.0)));
        let names = sessions.into_iter().filter_map(|(name, _)| name.into_string().ok());
        Ok(names.collect())
    }

    /// Opens a log for appending, made 0600 if it is missing; a link, pipe or device in its place is refused.
    pub fn append(&self, log: &AbsPath) -> Result<File, ReadError> {
        regular::open(log.as_path(), OpenOptions::new().append(true).create(true))
    }

    /// Removes the oldest logs until at most `keep` sessions have any, never those of the sessions in `live`. Returns what
    /// was removed. Files with other names are left alone.
    pub fn rotate(&self, keep: usize, live: &[&str]) -> Result<Vec<AbsPath>, StateError> {
        let mut sessions = self.sessions()?;
        sessions.sort_by(|a, b| (b.1.last, &b.0).cmp(&(a.1.last, &a.0)));
        let ended = sessions
            .into_iter()
            .skip(keep)
            .filter(|(name, _)| !live.iter().any(|l| OsStr::new(l) == name));
        let mut removed = Vec::new();
        for file in ended.flat_map(|(_, session)| session.files) {
            match std::fs::remove_file(&file) {
                Ok(()) => removed.push(file),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(StateError::Folder { path: file, source }),
            }
        }
        Ok(removed)
    }

    /// Removes a session's logs; what cannot be removed is left for `rotate`.
    pub fn remove(&self, session: &str) {
        for path in [self.server(session), self.network(session)].into_iter().flatten() {
            let _ = std::fs::remove_file(path);
        }
    }

    fn sessions(&self) -> Result<Vec<(OsString, Session)>, StateError> {
        let failed = |source| StateError::Folder {
            path: self.folder.clone(),
            source,
        };
        let mut sessions: BTreeMap<OsString, Session> = BTreeMap::new();
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some(session) = session_of(&name) else { continue };
            let (Ok(path), Ok(found)) = (self.folder.join(&name), entry.metadata()) else {
                continue;
            };
            if !found.is_file() {
                continue;
            }
            let time = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let session = sessions.entry(session.to_owned()).or_insert(Session {
                last: time,
                files: Vec::new(),
            });
            session.last = session.last.max(time);
            session.files.push(path);
        }
        Ok(sessions.into_iter().collect())
    }
}

struct Session {
    last: SystemTime,
    files: Vec<AbsPath>,
}

fn session_of(name: &OsStr) -> Option<&OsStr> {
    let bytes = name.as_bytes();
    let session = ENDINGS
        .iter()
        .find_map(|ending| bytes.strip_suffix(ending.as_bytes()))?;
    Some(OsStr::from_bytes(session)).filter(|s| !s.is_empty() && Path::new(s).file_name().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::time::Duration;

    fn logs() -> (tempfile::TempDir, Logs) {
        let folder = tempfile::tempdir().unwrap();
        let logs = Logs::open(AbsPath::new(folder.path().join("logs")).unwrap()).unwrap();
        (folder, logs)
    }

    fn written(logs: &Logs, session: &str, age: u64) {
        for path in [logs.server(session).unwrap(), logs.network(session).unwrap()] {
            let mut file = logs.append(&path).unwrap();
            file.write_all(b"x").unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
    }

    fn left(logs: &Logs) -> Vec<String> {
        let names = std::fs::read_dir(&logs.folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn keeps_the_newest_sessions_and_those_that_live() {
        let (_folder, logs) = logs();
        for (session, age) in [("a", 40), ("b", 30), ("c", 20), ("d", 10)] {
            written(&logs, session, age);
        }
        std::fs::write(logs.folder.join("notes.txt").unwrap(), "mine").unwrap();
        let removed = logs.rotate(2, &["a"]).unwrap();
        assert_eq!(removed.len(), 2);
        let kept = [
            "a-network.log",
            "a-server.log",
            "c-network.log",
            "c-server.log",
            "d-network.log",
            "d-server.log",
            "notes.txt",
        ];
        assert_eq!(left(&logs), kept);
        assert!(logs.rotate(3, &[]).unwrap().is_empty());
    }

    #[test]
    fn appends_privately_and_never_through_a_link() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_folder, logs) = logs();
        let path = logs.server("s").unwrap();
        for _ in 0..2 {
            logs.append(&path).unwrap().write_all(b"line\n").unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"line\nline\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let link = logs.network("s").unwrap();
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        assert!(matches!(logs.append(&link), Err(ReadError::NotRegular(_))));
    }
}
