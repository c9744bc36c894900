//! The step spawn, in the best mode that this machine gives: full; where namespaces cannot be had, reduced, if nobody
//! minds the promises that it cannot keep. The mode is found by trying the whole sequence.

use super::Setting;
use super::room::Room;
use crate::base::{Explain, Fault, Kind, LaunchId};
use crate::policy::{Policy, Promise, lost, reduce};
use crate::sandbox::{Jailed, Order, SpawnError, spawn};
use crate::sys::support::landlock_abi;

/// A held command, and what it is held by.
pub struct Enclosed {
    pub jailed: Jailed,
    /// The policy that is in force.
    pub policy: Policy,
    /// Goes with the launch.
    pub room: Option<Room>,
}

/// There are no namespaces here, and without them a promise has no enforcer.
#[derive(Debug, thiserror::Error)]
#[error("{full}; without namespaces nothing enforces {}: {why}", promise.full_name())]
pub struct ModeError {
    full: SpawnError,
    promise: Promise,
    why: &'static str,
    /// Every promise that would have to be given up.
    all: Vec<Promise>,
}

impl Explain for ModeError {
    fn kind(&self) -> Kind {
        Kind::Unconfined
    }
    fn hint(&self) -> Option<String> {
        let flags: Vec<String> = self
            .all
            .iter()
            .map(|promise| format!("--allow-missing {}", number(*promise)))
            .collect();
        Some(format!(
            "`pinfold doctor` names the setting to change; or give it up by name: {}",
            flags.join(" ")
        ))
    }
}

/// Makes the sandbox and holds the command at its gate. The caller has one thread.
pub fn enclose<E: Into<Fault>>(
    launch: &LaunchId,
    policy: &Policy,
    order: impl Fn(&Policy) -> Result<Order, E>,
    setting: &Setting,
) -> Result<Enclosed, Fault> {
    let full = match spawn(policy, order(policy).map_err(Into::into)?) {
        Ok(jailed) => {
            return Ok(Enclosed {
                jailed,
                policy: policy.clone(),
                room: None,
            });
        }
        Err(error) if error.lacks_namespaces() => error,
        Err(error) => return Err(error.into()),
    };
    accept(full, policy)?;
    let room = Room::make(&setting.dirs.state, launch)?;
    let reduced = reduce(policy, room.at(), &setting.host).map_err(Reduction)?;
    room.furnish(&reduced.furniture)?;
    let jailed = spawn(&reduced.policy, order(&reduced.policy).map_err(Into::into)?)?;
    Ok(Enclosed {
        jailed,
        policy: reduced.policy,
        room: Some(room),
    })
}

/// Whether everything that is lost was given up by name.
fn accept(full: SpawnError, policy: &Policy) -> Result<(), ModeError> {
    let lost = lost(landlock_abi().unwrap_or(0));
    let missed: Vec<_> = lost
        .iter()
        .filter(|(promise, _)| !policy.weakened.contains(promise))
        .collect();
    let Some(&&(promise, why)) = missed.first() else {
        return Ok(());
    };
    let mut all: Vec<Promise> = missed.iter().map(|(promise, _)| *promise).collect();
    all.dedup();
    Err(ModeError {
        full,
        promise,
        why,
        all,
    })
}

/// The policy cannot do without mounts.
#[derive(Debug, thiserror::Error)]
#[error("this machine gives no namespaces, and {0}")]
pub struct Reduction(crate::policy::ReduceError);

impl Explain for Reduction {
    fn kind(&self) -> Kind {
        Kind::Config
    }
    fn hint(&self) -> Option<String> {
        Some("`pinfold doctor` names the setting that gives namespaces".into())
    }
}

/// `P5`.
fn number(promise: Promise) -> &'static str {
    promise.full_name().split(' ').next().unwrap_or_default()
}
