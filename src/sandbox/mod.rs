//! Enforcement: from a frozen policy to a command that is held, verified, released and waited for.
#![forbid(unsafe_code)]

pub mod attend;
pub mod bounds;
pub mod door;
pub mod egress;
mod failure;
mod gate;
pub mod given;
pub mod group;
mod held;
mod inside;
mod jailed;
pub mod layers;
pub mod mediate;
pub mod plan;
mod spawn;
pub mod terminal;

pub use failure::{SpawnError, describe};
pub use inside::Stream;
pub use jailed::{Exit, Facts, Jailed, Leash, ReleaseError, Running, Told};
pub use spawn::{Doors, Order, planned, spawn};
