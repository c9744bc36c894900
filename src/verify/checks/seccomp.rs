//! Every thread is under the filters that the launch installed: an exact number where only Pinfold's code has run, at
//! least that number later, since a process may add its own.

use super::{Moment, each_thread};
use crate::verify::facts::Facts;
use crate::verify::subject::Subject;
use crate::verify::{Finding, Role};

const FILTER_MODE: u32 = 2;

pub fn check(facts: &Facts, subject: &Subject, moment: Moment) -> Vec<Finding> {
    each_thread("seccomp", facts, |member, thread| {
        let (mode, count) = (thread.status.seccomp_mode, thread.status.seccomp_filters);
        if mode != FILTER_MODE {
            return Some(format!("seccomp mode is {mode}, not {FILTER_MODE}"));
        }
        let (expected, exact) = match (member.role, moment) {
            (Role::Init, _) => (subject.filters.init, true),
            (_, Moment::Held) => (subject.filters.command, true),
            (_, Moment::Running) => (subject.filters.command, false),
        };
        let wrong = if exact { count != expected } else { count < expected };
        wrong.then(|| format!("{count} seccomp filters, not {expected}"))
    })
}
