//! Owning a pane's launch for the life of a bridge.

use super::error::{Problem, StateError};
use super::record::{Lifecycle, Record};
use super::slot::Slot;
use super::store::Store;
use crate::base::{FileLock, LaunchId, PaneId, ProcessRecord};
use serde_json::Value;

/// The right to run the launch of one pane: a lock that ends with this value or with the process, however it dies.
#[derive(Debug)]
pub struct Claim {
    pane: PaneId,
    store: Store,
    _lock: FileLock,
}

/// A launch that this process now owns.
#[derive(Debug)]
pub struct Taken {
    /// Its record, with this process as the bridge, in [`Lifecycle::Starting`].
    pub record: Record,
    /// What `start` left for this process alone.
    pub handover: Option<Value>,
    /// What was set aside on the way.
    pub problem: Option<Problem>,
}

impl Claim {
    pub(super) fn of(store: &Store, pane: &PaneId) -> Result<Claim, StateError> {
        let locked = store.slot(pane).lock()?;
        let lock = locked.launch_lock(pane)?;
        Ok(Claim {
            pane: pane.clone(),
            store: store.clone(),
            _lock: lock,
        })
    }

    /// The pane.
    pub fn pane(&self) -> &PaneId {
        &self.pane
    }

    /// Changes the pane's record; see [`Store::update`].
    pub fn update(&self, change: impl FnOnce(&mut Record)) -> Result<Record, StateError> {
        self.store.update(&self.pane, change)
    }

    /// Takes the waiting launch, once: marks its record as started by this process, and moves it here if its pane was
    /// not known when it was asked for. An error if it does not wait any more.
    pub fn take(&self, launch: &LaunchId, bridge: ProcessRecord) -> Result<Taken, StateError> {
        let start = |mut record: Record| {
            record.bridge = Some(bridge);
            record.lifecycle_state = Lifecycle::Starting;
            let handover = record.handover.take();
            (record, handover)
        };
        let here = self.store.slot(&self.pane).lock()?;
        let before = here.read()?;
        match before.record {
            Some(record) if record.waits_as(launch) => {
                let (mut record, handover) = start(record);
                here.save(&mut record)?;
                Ok(Taken {
                    record,
                    handover,
                    problem: before.problem,
                })
            }
            earlier => {
                // Always this order, a pane and then a launch's stand-in, so that two of these cannot wait for each other.
                let stand_in = PaneId::of_launch(launch);
                let not_waiting = || StateError::NotWaiting(launch.clone());
                let slot = Some(self.store.slot(&stand_in)).filter(|_| stand_in != self.pane);
                let there = slot
                    .map(Slot::lock_existing)
                    .transpose()?
                    .flatten()
                    .ok_or_else(not_waiting)?;
                let read = there.read()?;
                if let Some(problem) = read.problem {
                    return Err(StateError::Unusable(problem));
                }
                let (mut record, handover) = start(read.record.filter(|r| r.waits_as(launch)).ok_or_else(not_waiting)?);
                record.pane_id = self.pane.clone();
                let mut record = match earlier {
                    Some(earlier) => record.following(earlier),
                    None => record,
                };
                here.save(&mut record)?;
                let lock = there.launch_lock(&stand_in)?;
                there.remove(lock)?;
                Ok(Taken {
                    record,
                    handover,
                    problem: before.problem,
                })
            }
        }
    }
}

impl Record {
    /// Whether this is that launch and no bridge has taken it.
    fn waits_as(&self, launch: &LaunchId) -> bool {
        self.launch_id == *launch && self.lifecycle_state == Lifecycle::Provisional && self.bridge.is_none()
    }

    /// Whether this only stands in for a pane that is not known yet.
    pub(super) fn is_stand_in(&self) -> bool {
        self.pane_id == PaneId::of_launch(&self.launch_id)
    }
}
