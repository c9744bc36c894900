//! One verification: find, read, judge, report.

use super::checks::{CHECKS, Moment, unlayered};
use super::proc::status::Status;
use super::proc::{Entry, ReadError, Reading};
use super::subject::{Subject, Walls};
use super::{Finding, Passed, Process, Report, Role, facts, tree};
use crate::base::AbsPath;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// How many seccomp filters this process itself carries: whatever it starts inherits them (a container's, for example).
pub fn own_filters() -> Result<u32, ReadError> {
    let status = Entry::own()?.read("status").and_then(|bytes| Status::parse(&bytes))?;
    Ok(status.seccomp_filters)
}

/// Verifies a sandbox whose command waits at the gate. Only this makes the proof that `release` asks for.
pub fn held(subject: &Subject) -> Result<Passed, Report> {
    Passed::new(verify(subject, Moment::Held))
}

/// Verifies a sandbox that runs, as often as one likes. See `Report::ended` for one that is over.
pub fn running(subject: &Subject) -> Report {
    verify(subject, Moment::Running)
}

fn verify(subject: &Subject, moment: Moment) -> Report {
    let begun = Instant::now();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut report = look(subject, moment).unwrap_or_else(|error| {
        let problem = format!("nothing could be verified: {error}");
        Outcome {
            findings: vec![Finding {
                check: "namespaces",
                pid: None,
                problem,
            }],
            ..Outcome::default()
        }
    });
    report
        .findings
        .sort_by(|a, b| (a.check, a.pid, &a.problem).cmp(&(b.check, b.pid, &b.problem)));
    report.findings.dedup();
    for process in &mut report.processes {
        process.confined = !report
            .findings
            .iter()
            .any(|f| f.pid.is_none_or(|pid| pid == process.pid));
    }
    Report {
        checked_at: since_epoch.as_secs(),
        took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        ended: tree::has_ended(subject.init),
        processes: report.processes,
        findings: report.findings,
        unlayered: report.unlayered,
        checks: report.checks,
    }
}

#[derive(Default)]
struct Outcome {
    processes: Vec<Process>,
    findings: Vec<Finding>,
    unlayered: Vec<AbsPath>,
    checks: Vec<&'static str>,
}

fn look(subject: &Subject, moment: Moment) -> Reading<Outcome> {
    let facts = facts::read(subject)?;
    let mut processes: Vec<_> = facts
        .members
        .iter()
        .filter(|m| !m.threads.is_empty())
        .map(describe)
        .collect();
    processes.extend(facts.unread.iter().cloned());
    processes.sort_by_key(|process| process.pid);
    let mut findings = facts.findings.clone();
    if !processes.iter().any(|p| p.role == Role::Init) {
        let problem = match tree::has_ended(subject.init) {
            true => "the sandbox has ended".into(),
            false => "the first process of the sandbox cannot be read".into(),
        };
        findings.push(Finding {
            check: "namespaces",
            pid: Some(subject.init.pid),
            problem,
        });
    }
    findings.extend(CHECKS.iter().flat_map(|(_, check)| check(&facts, subject, moment)));
    Ok(Outcome {
        processes,
        findings,
        unlayered: unlayered(&facts, subject),
        checks: CHECKS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| applies(name, &subject.walls))
            .collect(),
    })
}

/// Whether there is something to check: without namespaces there is no view of the files that could be read back.
fn applies(check: &str, walls: &Walls) -> bool {
    *walls == Walls::Namespaces || check != "mounts"
}

fn describe(member: &facts::Member) -> Process {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(&member.arguments);
    let words = text.trim_end_matches('\0').replace('\0', " ");
    Process {
        pid: member.pid,
        parent: member.parent,
        role: member.role,
        command: words.chars().take(SHOWN).collect(),
        confined: true,
    }
}
