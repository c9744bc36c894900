//! Forgetting ended launches: by hand, and by itself once there are many old ones. Never one that may live, and never
//! one whose bad end nobody has looked at, unless that is asked for.

use super::error::StateError;
use super::record::{Lifecycle, Record};
use super::store::Store;
use crate::base::{PaneId, Timestamp};
use serde::Serialize;
use std::time::Duration;

/// The last so many ended launches are kept in any case,
pub const LAST: usize = 100;
/// and those that ended within this time.
pub const YOUNG: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is to be forgotten of the ended ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What is neither among the last nor young.
    Old,
    /// All but those that hold something that nobody has seen.
    Seen,
    All,
}

/// What became of the ended launches.
#[derive(Debug, Default, Serialize)]
pub struct Pruned {
    pub pruned: Vec<Gone>,
    pub kept: Vec<Kept>,
}

/// One that is forgotten.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gone {
    pub pane_id: PaneId,
    pub session_name: String,
}

/// One that is not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    pub pane_id: PaneId,
    pub session_name: String,
    pub reason: String,
}

impl Record {
    /// When it ended, or was last changed.
    pub fn ended_at(&self) -> Timestamp {
        self.exited_at.unwrap_or(self.updated_at)
    }

    /// Whether it failed, or changed what the host may execute, and nobody has asked about it since.
    pub fn is_unseen(&self) -> bool {
        let speaks = self.lifecycle_state == Lifecycle::Failed || !self.changed.is_empty();
        speaks && self.seen_at.is_none()
    }
}

impl Store {
    /// Notes that a person has looked at how it ended. What cannot be noted stays unseen.
    pub fn mark_seen(&self, record: &Record) {
        if !record.lifecycle_state.is_active() && record.is_unseen() {
            let _ = self.update(&record.pane_id, |now| {
                if now.launch_id == record.launch_id {
                    now.seen_at = Some(Timestamp::now());
                }
            });
        }
    }

    /// Forgets ended launches with their logs; those of one session alone if it is named.
    pub fn prune(&self, which: Which, session: Option<&Record>) -> Result<Pruned, StateError> {
        let mut ended = self.reconcile_all()?.records;
        ended.retain(|record| !record.lifecycle_state.is_active());
        ended.sort_by_key(|record| std::cmp::Reverse(record.ended_at()));
        let now = Timestamp::now();
        let is_old = |(at, record): &(usize, Record)| *at >= LAST && now.distance(record.ended_at()) > YOUNG;
        let ended = ended.into_iter().enumerate();
        let meant = ended
            .filter(|one| which != Which::Old || is_old(one))
            .map(|(_, record)| record);
        let mut done = Pruned::default();
        for record in meant.filter(|record| session.is_none_or(|one| one.launch_id == record.launch_id)) {
            let reason = if record.is_unseen() && which != Which::All {
                Some("nobody has looked at how it ended: `pinfold info` shows it".to_owned())
            } else {
                self.forget(&record)?
            };
            let (pane_id, session_name) = (record.pane_id, record.session_name);
            match reason {
                None => done.pruned.push(Gone { pane_id, session_name }),
                Some(reason) => done.kept.push(Kept {
                    pane_id,
                    session_name,
                    reason,
                }),
            }
        }
        Ok(done)
    }

    /// Decided once more under the pane's lock, since a start may have taken the pane meanwhile; why not, if not.
    fn forget(&self, record: &Record) -> Result<Option<String>, StateError> {
        let Some(locked) = self.slot(&record.pane_id).lock_existing()? else {
            return Ok(None);
        };
        let free = match locked.launch_lock(&record.pane_id) {
            Err(StateError::Claimed { .. }) => return Ok(Some("its agent still runs".to_owned())),
            other => other?,
        };
        let now = locked.read()?.record;
        if now.is_some_and(|now| now.revision != record.revision) {
            return Ok(Some("it was changed meanwhile".to_owned()));
        }
        self.logs().remove(&record.session_name);
        locked.remove(free)?;
        Ok(None)
    }
}
