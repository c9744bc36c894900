//! All five capability sets of every thread are empty, the bounding set included.

use super::{Moment, each_thread};
use crate::verify::Finding;
use crate::verify::facts::Facts;
use crate::verify::proc::status::CAPABILITY_SETS;
use crate::verify::subject::Subject;

pub fn check(facts: &Facts, _: &Subject, _: Moment) -> Vec<Finding> {
    each_thread("capabilities", facts, |_, thread| {
        let sets = CAPABILITY_SETS
            .iter()
            .zip(thread.status.capabilities)
            .filter(|(_, set)| *set != 0);
        let left: Vec<_> = sets.map(|(name, set)| format!("{name} {set:x}")).collect();
        (!left.is_empty()).then(|| format!("capabilities are left: {}", left.join(", ")))
    })
}
