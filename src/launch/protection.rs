//! P2 around one sandbox while it lives: what no mount can hold is guarded, what the host takes away is put back, and
//! what changed is told.

use super::changes::{Before, Changes};
use super::heal::{Healer, mend};
use super::run::RunError;
use crate::base::Fault;
use crate::policy::Policy;
use crate::sandbox::Jailed;
use crate::sandbox::guard::{Guard, Trouble};
use std::sync::Arc;

/// Ready for one held sandbox.
pub struct Protection {
    before: Before,
    healer: Arc<Healer>,
}

impl Protection {
    /// The caller has one thread, and nothing untrusted has run.
    pub fn of(policy: &Policy, jailed: &Jailed) -> Result<Protection, Fault> {
        Ok(Protection {
            before: Before::of(policy)?,
            healer: Arc::new(Healer::of(jailed).map_err(RunError::NoHealer)?),
        })
    }

    /// Begins to guard, before the command is released.
    pub fn guard(&self, policy: &Policy) -> Result<Guard, Trouble> {
        Guard::start(policy, mend(&self.healer))
    }

    /// For the verification that goes on while the command runs.
    pub fn healer(&self) -> Option<Arc<Healer>> {
        Some(Arc::clone(&self.healer))
    }

    /// Once nothing of the sandbox runs any more.
    pub fn after(self, guard: Guard) -> (Changes, Option<Trouble>) {
        let (kept, trouble) = guard.finish();
        (self.before.after(kept, self.healer.healed()), trouble)
    }
}
