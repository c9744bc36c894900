//! The held child tried what Landlock forbids and was refused by it. /proc shows no Landlock domain, so this is the
//! only evidence; an attempt whose control failed, or none at all, proves nothing and is a finding.

use super::{Moment, finding};
use crate::verify::Finding;
use crate::verify::facts::Facts;
use crate::verify::subject::{Attempted, Subject};
use nix::errno::Errno;

const NAME: &str = "landlock";

pub fn check(_: &Facts, subject: &Subject, _: Moment) -> Vec<Finding> {
    if subject.landlock.is_empty() {
        return vec![finding(
            NAME,
            None,
            "nothing was tried, so nothing shows that the layer holds",
        )];
    }
    subject
        .landlock
        .iter()
        .filter_map(judge)
        .map(|problem| finding(NAME, None, problem))
        .collect()
}

fn judge(attempt: &Attempted) -> Option<String> {
    let name = attempt.name.escape_debug();
    let describe = |errno| Errno::from_raw(errno).desc();
    match (attempt.control, attempt.errno) {
        (0, errno) if errno == Errno::EACCES as i32 => None,
        (0, 0) => Some(format!("{name} succeeded under the layer")),
        (0, errno) => Some(format!("{name} was not refused by the layer: {}", describe(errno))),
        (control, _) => Some(format!(
            "{name} proves nothing, it failed before the layer too: {}",
            describe(control)
        )),
    }
}
