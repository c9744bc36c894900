//! The command's resource limits are no higher than the policy's, and its control group is the one that was made.

use super::{Moment, finding};
use crate::verify::Finding;
use crate::verify::facts::{Facts, OfCommand};
use crate::verify::subject::{GroupSubject, Subject};
use procfs::process::{Limit, LimitValue};
use std::os::unix::ffi::OsStrExt;

pub fn check(facts: &Facts, subject: &Subject, _: Moment) -> Vec<Finding> {
    let Some(command) = &facts.command else {
        return Vec::new();
    };
    let seen = &command.limits;
    let pairs = [
        ("processes", subject.limits.processes, &seen.max_processes),
        ("open files", subject.limits.open_files, &seen.max_open_files),
        ("address space", subject.limits.address_space, &seen.max_address_space),
        ("private memory", subject.memory_each, &seen.max_data_size),
    ];
    let loose = pairs
        .into_iter()
        .filter(|(_, wanted, seen)| wanted.is_some_and(|most| !within(seen, most)));
    let loose = loose.map(|(name, ..)| format!("the limit on {name} is looser than the policy's"));
    let group = subject.group.iter().flat_map(|group| in_group(command, group));
    loose
        .chain(group)
        .map(|problem| finding("limits", Some(command.pid), problem))
        .collect()
}

/// The command is in its group, and the group's files still say what was written.
fn in_group(command: &OfCommand, expected: &GroupSubject) -> Vec<String> {
    let name = expected.folder.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    let own = command
        .group
        .split(|byte| *byte == b'\n')
        .find(|line| line.starts_with(b"0::"));
    let is_in = own.is_some_and(|line| line.rsplit(|byte| *byte == b'/').next() == Some(name));
    let mut problems = Vec::new();
    if name.is_empty() || !is_in {
        problems.push("it is not in its control group".to_owned());
    }
    for (file, wanted) in &expected.files {
        let seen = command.group_files.iter().find(|(name, _)| name == file);
        let seen = seen.and_then(|(_, text)| text.as_deref());
        if seen.map(str::trim) != Some(wanted) {
            problems.push(format!("{file} of its control group is not what the policy says"));
        }
    }
    problems
}

/// Both sides: the soft limit is what counts now, the hard one what the process may raise it to.
fn within(seen: &Limit, most: u64) -> bool {
    let below = |value: &LimitValue| matches!(value, LimitValue::Value(value) if *value <= most);
    below(&seen.soft_limit) && below(&seen.hard_limit)
}
