//! Reads the kernel's truth about a sandbox and says whether it holds. Imports nothing of `sandbox`: the checker never
//! believes the enforcer.
#![forbid(unsafe_code)]

mod checks;
mod descent;
mod facts;
pub mod probe;
mod proc;
mod render;
mod report;
mod subject;
#[cfg(test)]
mod tests;
mod tree;
mod verification;

pub use checks::{CHECKS, Moment};
pub use descent::descendants;
pub use proc::ReadError;
pub use proc::mountinfo::mount_points;
pub use proc::namespaces::Namespaces;
pub use report::{Finding, Passed, Process, Report, Role};
pub use subject::{
    Attempted, Birth, EnvSubject, Filters, GroupSubject, IdMap, Identity, Listen, MountKind, MountRule, NetSubject,
    Stage, Subject, Walls, Which, Writing,
};
pub use verification::{held, own_filters, running};
