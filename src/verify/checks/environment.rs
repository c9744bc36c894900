//! Nothing of the launcher's environment stands in the command's. A process owns its environment's memory, so what it
//! adds, clears or overwrites is no finding: only what can have come from the launcher is.

use super::{Moment, finding};
use crate::verify::Finding;
use crate::verify::facts::Facts;
use crate::verify::subject::{EnvSubject, Subject};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

pub fn check(facts: &Facts, subject: &Subject, moment: Moment) -> Vec<Finding> {
    // Before exec the command still has its parent's memory, which exec takes away.
    let Some(command) = facts.command.as_ref().filter(|_| moment == Moment::Running) else {
        return Vec::new();
    };
    let leaks = leaks(&command.environment, &subject.environment);
    leaks
        .into_iter()
        .map(|problem| finding("environment", Some(command.pid), problem))
        .collect()
}

fn leaks(environment: &[u8], expected: &EnvSubject) -> Vec<String> {
    let mut problems = Vec::new();
    for variable in environment.split(|b| *b == 0) {
        let Some(equals) = variable.iter().position(|b| *b == b'=') else {
            continue;
        };
        let (name, value) = (
            OsStr::from_bytes(&variable[..equals]),
            OsStr::from_bytes(&variable[equals + 1..]),
        );
        let of_launcher = expected.launcher.iter().any(|(n, v)| n == name && v == value);
        if of_launcher && !expected.allowed.contains(name) {
            problems.push(format!(
                "the launcher's variable {} is inside",
                name.to_string_lossy().escape_debug()
            ));
        }
    }
    let holds = |token: &&OsStr| environment.windows(token.len()).any(|w| w == token.as_bytes());
    let tokens = expected
        .tokens
        .iter()
        .map(AsRef::as_ref)
        .filter(|token: &&OsStr| !token.is_empty());
    problems.extend(tokens.filter(holds).map(|_| "a token of the launcher is inside".into()));
    problems
}
