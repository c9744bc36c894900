//! One pane's file and the two locks beside it: a short one for each change, and one that a bridge holds for life.

use super::error::{Problem, Reason, StateError};
use super::record::{Parsed, Record, parse};
use crate::base::regular::{self, ReadError};
use crate::base::{AbsPath, FileLock, LockError, PaneId, Timestamp, atomic, hex};
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// No record comes near it; a verification report of thousands of processes is a few megabytes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// A change takes milliseconds; who waits longer than this waits for something stuck.
const WAIT: Duration = Duration::from_secs(5);

/// `<readable>-<first 10 hexadecimal digits of sha256(pane)>.json`; readable is at most 64 characters of the pane's name.
pub(super) fn file_name(pane: &PaneId) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let units = pane.as_str().encode_utf16();
    let readable: String = units
        .map(|unit| char::from_u32(u32::from(unit)).filter(|c| plain(*c)).unwrap_or('_'))
        .take(64)
        .collect();
    let digest = hex(&Sha256::digest(pane.as_str()));
    format!("{readable}-{}.json", &digest[..10])
}

/// A pane's file, not locked: it can be read (a save replaces it whole), not changed.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    path: PathBuf,
}

impl Slot {
    pub(super) fn of(panes: &AbsPath, pane: &PaneId) -> Slot {
        Slot {
            path: panes.as_path().join(file_name(pane)),
        }
    }

    pub(super) fn at(path: &Path) -> Slot {
        Slot { path: path.to_owned() }
    }

    /// The right to change the file, for a short while.
    pub(super) fn lock(self) -> Result<Locked, StateError> {
        let lock = FileLock::acquire(&self.path, WAIT)?;
        Ok(Locked { slot: self, lock })
    }

    /// The same, but no lock file is made for a pane that has no file.
    pub(super) fn lock_existing(self) -> Result<Option<Locked>, StateError> {
        match self.path.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => self.lock().map(Some),
        }
    }

    /// What the file holds, or nothing if there is none.
    pub(super) fn read(&self) -> Result<Option<Record>, Problem> {
        let problem = |reason| Problem {
            file: self.file(),
            reason,
            aside: None,
        };
        let bytes = match regular::read(&self.path, LARGEST) {
            Ok(bytes) => bytes,
            Err(e) if e.is_missing() => return Ok(None),
            Err(e @ ReadError::Io { .. }) => return Err(problem(Reason::Failed(e.to_string()))),
            Err(e) => return Err(problem(Reason::Damaged(e.to_string()))),
        };
        match parse(&bytes) {
            Parsed::Record(record) if self.path.file_name() == Some(file_name(&record.pane_id).as_ref()) => {
                Ok(Some(*record))
            }
            Parsed::Record(record) => {
                let other = record.pane_id.as_str();
                Err(problem(Reason::Damaged(format!(
                    "it is the record of another pane, {other}"
                ))))
            }
            Parsed::Newer(version) => Err(problem(Reason::Newer(version))),
            Parsed::Damaged(reason) => Err(problem(Reason::Damaged(reason))),
        }
    }

    /// The file.
    pub(super) fn file(&self) -> AbsPath {
        AbsPath::new(&self.path).unwrap_or_else(|_| AbsPath::root())
    }
}

/// A pane's file under its short lock.
#[derive(Debug)]
pub(super) struct Locked {
    slot: Slot,
    lock: FileLock,
}

/// What was in a file that is about to be written.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) record: Option<Record>,
    /// What was set aside, if the file was damaged.
    pub(super) problem: Option<Problem>,
}

impl Locked {
    /// Takes the lock that a bridge holds for life, or says who has it. One try: under the short lock nobody else has it
    /// for a moment only.
    pub(super) fn launch_lock(&self, pane: &PaneId) -> Result<FileLock, StateError> {
        let mut path = OsString::from(&self.slot.path);
        path.push(".launch");
        match FileLock::acquire(Path::new(&path), Duration::ZERO) {
            Err(LockError::Held { holder, .. }) => Err(StateError::Claimed {
                pane: pane.clone(),
                holder,
            }),
            other => Ok(other?),
        }
    }

    /// What the file holds; a damaged one is moved out of the way. An error if it must stay: a newer build's, or unreadable.
    pub(super) fn read(&self) -> Result<Before, StateError> {
        match self.slot.read() {
            Ok(record) => Ok(Before { record, problem: None }),
            Err(problem) => match self.set_aside(problem) {
                problem @ Problem { aside: Some(_), .. } => Ok(Before {
                    record: None,
                    problem: Some(problem),
                }),
                problem => Err(StateError::Unusable(problem)),
            },
        }
    }

    /// Moves a damaged file to `<name>.damaged-<time>`, never over another; the message says whether that worked.
    fn set_aside(&self, mut problem: Problem) -> Problem {
        if !matches!(problem.reason, Reason::Damaged(_)) {
            return problem;
        }
        let time = Timestamp::now().compact();
        let names = (1..1000).map(|n| {
            if n == 1 {
                format!(".damaged-{time}")
            } else {
                format!(".damaged-{time}-{n}")
            }
        });
        let mut paths = names.map(|ending| {
            let mut path = OsString::from(&self.slot.path);
            path.push(ending);
            PathBuf::from(path)
        });
        // Only holders of this pane's lock make such names, so nothing appears between the look and the rename.
        let free = paths.find(|path| {
            path.symlink_metadata()
                .is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
        });
        let moved = free.ok_or(io::ErrorKind::AlreadyExists.into());
        match moved.and_then(|path| std::fs::rename(&self.slot.path, &path).map(|()| path)) {
            Ok(path) => problem.aside = AbsPath::new(path).ok(),
            Err(e) => problem.reason = Reason::Failed(format!("it is damaged and cannot be set aside: {e}")),
        }
        problem
    }

    /// Writes the record with a fresh revision and the time of now; on any error the old file stays as it was.
    pub(super) fn save(&self, record: &mut Record) -> Result<(), StateError> {
        record.revision = hex(&rand::rng().random::<[u8; 6]>());
        record.updated_at = Timestamp::now();
        let bytes = record.write().map_err(|source| StateError::Json {
            pane: record.pane_id.clone(),
            source,
        })?;
        Ok(atomic::save(&self.slot.path, &bytes)?)
    }

    /// Removes the file and its locks; `launch` proves that no bridge lives on it.
    pub(super) fn remove(self, launch: FileLock) -> Result<(), StateError> {
        let failed = |source| StateError::Folder {
            path: self.slot.file(),
            source,
        };
        match std::fs::remove_file(&self.slot.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        launch.remove().map_err(failed)?;
        let failed = |source| StateError::Folder {
            path: self.slot.file(),
            source,
        };
        self.lock.remove().map_err(failed)
    }
}
