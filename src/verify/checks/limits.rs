//! The command's resource limits are no higher than the policy's.

use super::{Moment, finding};
use crate::verify::Finding;
use crate::verify::facts::Facts;
use crate::verify::subject::Subject;
use procfs::process::{Limit, LimitValue};

pub fn check(facts: &Facts, subject: &Subject, _: Moment) -> Vec<Finding> {
    let Some(command) = &facts.command else {
        return Vec::new();
    };
    let seen = &command.limits;
    let pairs = [
        ("processes", subject.limits.processes, &seen.max_processes),
        ("open files", subject.limits.open_files, &seen.max_open_files),
        ("address space", subject.limits.address_space, &seen.max_address_space),
    ];
    let loose = pairs
        .into_iter()
        .filter(|(_, wanted, seen)| wanted.is_some_and(|most| !within(seen, most)));
    loose
        .map(|(name, ..)| {
            finding(
                "limits",
                Some(command.pid),
                format!("the limit on {name} is looser than the policy's"),
            )
        })
        .collect()
}

/// Both sides: the soft limit is what counts now, the hard one what the process may raise it to.
fn within(seen: &Limit, most: u64) -> bool {
    let below = |value: &LimitValue| matches!(value, LimitValue::Value(value) if *value <= most);
    below(&seen.soft_limit) && below(&seen.hard_limit)
}
