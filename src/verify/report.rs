//! What a verification says.

use crate::base::{AbsPath, Pid};
use serde::Serialize;

/// What a process of a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The namespace's first process: Pinfold's own, it reaps and relays the exit.
    Init,
    /// The command itself (`server` or `client` in the record of the launch).
    Command,
    /// Anything that the command started.
    Tool,
}

/// One process as /proc shows it.
#[derive(Debug, Clone, Serialize)]
pub struct Process {
    pub pid: Pid,
    pub parent: i32,
    pub role: Role,
    /// Lossy, cut to 200 characters; display only, never evidence.
    pub command: String,
    pub confined: bool,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's name, equal to the layer's.
    pub check: &'static str,
    pub pid: Option<Pid>,
    pub problem: String,
}

/// The outcome of one verification.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Seconds since the epoch.
    pub checked_at: u64,
    /// Milliseconds that it took.
    pub took_ms: u64,
    /// The sandbox's first process, and so every other, was gone at the end of the look. Not confined, but not loose
    /// either: findings may come from its ending.
    pub ended: bool,
    pub processes: Vec<Process>,
    /// Empty means that everything held.
    pub findings: Vec<Finding>,
    /// Folders that should lie below a private layer and are empty and private instead, because the kernel lays none
    /// over them.
    pub unlayered: Vec<AbsPath>,
    /// The names of the checks that ran.
    pub checks: Vec<&'static str>,
}

impl Report {
    /// Whether every check held.
    pub fn ok(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Proof that a held sandbox was verified; only this module can make one.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Passed {
    report: Report,
}

impl Passed {
    /// The proof, or the report that says why not.
    pub(super) fn new(report: Report) -> Result<Passed, Report> {
        if report.ok() {
            Ok(Passed { report })
        } else {
            Err(report)
        }
    }
    /// What was found.
    pub fn report(&self) -> &Report {
        &self.report
    }
}
