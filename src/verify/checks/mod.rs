//! One check per layer of the sandbox, with the same name: each a pure function from what was read and what is
//! expected to what is wrong.

mod capabilities;
mod descriptors;
mod environment;
mod landlock;
mod limits;
mod mounts;
mod namespaces;
mod network;
mod privileges;
mod seccomp;
#[cfg(test)]
mod tests;

use super::Finding;
use super::facts::{Facts, Member, Shared, Thread};
use super::subject::Subject;
use crate::base::Pid;

/// When a sandbox is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The command waits at the gate, before exec: only it and the init exist.
    Held,
    /// Anything may run.
    Running,
}

pub use mounts::unlayered;

/// What a check is: pure, and complete in itself.
pub type Check = fn(&Facts, &Subject, Moment) -> Vec<Finding>;

/// Every check, by the name of its layer.
pub const CHECKS: [(&str, Check); 10] = [
    ("namespaces", namespaces::check),
    ("mounts", mounts::check),
    ("limits", limits::check),
    ("privileges", privileges::check),
    ("capabilities", capabilities::check),
    ("descriptors", descriptors::check),
    ("landlock", landlock::check),
    ("seccomp", seccomp::check),
    ("network", network::check),
    ("environment", environment::check),
];

fn finding(check: &'static str, pid: Option<Pid>, problem: impl Into<String>) -> Finding {
    Finding {
        check,
        pid,
        problem: problem.into(),
    }
}

/// Asks the same of every thread that can run; a thread that is not the first is named.
fn each_thread(
    check: &'static str,
    facts: &Facts,
    problem: impl Fn(&Member, &Thread) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &facts.members {
        for thread in &member.threads {
            if let Some(problem) = problem(member, thread) {
                let which = if thread.id == member.pid.get() {
                    String::new()
                } else {
                    format!("thread {}: ", thread.id)
                };
                findings.push(finding(check, Some(member.pid), format!("{which}{problem}")));
            }
        }
    }
    findings
}

/// What is read once; its absence is a finding of whoever needed it.
fn shared<'a>(check: &'static str, facts: &'a Facts) -> Result<&'a Shared, Vec<Finding>> {
    let missing = || vec![finding(check, None, "no process of the sandbox could be read")];
    facts.shared.as_ref().ok_or_else(missing)
}
