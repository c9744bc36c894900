//! The step spawn, in the best mode that this machine gives: full; where namespaces cannot be had, reduced, if nobody
//! minds the promises that it cannot keep. The mode is found by trying the whole sequence.

use super::Setting;
use super::room::{Room, RoomError};
use crate::base::{Explain, Fault, Kind};
use crate::policy::{Mode, Policy, Promise, ReduceError, lost, reduce};
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

/// What is missing in this mode, with the reason.
pub fn missing(policy: &Policy) -> Vec<(Promise, &'static str)> {
    match policy.mode() {
        Mode::Full => Vec::new(),
        Mode::Reduced => {
            let mut missing = lost(landlock_abi().unwrap_or(0));
            if policy.weakened.contains(&Promise::Protected) {
                let why = "the workspace is one grant: what is protected in it can be changed too";
                missing.push((Promise::Protected, why));
            }
            missing
        }
    }
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

/// Why nothing is held.
#[derive(Debug, thiserror::Error)]
pub enum EncloseError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Mode(#[from] ModeError),
    #[error(transparent)]
    Room(#[from] RoomError),
    /// The policy cannot do without mounts.
    #[error("this machine gives no namespaces, and {0}")]
    Reduce(#[from] ReduceError),
    /// The order could not be made.
    #[error("{0}")]
    Order(Fault),
}

impl Explain for EncloseError {
    fn kind(&self) -> Kind {
        match self {
            EncloseError::Spawn(error) => error.kind(),
            EncloseError::Mode(error) => error.kind(),
            EncloseError::Room(error) => error.kind(),
            EncloseError::Reduce(_) => Kind::Config,
            EncloseError::Order(fault) => fault.kind(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            EncloseError::Spawn(error) => error.hint(),
            EncloseError::Mode(error) => error.hint(),
            EncloseError::Room(error) => error.hint(),
            EncloseError::Reduce(_) => Some("`pinfold doctor` names the setting that gives namespaces".into()),
            EncloseError::Order(fault) => fault.hint(),
        }
    }
}

impl EncloseError {
    /// The step of the full sequence that failed, if one did.
    pub fn step(&self) -> Option<&SpawnError> {
        match self {
            EncloseError::Spawn(error) => Some(error),
            EncloseError::Mode(error) => Some(&error.full),
            _ => None,
        }
    }
}

/// Makes the sandbox and holds the command at its gate. `name` is the sandbox's own. The caller has one thread.
pub fn enclose<E: Into<Fault>>(
    name: &str,
    policy: &Policy,
    order: impl Fn(&Policy) -> Result<Order, E>,
    setting: &Setting,
) -> Result<Enclosed, EncloseError> {
    let order = |policy: &Policy| order(policy).map_err(|error| EncloseError::Order(error.into()));
    let full = match spawn(policy, order(policy)?) {
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
    let room = Room::make(&setting.dirs.state, name)?;
    let reduced = reduce(policy, room.at(), &setting.host)?;
    room.furnish(&reduced.furniture)?;
    let jailed = spawn(&reduced.policy, order(&reduced.policy)?)?;
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

/// `P5`.
fn number(promise: Promise) -> &'static str {
    promise.full_name().split(' ').next().unwrap_or_default()
}
