//! All panes' records: one folder, one file each.

use super::claim::Claim;
use super::error::{Problem, Reason, StateError};
use super::logs::Logs;
use super::reconcile::reconcile;
use super::record::{Record, Request};
use super::slot::{Before, Slot};
use crate::base::atomic::TEMPORARY;
use crate::base::{AbsPath, Dirs, Liveness, PaneId, ProcessRecord, Timestamp, dirs};
use std::fs::DirEntry;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

/// How old a temporary file must be to have been left by a writer that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The records of one user.
#[derive(Debug, Clone)]
pub struct Store {
    panes: AbsPath,
    logs: Logs,
}

/// Every record that could be read, by session name, and what was wrong with the other files.
#[derive(Debug, Default)]
pub struct Listing {
    /// The records.
    pub records: Vec<Record>,
    /// The files that are no records; they stop nothing.
    pub problems: Vec<Problem>,
}

/// A launch that waits for its bridge.
#[derive(Debug)]
pub struct Begun {
    /// Its record.
    pub record: Record,
    /// What was set aside on the way.
    pub problem: Option<Problem>,
}

impl Store {
    /// Opens the store, and makes its folders 0700 if they are missing.
    pub fn open(dirs: &Dirs) -> Result<Store, StateError> {
        let join = |name| {
            dirs.state.join(name).map_err(|source| dirs::DirsError::Variable {
                variable: "XDG_STATE_HOME",
                source,
            })
        };
        let panes = join("panes")?;
        dirs::make(&panes)?;
        Ok(Store {
            panes,
            logs: Logs::open(join(super::logs::FOLDER)?)?,
        })
    }

    /// The folder of session logs.
    pub fn logs(&self) -> &Logs {
        &self.logs
    }

    pub(super) fn slot(&self, pane: &PaneId) -> Slot {
        Slot::of(&self.panes, pane)
    }

    /// Reads all records. Damaged files are set aside and told; only an unreadable folder is an error.
    pub fn list(&self) -> Result<Listing, StateError> {
        let mut listing = self.read_all()?;
        // A stand-in whose bridge was killed just after it had moved the record to its pane.
        let taken: Vec<_> = listing
            .records
            .iter()
            .filter(|r| !r.is_stand_in())
            .map(|r| r.launch_id.clone())
            .collect();
        listing
            .records
            .retain(|r| !r.is_stand_in() || !taken.contains(&r.launch_id));
        Ok(listing)
    }

    fn read_all(&self) -> Result<Listing, StateError> {
        let mut listing = Listing::default();
        for entry in self
            .entries()?
            .iter()
            .filter(|e| e.file_name().as_bytes().ends_with(b".json"))
        {
            let slot = Slot::at(&entry.path());
            // Read without the lock: a save replaces the file whole. Only to move a damaged one the lock is needed.
            let read = slot.read().or_else(|problem| match problem.reason {
                Reason::Damaged(_) => slot.clone().lock().and_then(|locked| locked.read()).map_or_else(
                    |error| Err(failed(problem.file.clone(), &error)),
                    |before| before.problem.map_or(Ok(before.record), Err),
                ),
                _ => Err(problem),
            });
            match read {
                Ok(record) => listing.records.extend(record),
                Err(problem) => listing.problems.push(problem),
            }
        }
        listing.records.sort_by(|a, b| a.session_name.cmp(&b.session_name));
        Ok(listing)
    }

    fn entries(&self) -> Result<Vec<DirEntry>, StateError> {
        let failed = |source| StateError::Folder {
            path: self.panes.clone(),
            source,
        };
        std::fs::read_dir(&self.panes)
            .map_err(failed)?
            .collect::<Result<_, _>>()
            .map_err(failed)
    }

