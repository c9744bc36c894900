//! No process holds anything from outside: no file of another mount namespace, no terminal but the sandbox's own, no
//! socket of the host's network, no foreign namespace or process; and its session is its own.

use super::{Moment, each_thread, finding};
use crate::verify::facts::{Facts, Member};
use crate::verify::proc::descriptors::{Descriptor, Kind};
use crate::verify::subject::{Identity, Subject, Walls};
use crate::verify::{Finding, Role};
use std::collections::BTreeSet;

const NAME: &str = "descriptors";
const LAST_STANDARD: i32 = 2;
/// Majors of Unix 98 terminals: the slaves' side of every devpts (Documentation/admin-guide/devices.txt).
const TERMINAL_MAJORS: std::ops::RangeInclusive<u64> = 136..=143;

pub fn check(facts: &Facts, subject: &Subject, moment: Moment) -> Vec<Finding> {
    let known = Known::new(facts, subject);
    let mut findings = BTreeSet::new();
    for (member, descriptor) in facts.descriptors() {
        let held_open = moment == Moment::Held && member.role == Role::Command && descriptor.number > LAST_STANDARD;
        let problem = if known.may_have(member, descriptor, moment) {
            None
        } else if held_open {
            Some("is open before exec")
        } else {
            known.outside(descriptor)
        };
        findings.extend(problem.map(|problem| (member.pid, descriptor.number, problem)));
    }
    let findings = findings.into_iter();
    let mut findings: Vec<_> = findings
        .map(|(pid, number, problem)| finding(NAME, Some(pid), format!("descriptor {number} {problem}")))
        .collect();
    findings.extend(each_thread(NAME, facts, |member, thread| {
        let foreign = member.role != Role::Init && thread.status.inner_session == 0;
        foreign.then(|| "its session, and so its terminal, is from outside".into())
    }));
    findings
}

struct Known<'a> {
    facts: &'a Facts,
    subject: &'a Subject,
    mounts: BTreeSet<u64>,
    namespaces: BTreeSet<u64>,
}

impl<'a> Known<'a> {
    fn new(facts: &'a Facts, subject: &'a Subject) -> Self {
        let mounts = facts
            .shared
            .iter()
            .flat_map(|shared| shared.mounts.iter().map(|m| m.id))
            .collect();
        let namespaces = subject.namespaces.each().into_iter().map(|(_, inode)| inode).collect();
        Known {
            facts,
            subject,
            mounts,
            namespaces,
        }
    }

    /// What the launch itself put there. Once programs run, what was given as standard descriptors may have any number:
    /// a shell that redirects keeps a copy of them at 10.
    fn may_have(&self, member: &Member, descriptor: &Descriptor, moment: Moment) -> bool {
        let identity = Identity {
            dev: descriptor.object.dev,
            ino: descriptor.object.ino,
        };
        let placed = moment == Moment::Running || descriptor.number <= LAST_STANDARD;
        let gate = member.role != Role::Tool && self.subject.gate.contains(&identity);
        gate || (placed && self.subject.standard.contains(&identity))
    }

    fn outside(&self, descriptor: &Descriptor) -> Option<&'static str> {
        let object = &descriptor.object;
        match &descriptor.kind {
            Kind::Device if TERMINAL_MAJORS.contains(&nix::sys::stat::major(object.rdev)) => {
                let is_own = match self.subject.walls {
                    Walls::Namespaces => self.subject.terminal == Some(object.dev),
                    Walls::Descent { terminal } => terminal == Some(object.rdev),
                };
                (!is_own).then_some("is a terminal from outside")
            }
            Kind::File if self.facts.devs.is_memory(object.dev) => None,
            Kind::File | Kind::Device => {
                (!self.mounts.contains(&object.mount)).then_some("is a file or device from outside")
            }
            // A table of the host proves that it is from outside; a table of the sandbox would prove nothing, since
            // the path of a Unix socket can forge a line in it.
            Kind::Socket if self.subject.walls == Walls::Namespaces => {
                let from_host = self
                    .facts
                    .host
                    .as_ref()
                    .is_none_or(|host| host.inodes.contains(&object.ino));
                from_host.then_some("is a socket from outside")
            }
            Kind::Namespace(inode) => (!self.namespaces.contains(inode)).then_some("is a namespace from outside"),
            Kind::Process(Some(inode)) => {
                (*inode != self.subject.namespaces.pid).then_some("is a process from outside")
            }
            // In one network with the machine's own, its place tells nothing; none was open before exec.
            Kind::Socket => None,
            Kind::Process(None) | Kind::Pipe | Kind::Anonymous => None,
        }
    }
}
