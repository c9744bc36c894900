//! Every thread is in the launch's namespaces and in none of ours; exactly one user and one group id are mapped. Without
//! namespaces of its own, a launch is in none but ours.

use super::{Moment, each_thread, finding, shared};
use crate::verify::facts::Facts;
use crate::verify::proc::status::decimal;
use crate::verify::subject::{IdMap, Subject, Walls};
use crate::verify::{Finding, Role};

const NAME: &str = "namespaces";

pub fn check(facts: &Facts, subject: &Subject, moment: Moment) -> Vec<Finding> {
    let mut findings = match subject.walls {
        Walls::Namespaces => shared_with_host(facts, subject),
        Walls::Descent { .. } => Vec::new(),
    };
    findings.extend(each_thread(NAME, facts, |_, thread| {
        let pairs = thread.namespaces.each().into_iter().zip(subject.namespaces.each());
        let foreign: Vec<_> = pairs
            .filter(|(seen, expected)| seen != expected)
            .map(|((kind, _), _)| kind)
            .collect();
        (!foreign.is_empty()).then(|| format!("it is not in the sandbox's namespaces: {}", foreign.join(", ")))
    }));
    if subject.walls == Walls::Namespaces {
        findings.extend(maps(facts, subject));
    }
    if moment == Moment::Held {
        findings.extend(company(facts));
    }
    findings
}

fn shared_with_host(facts: &Facts, subject: &Subject) -> Vec<Finding> {
    let pairs = subject.namespaces.each().into_iter().zip(facts.own.each());
    let shared = pairs.filter(|(theirs, ours)| theirs == ours);
    shared
        .map(|((kind, _), _)| finding(NAME, None, format!("the {kind} namespace is the host's")))
        .collect()
}

fn maps(facts: &Facts, subject: &Subject) -> Vec<Finding> {
    let shared = match shared(NAME, facts) {
        Ok(shared) => shared,
        Err(findings) => return findings,
    };
    let sides = [
        ("uid_map", &shared.uid_map, subject.uid),
        ("gid_map", &shared.gid_map, subject.gid),
    ];
    let wrong = sides
        .into_iter()
        .filter(|(_, text, expected)| parse_map(text) != Some(*expected));
    wrong
        .map(|(name, ..)| finding(NAME, None, format!("{name} is not the one id that was mapped")))
        .collect()
}

/// The one line `inside outside 1`, or nothing.
fn parse_map(text: &[u8]) -> Option<IdMap> {
    let words: Vec<u32> = text
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty())
        .map(decimal)
        .collect::<Option<_>>()?;
    match words.as_slice() {
        [inside, outside, 1] => Some(IdMap {
            inside: *inside,
            outside: *outside,
        }),
        _ => None,
    }
}

/// While the command is held, nobody else can be there yet.
fn company(facts: &Facts) -> Vec<Finding> {
    let tools = facts.members.iter().filter(|m| m.role == Role::Tool);
    let mut findings: Vec<_> = tools
        .map(|m| finding(NAME, Some(m.pid), "it runs although the command is still held"))
        .collect();
    if !facts
        .members
        .iter()
        .any(|m| m.role == Role::Command && !m.threads.is_empty())
    {
        findings.push(finding(NAME, None, "the held command is not there"));
    }
    findings
}