    /// The record whose session name or pane is `key`, or the only one whose session name or pane begins with it.
    pub fn find(&self, key: &str) -> Result<Record, StateError> {
        let records = self.list()?.records;
        let names = |r: &Record| [r.session_name.clone(), r.pane_id.as_str().to_owned()];
        if let Some(exact) = records.iter().find(|r| names(r).iter().any(|n| n == key)) {
            return Ok(exact.clone());
        }
        let begins = |r: &&Record| !key.is_empty() && names(r).iter().any(|n| n.starts_with(key));
        let mut found: Vec<_> = records.iter().filter(begins).collect();
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only.clone()),
            (None, _) => Err(StateError::NotFound(key.to_owned())),
            (Some(last), false) => {
                found.push(last);
                let names = found.iter().map(|r| r.session_name.clone()).collect();
                Err(StateError::Ambiguous {
                    key: key.to_owned(),
                    names,
                })
            }
        }
    }

    /// Records a launch that is asked for. Age, count and unknown keys of the pane's earlier record go on; an earlier
    /// launch that is still active is an error that names it.
    pub fn begin(&self, request: Request) -> Result<Begun, StateError> {
        let now = Timestamp::now();
        let mut record = Record::new(request, now);
        let locked = self.slot(&record.pane_id).lock()?;
        let _free = locked.launch_lock(&record.pane_id)?;
        let Before {
            record: earlier,
            problem,
        } = locked.read()?;
        if let Some(earlier) = earlier {
            if earlier.lifecycle_state.is_active() && reconcile(&earlier, may_live, now).is_none() {
                return Err(StateError::Busy {
                    pane: earlier.pane_id,
                    session: earlier.session_name,
                });
            }
            record = record.following(earlier);
        }
        locked.save(&mut record)?;
        Ok(Begun { record, problem })
    }

    /// Claims a pane for the life of a bridge. Of two at once one wins; the other's error says who holds it and since when.
    pub fn claim(&self, pane: &PaneId) -> Result<Claim, StateError> {
        Claim::of(self, pane)
    }

    /// Changes a pane's record under its lock and returns it as saved. The pane itself cannot be changed.
    pub fn update(&self, pane: &PaneId, change: impl FnOnce(&mut Record)) -> Result<Record, StateError> {
        let not_found = || StateError::NotFound(pane.as_str().to_owned());
        let locked = self.slot(pane).lock_existing()?.ok_or_else(not_found)?;
        let before = locked.read()?;
        let mut record = match (before.record, before.problem) {
            (Some(record), _) => record,
            (None, Some(problem)) => return Err(StateError::Unusable(problem)),
            (None, None) => return Err(not_found()),
        };
        change(&mut record);
        record.pane_id = pane.clone();
        locked.save(&mut record)?;
        Ok(record)
    }

    /// Forgets a pane, and returns what was known. An error while a bridge holds it.
    pub fn remove(&self, pane: &PaneId) -> Result<Option<Record>, StateError> {
        let Some(locked) = self.slot(pane).lock_existing()? else {
            return Ok(None);
        };
        let free = locked.launch_lock(pane)?;
        let record = locked.read()?.record;
        locked.remove(free)?;
        Ok(record)
    }

    /// Puts every record right whose bridge died without a word, removes what killed writers left, and lists. A record
    /// is changed only if nobody holds its launch lock *and* its bridge is gone; no process is touched.
    pub fn reconcile_all(&self) -> Result<Listing, StateError> {
        self.sweep()?;
        let Listing {
            records: all,
            mut problems,
        } = self.read_all()?;
        let taken: Vec<_> = all.iter().filter(|r| !r.is_stand_in()).map(|r| &r.launch_id).collect();
        for record in all.iter().filter(|r| r.lifecycle_state.is_active()) {
            let settled = match record.is_stand_in() && taken.contains(&&record.launch_id) {
                true => self.remove(&record.pane_id).map(drop),
                false => self.settle(&record.pane_id),
            };
            match settled {
                Ok(()) | Err(StateError::Claimed { .. }) => {}
                Err(error) => problems.push(failed(self.slot(&record.pane_id).file(), &error)),
            }
        }
        let mut listing = self.list()?;
        // What was set aside a moment ago is told once more; what stays in place stands in both lists.
        problems.retain(|problem| !listing.problems.contains(problem));
        listing.problems.extend(problems);
        Ok(listing)
    }

    fn settle(&self, pane: &PaneId) -> Result<(), StateError> {
        let locked = self.slot(pane).lock()?;
        let _free = locked.launch_lock(pane)?;
        match locked
            .read()?
            .record
            .and_then(|record| reconcile(&record, may_live, Timestamp::now()))
        {
            Some(mut settled) => locked.save(&mut settled),
            None => Ok(()),
        }
    }

    fn sweep(&self) -> Result<(), StateError> {
        for entry in self
            .entries()?
            .iter()
            .filter(|e| e.file_name().as_bytes().starts_with(TEMPORARY.as_bytes()))
        {
            let age = entry.metadata().ok().and_then(|m| m.modified().ok()?.elapsed().ok());
            if age.is_some_and(|age| age > ABANDONED) {
                // Left for the next time if it cannot be removed.
                let _ = std::fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}

/// A bridge that cannot be looked at is not declared dead.
fn may_live(process: &ProcessRecord) -> bool {
    process.liveness() != Liveness::Gone
}

fn failed(file: AbsPath, error: &StateError) -> Problem {
    match error {
        StateError::Unusable(problem) => problem.clone(),
        other => Problem {
            file,
            reason: Reason::Failed(other.to_string()),
            aside: None,
        },
    }
}
