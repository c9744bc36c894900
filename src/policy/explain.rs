//! A resolved policy in words, with the origin of each line.

use super::frozen::{Access, Appearing, Content, FileKind, Limits, Network, Origin, Policy, Promise, Rule, Topic};
use crate::base::{AbsPath, Port};
use serde::Serialize;
use std::fmt;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    File,
    Link,
    Private,
    Protected,
    Masked,
    Network,
    Environment,
    Limit,
    Note,
    Warning,
}

/// One line of an explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    pub section: Section,
    /// The path, name, variable or limit; control characters escaped.
    pub subject: String,
    /// How it may be used or what is done with it.
    pub effect: String,
    pub origin: Option<Origin>,
}

/// A policy in words. Values of variables are not in it: they may be secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub profile: String,
    pub root: Option<AbsPath>,
    pub workdir: AbsPath,
    /// Promises given up by name.
    pub weakened: Vec<Promise>,
    pub lines: Vec<Line>,
}

/// What keeps a limit is the machine's affair: `doctor` tries it, and `info` says what a launch got.
fn limits(limits: &Limits) -> Vec<Line> {
    let cpu = limits.cpu.map(|milli| format!("{}.{:03}", milli / 1000, milli % 1000));
    let text = |number: Option<u64>| number.map(|number| number.to_string());
    let rows = [
        ("memory in bytes", text(limits.memory)),
        ("processes", text(limits.processes)),
        ("processors", cpu),
        ("open files", text(limits.open_files)),
        ("address space in bytes", text(limits.address_space)),
    ];
    let lines = rows.into_iter().filter_map(|(subject, most)| Some((subject, most?)));
    lines
        .map(|(subject, most)| line(Section::Limit, &subject, &most, None))
        .collect()
}

/// Puts a policy in words; `Display` of the result is the text form.
pub fn explain(policy: &Policy) -> Explanation {
    let mut lines = files(policy);
    lines.extend(network(policy));
    lines.extend(limits(&policy.limits));
    for note in &policy.notes {
        let (section, effect) = match note.topic {
            Topic::Variable => (Section::Environment, "set".to_owned()),
            Topic::LeftOut => (Section::Note, format!("left out: {}", note.text)),
            Topic::Differs => (Section::Note, note.text.clone()),
            Topic::Warning => (Section::Warning, note.text.clone()),
            // Shown where the thing itself is.
            Topic::Port | Topic::Mask => continue,
        };
        lines.push(line(section, &note.subject, &effect, Some(note.origin.clone())));
    }
    lines.sort_by_key(|line| line.section);
    Explanation {
        profile: policy.profile.clone(),
        root: policy.root.clone(),
        workdir: policy.workdir.clone(),
        weakened: policy.weakened.clone(),
        lines,
    }
}

fn files(policy: &Policy) -> Vec<Line> {
    let mut lines = Vec::new();
    for bind in &policy.binds {
        let access = match (bind.kind, bind.access) {
            (FileKind::Socket, _) => "connect",
            (_, Access::List) => "list",
            (_, Access::Read) => "read",
            (_, Access::Layered) => "read; what is written stands in private memory",
            (_, Access::ReadWrite) => "read and write",
        };
        let effect = match bind.source == bind.target {
            true => access.to_owned(),
            false => format!("{access}, from {}", shown(&bind.source)),
        };
        lines.push(line(Section::File, &bind.target, &effect, Some(bind.origin.clone())));
    }
    for link in &policy.links {
        let effect = format!("link to {}", link.to.display());
        lines.push(line(Section::Link, &link.at, &effect, None));
    }
    for made in &policy.made {
        let effect = match &made.content {
            Content::Scratch { size, shared } => {
                let whose = if *shared { " for all users" } else { "" };
                format!("private folder{whose} of at most {} MiB", size >> 20)
            }
            Content::Sealed => "private read-only folder".to_owned(),
            Content::File(bytes) => format!("private read-only file of {} bytes", bytes.len()),
        };
        lines.push(line(Section::Private, &made.at, &effect, Some(made.origin.clone())));
    }
    lines.extend(forbidden(policy));
    lines
}

