//! P2 around one sandbox while it lives: what no mount can hold is guarded, what the host takes away is put back, and
//! what changed is told.

use super::changes::{Before, Changes, Haste};
use super::heal::{Healer, mend};
use super::run::RunError;
use crate::base::Fault;
use crate::policy::{Mode, Policy};
use crate::sandbox::Jailed;
use crate::sandbox::guard::{Guard, Trouble};
use std::sync::Arc;

/// Ready for one held sandbox.
pub struct Protection {
    before: Before,
    /// Without mounts there are no covers that could be lost.
    healer: Option<Arc<Healer>>,
}

impl Protection {
    /// The policy is the one that was asked for, whatever the mode: it says what is protected and what can be written.
    /// The caller has one thread, and nothing untrusted has run.
    pub fn of(policy: &Policy, mode: Mode, jailed: &Jailed) -> Result<Protection, Fault> {
        let healer = match mode {
            Mode::Full => Some(Arc::new(Healer::of(jailed).map_err(RunError::NoHealer)?)),
            Mode::Reduced => None,
        };
        Ok(Protection {
            before: Before::of(policy)?,
            healer,
        })
    }

    /// Begins to guard, before the command is released.
    pub fn guard(&self, policy: &Policy) -> Result<Guard, Trouble> {
        Guard::start(policy, mend(self.healer.as_ref()))
    }

    /// For the verification that goes on while the command runs.
    pub fn healer(&self) -> Option<Arc<Healer>> {
        self.healer.clone()
    }

    /// Once nothing of the sandbox runs any more.
    pub fn after(self, guard: Guard, haste: Haste) -> (Changes, Option<Trouble>) {
        let (kept, trouble) = guard.finish();
        self.healer.iter().for_each(|healer| healer.rest());
        let healed = self.healer.map(|healer| healer.healed()).unwrap_or_default();
        (self.before.after(kept, healed, haste), trouble)
    }
}
