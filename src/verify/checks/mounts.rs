//! The sandbox sees exactly the mounts that the policy lists: each of its kind, read-only where it must be, and never
//! with set-user-id or devices. Its /proc shows its own processes, and nobody stands on a mount outside.

use super::{Moment, each_thread, finding, shared};
use crate::verify::Finding;
use crate::verify::facts::Facts;
use crate::verify::proc::mountinfo::Mount;
use crate::verify::subject::{MountKind, MountRule, Subject, Writing};
use std::collections::BTreeSet;
use std::path::Path;

const NAME: &str = "mounts";

pub fn check(facts: &Facts, subject: &Subject, _: Moment) -> Vec<Finding> {
    let shared = match shared(NAME, facts) {
        Ok(shared) => shared,
        Err(findings) => return findings,
    };
    let mut problems = root(subject);
    problems.extend(
        shared
            .mounts
            .iter()
            .flat_map(|mount| judge(mount, &shared.mounts, subject)),
    );
    problems.extend(absent(&shared.mounts, subject));
    if subject.mounts.iter().any(|rule| rule.kind == MountKind::Proc) && shared.proc_shows != Ok(subject.namespaces.pid)
    {
        problems.push("/proc is not the sandbox's own".into());
    }
    let mut findings: Vec<_> = problems
        .into_iter()
        .map(|problem| finding(NAME, None, problem))
        .collect();
    let ids: BTreeSet<u64> = shared.mounts.iter().map(|m| m.id).collect();
    findings.extend(each_thread(NAME, facts, |_, thread| {
        let outside = thread.standing_on.iter().any(|mount| !ids.contains(mount));
        outside.then(|| "its root or working folder is outside the sandbox".into())
    }));
    findings
}

/// The expectation itself must be of the promised shape.
fn root(subject: &Subject) -> Vec<String> {
    let top = subject
        .mounts
        .iter()
        .rfind(|rule| rule.target.as_path() == Path::new("/"));
    match top {
        Some(MountRule {
            kind: MountKind::Memory,
            writing: Writing::ReadOnly,
            ..
        }) => Vec::new(),
        _ => vec!["the root is not expected to be private and read-only".into()],
    }
}

fn judge(mount: &Mount, all: &[Mount], subject: &Subject) -> Vec<String> {
    let at = mount.target.as_os_str().to_string_lossy().escape_debug().to_string();
    let rules: Vec<_> = subject
        .mounts
        .iter()
        .filter(|rule| rule.target.as_path() == mount.target)
        .collect();
    let here: Vec<_> = all.iter().filter(|other| other.target == mount.target).collect();
    let is_top = here.last().is_some_and(|top| top.id == mount.id);
    // Where several are stacked, the last rule is for the one on top; those below are hidden, and any rule will do.
    let fitting = if is_top {
        rules.last().map_or(&[][..], std::slice::from_ref)
    } else {
        &rules[..]
    };
    if fitting.is_empty() || here.len() > rules.len() {
        return vec![format!("{at} is mounted although nothing grants it")];
    }
    let verdicts: Vec<_> = fitting.iter().map(|rule| against(mount, rule)).collect();
    match verdicts.into_iter().min_by_key(Vec::len) {
        Some(problems) => problems.into_iter().map(|problem| format!("{at} {problem}")).collect(),
        None => Vec::new(),
    }
}

fn against(mount: &Mount, rule: &MountRule) -> Vec<&'static str> {
    let mut problems = Vec::new();
    if file_system(rule.kind).is_some_and(|kind| kind.as_bytes() != mount.kind) {
        problems.push("is not the kind of file system that it should be");
    }
    if rule.writing == Writing::ReadOnly && !mount.is_read_only() {
        problems.push("can be written to");
    }
    if !mount.has("nosuid") {
        problems.push("is mounted without nosuid");
    }
    if !matches!(rule.kind, MountKind::Device | MountKind::Terminals) && !mount.has("nodev") {
        problems.push("is mounted without nodev");
    }
    problems
}

/// The type in mountinfo, where the kind decides it.
fn file_system(kind: MountKind) -> Option<&'static str> {
    match kind {
        MountKind::Bind | MountKind::Device => None,
        MountKind::Memory => Some("tmpfs"),
        MountKind::Proc => Some("proc"),
        MountKind::Terminals => Some("devpts"),
        MountKind::Queues => Some("mqueue"),
    }
}

/// A mask or a protected path that was never mounted leaves what is below it open.
fn absent(mounts: &[Mount], subject: &Subject) -> Vec<String> {
    let there: BTreeSet<&Path> = mounts.iter().map(|m| m.target.as_path()).collect();
    let gone = subject
        .mounts
        .iter()
        .filter(|rule| !there.contains(rule.target.as_path()));
    gone.map(|rule| format!("{} is not mounted", rule.target.to_string().escape_debug()))
        .collect()
}
