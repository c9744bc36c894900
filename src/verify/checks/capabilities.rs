//! All five capability sets of every thread are empty, the bounding set included.
//!
//! Without namespaces an ordinary user may not empty the bounding set. It gives nothing by itself: it bounds what a
//! program's own capabilities could add, which no_new_privs keeps away.

use super::{Moment, each_thread};
use crate::verify::Finding;
use crate::verify::facts::Facts;
use crate::verify::proc::status::{CAPABILITY_SETS, Status};
use crate::verify::subject::{Subject, Walls};

pub fn check(facts: &Facts, subject: &Subject, _: Moment) -> Vec<Finding> {
    each_thread("capabilities", facts, |_, thread| {
        let sets = CAPABILITY_SETS
            .iter()
            .zip(thread.status.capabilities)
            .filter(|(name, set)| *set != 0 && !(**name == "CapBnd" && is_idle(subject, &thread.status)));
        let left: Vec<_> = sets.map(|(name, set)| format!("{name} {set:x}")).collect();
        (!left.is_empty()).then(|| format!("capabilities are left: {}", left.join(", ")))
    })
}

/// Whether the bounding set means nothing for this thread.
fn is_idle(subject: &Subject, status: &Status) -> bool {
    let without_namespaces = matches!(subject.walls, Walls::Descent { .. });
    without_namespaces && status.no_new_privs == 1 && !status.uids.contains(&0)
}
