//! Reads the kernel's truth about a sandbox and says whether it holds. Imports nothing of `sandbox`: the checker never
//! believes the enforcer.
#![forbid(unsafe_code)]

mod report;

pub use report::{Finding, Passed, Process, Report, Role};