fn forbidden(policy: &Policy) -> Vec<Line> {
    let mut lines = Vec::new();
    for protected in &policy.protected {
        let effect = match protected.kind {
            Some(FileKind::Link) => "a link; put back if it changes",
            Some(_) => "read only",
            None if protected.appearing == Appearing::Refused => "absent; moved aside if it appears",
            None => "absent; reported after exit if it appears",
        };
        let effect = format!("{effect}: {}", protected.reason);
        lines.push(line(Section::Protected, &protected.path, &effect, None));
    }
    for mask in &policy.masked {
        let origin = noted(policy, Topic::Mask, &shown(mask));
        lines.push(line(Section::Masked, mask, "not readable", origin));
    }
    lines
}

fn network(policy: &Policy) -> Vec<Line> {
    let network = &policy.network;
    let effect = match network.mode {
        Network::Blocked => "nothing leaves",
        Network::Brokered => "TCP to the names below, through the broker; everything else is refused",
    };
    let mut lines = vec![line(Section::Network, &"network", effect, None)];
    let ports = |rule: &Rule| rule.ports.iter().map(Port::to_string).collect::<Vec<_>>().join(", ");
    for rule in &network.allow {
        let effect = format!("allowed on {}", ports(rule));
        lines.push(line(Section::Network, &rule.text, &effect, Some(rule.origin.clone())));
    }
    for rule in &network.deny {
        lines.push(line(
            Section::Network,
            &rule.text,
            "denied on every port",
            Some(rule.origin.clone()),
        ));
    }
    for (name, service) in &network.services {
        let effect = format!("service at {}", service.address);
        lines.push(line(Section::Network, name, &effect, Some(service.origin.clone())));
    }
    let groups = [
        (
            "open",
            &network.open_ports,
            "the host's port shows on the sandbox's loopback",
        ),
        (
            "listen",
            &network.listen_ports,
            "the host may reach this port of the sandbox",
        ),
        (
            "closed",
            &network.closed_ports,
            "nothing inside may connect to it; only the supervisor's join",
        ),
    ];
    for (word, ports, effect) in groups {
        for port in ports {
            let subject = format!("{word} {port}");
            let origin = noted(policy, Topic::Port, &subject);
            lines.push(line(Section::Network, &subject, effect, origin));
        }
    }
    lines
}

/// The origin that a note keeps for something that has none of its own.
pub(super) fn noted(policy: &Policy, topic: Topic, subject: &str) -> Option<Origin> {
    policy
        .notes
        .iter()
        .find(|note| note.topic == topic && note.subject == subject)
        .map(|note| note.origin.clone())
}

/// Text of unknown origin with what does not show, or changes how the rest shows, escaped.
pub(super) fn escaped(text: &dyn fmt::Display) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    let mut shown = String::new();
    for c in text.to_string().chars() {
        match hidden(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

pub(super) fn shown(path: &AbsPath) -> String {
    escaped(path)
}

fn line(section: Section, subject: &dyn fmt::Display, effect: &str, origin: Option<Origin>) -> Line {
    Line {
        section,
        subject: escaped(subject),
        effect: escaped(&effect),
        origin,
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", escaped(&self.source), escaped(&self.key))?;
        match &self.why {
            Some(why) => write!(f, ": {}", escaped(why)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.subject, self.effect)?;
        match &self.origin {
            Some(origin) => write!(f, "  [{origin}]"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "profile {}", escaped(&self.profile))?;
        match &self.root {
            Some(root) => writeln!(f, "workspace {}", shown(root))?,
            None => writeln!(f, "no workspace")?,
        }
        writeln!(f, "starts in {}", shown(&self.workdir))?;
        for promise in &self.weakened {
            writeln!(f, "may go without {}", promise.full_name())?;
        }
        let mut section = None;
        for line in &self.lines {
            if section != Some(line.section) {
                writeln!(f, "\n{}", format!("{:?}", line.section).to_lowercase())?;
                section = Some(line.section);
            }
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}
