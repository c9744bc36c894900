//! The sandbox sees exactly the mounts that the policy lists: each of its kind, read-only where it must be, and never
//! with set-user-id or devices. Its /proc shows its own processes, and nobody stands on a mount outside.

use super::{Moment, each_thread, finding, shared};
use crate::base::AbsPath;
use crate::verify::Finding;
use crate::verify::facts::Facts;
use crate::verify::proc::mountinfo::Mount;
use crate::verify::subject::{MountKind, MountRule, Subject, Walls, Writing};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::Path;

const NAME: &str = "mounts";

pub fn check(facts: &Facts, subject: &Subject, _: Moment) -> Vec<Finding> {
    if subject.walls != Walls::Namespaces {
        return Vec::new();
    }
    let shared = match shared(NAME, facts) {
        Ok(shared) => shared,
        Err(findings) => return findings,
    };
    let places = Places::new(&shared.mounts, subject);
    let mut problems = root(subject);
    problems.extend(shared.mounts.iter().flat_map(|mount| places.judge(mount)));
    problems.extend(places.absent(subject));
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

/// Where a layer should be and an empty folder in memory is: no finding, but less than was asked for.
pub fn unlayered(facts: &Facts, subject: &Subject) -> Vec<AbsPath> {
    let Some(shared) = &facts.shared else {
        return Vec::new();
    };
    let layers = subject.mounts.iter().filter(|rule| rule.kind == MountKind::Layer);
    let is_empty = |rule: &&MountRule| {
        let mut mounts = shared.mounts.iter();
        mounts.any(|mount| mount.target == rule.target.as_path() && mount.kind == b"tmpfs")
    };
    layers.filter(is_empty).map(|rule| rule.target.clone()).collect()
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

/// What stands at one path and what should, both in the order in which they were stacked.
#[derive(Default)]
struct Place<'a> {
    rules: Vec<&'a MountRule>,
    mounts: Vec<&'a Mount>,
}

/// Every path of either side.
struct Places<'a>(HashMap<&'a OsStr, Place<'a>>);

impl<'a> Places<'a> {
    fn new(mounts: &'a [Mount], subject: &'a Subject) -> Places<'a> {
        let mut places: HashMap<&OsStr, Place<'_>> = HashMap::new();
        for rule in &subject.mounts {
            let place = places.entry(rule.target.as_path().as_os_str()).or_default();
            place.rules.push(rule);
        }
        for mount in mounts {
            places.entry(mount.target.as_os_str()).or_default().mounts.push(mount);
        }
        Places(places)
    }

    fn judge(&self, mount: &Mount) -> Vec<String> {
        let at = || mount.target.as_os_str().to_string_lossy().escape_debug().to_string();
        let (rules, here) = match self.0.get(mount.target.as_os_str()) {
            Some(place) => (place.rules.as_slice(), place.mounts.as_slice()),
            None => (&[][..], &[][..]),
        };
        let is_top = here.last().is_some_and(|top| top.id == mount.id);
        // Where several are stacked, the last rule is for the one on top; those below are hidden, and any rule will do.
        let fitting = if is_top {
            rules.last().map_or(&[][..], std::slice::from_ref)
        } else {
            rules
        };
        if fitting.is_empty() || here.len() > rules.len() {
            return vec![format!("{} is mounted although nothing grants it", at())];
        }
        let verdicts = fitting.iter().map(|rule| against(mount, rule));
        match verdicts.min_by_key(Vec::len) {
            Some(problems) => problems
                .into_iter()
                .map(|problem| format!("{} {problem}", at()))
                .collect(),
            None => Vec::new(),
        }
    }

    /// A mask or a protected path that was never mounted leaves what is below it open.
    fn absent(&self, subject: &Subject) -> Vec<String> {
        let is_there = |rule: &MountRule| {
            let place = self.0.get(rule.target.as_path().as_os_str());
            place.is_some_and(|place| !place.mounts.is_empty())
        };
        let gone = subject.mounts.iter().filter(|rule| !is_there(rule));
        gone.map(|rule| format!("{} is not mounted", rule.target.to_string().escape_debug()))
            .collect()
    }
}

fn against(mount: &Mount, rule: &MountRule) -> Vec<&'static str> {
    let mut problems = Vec::new();
    let kinds = file_systems(rule.kind);
    if !kinds.is_empty() && !kinds.iter().any(|kind| kind.as_bytes() == mount.kind) {
        problems.push("is not the kind of file system that it should be");
    }
    // One with privileges could keep its layers anywhere; a private one notes what it hides without them.
    if rule.kind == MountKind::Layer
        && mount.kind == b"overlay"
        && !mount.super_options.iter().any(|o| o == b"userxattr")
    {
        problems.push("is not a private layer");
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

/// The types in mountinfo that a kind may have; none where it may be any.
fn file_systems(kind: MountKind) -> &'static [&'static str] {
    match kind {
        MountKind::Bind | MountKind::Device => &[],
        MountKind::Memory => &["tmpfs"],
        MountKind::Layer => &["overlay", "tmpfs"],
        MountKind::Proc => &["proc"],
        MountKind::Terminals => &["devpts"],
        MountKind::Queues => &["mqueue"],
    }
}
