//! Whether one path, name or socket is allowed, and by which line.

use super::explain::{escaped, noted, shown};
use super::frozen::{Access, Appearing, Bind, Content, FileKind, Network, Origin, Policy, Protected, Topic};
use super::net::{Decision, decide};
use crate::base::{AbsPath, Port};
use serde::Serialize;
use std::fmt;
use std::path::{Component, PathBuf};

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// A path as the sandbox sees it.
    Path(AbsPath),
    /// A host name, and a port (443 if none was given).
    Name { name: String, port: Port },
    /// A Unix socket by its path.
    Socket(AbsPath),
    /// An abstract Unix socket.
    Abstract(String),
}

/// What may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Denied,
    /// Something of the sandbox's own stands there; the host's is not visible.
    Private,
    Read,
    ReadWrite,
    Connect,
}

/// The answer, and the line that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    pub verdict: Verdict,
    /// The deciding line; control characters escaped.
    pub line: String,
    pub origin: Option<Origin>,
}

impl Answer {
    /// Whether anything at all may be done with what the host has there.
    pub fn allowed(&self) -> bool {
        !matches!(self.verdict, Verdict::Denied | Verdict::Private)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Denied => "denied",
            Verdict::Private => "not visible",
            Verdict::Read => "may be read",
            Verdict::ReadWrite => "may be read and written",
            Verdict::Connect => "may be connected to",
        };
        write!(f, "{verdict}: {}", self.line)?;
        match &self.origin {
            Some(origin) => write!(f, "  [{origin}]"),
            None => Ok(()),
        }
    }
}

impl Question {
    /// Reads `PATH` (absolute), `HOST[:PORT]`, `unix:PATH` or `unix:@NAME`. The caller makes `~` and relative paths
    /// absolute first.
    pub fn parse(text: &str) -> Result<Question, String> {
        let path = |text: &str| AbsPath::new(text).map_err(|error| error.to_string());
        if let Some(socket) = text.strip_prefix("unix:") {
            return match socket.strip_prefix('@') {
                Some(name) => Ok(Question::Abstract(name.to_owned())),
                None => path(socket).map(Question::Socket),
            };
        }
        if text.starts_with('/') {
            return path(text).map(Question::Path);
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port),
            _ => (text, "443"),
        };
        let port = port.parse().map_err(|error| format!("{port:?}: {error}"))?;
        Ok(Question::Name {
            name: name.to_owned(),
            port,
        })
    }
}

/// Answers from the policy alone; nothing is tried.
pub fn why(policy: &Policy, question: &Question) -> Answer {
    match question {
        Question::Path(path) => path_answer(policy, path),
        Question::Name { name, port } => name_answer(policy, name, *port),
        Question::Socket(path) => socket_answer(policy, path),
        Question::Abstract(name) => denied(format!("@{name}: abstract sockets of the host never cross"), None),
    }
}

fn denied(line: String, origin: Option<Origin>) -> Answer {
    Answer {
        verdict: Verdict::Denied,
        line: escaped(&line),
        origin,
    }
}

fn path_answer(policy: &Policy, asked: &AbsPath) -> Answer {
    let path = &follow(policy, asked);
    if let Some(mask) = policy.masked.iter().find(|mask| path.is_within(mask)) {
        return denied(
            format!("{} is masked", shown(mask)),
            noted(policy, Topic::Mask, &shown(mask)),
        );
    }
    let depth = |at: &AbsPath| at.as_path().components().count();
    let bind = policy
        .binds
        .iter()
        .filter(|bind| path.is_within(&bind.target))
        .max_by_key(|bind| depth(&bind.target));
    let made = policy
        .made
        .iter()
        .filter(|made| path.is_within(&made.at))
        .max_by_key(|made| depth(&made.at));
    if let Some(made) = made.filter(|made| bind.is_none_or(|bind| depth(&made.at) > depth(&bind.target))) {
        let line = match &made.content {
            Content::Scratch { .. } => "private and writable inside",
            Content::Sealed | Content::File(_) => "private and read-only inside",
        };
        let line = format!("{} is {line}", shown(&made.at));
        return Answer {
            verdict: Verdict::Private,
            line,
            origin: Some(made.origin.clone()),
        };
    }
    let Some(bind) = bind else {
        return denied(
            format!("no line grants {}: it does not exist inside", shown(path)),
            None,
        );
    };
    match bind.kind {
        FileKind::Socket => socket_answer(policy, path),
        _ => bind_answer(policy, path, bind),
    }
}

fn bind_answer(policy: &Policy, path: &AbsPath, bind: &Bind) -> Answer {
    let origin = Some(bind.origin.clone());
    let held = policy.protected.iter().find(|one| path.is_within(&one.path));
    if let Some(protected) = held.filter(|one| one.kind.is_some_and(|kind| kind != FileKind::Link)) {
        let line = format!(
            "{} is protected: {}",
            shown(&protected.path),
            escaped(&protected.reason)
        );
        return Answer {
            verdict: Verdict::Read,
            line,
            origin,
        };
    }
    let report = |one: &Protected| {
        let then = match (one.kind, one.appearing) {
            (Some(_), _) => "is a link that is put back if it changes",
            (None, Appearing::Refused) => "is moved aside if it appears",
            (None, Appearing::Reported) => "is reported after exit if it appears",
        };
        format!(" ({} {then}: {})", shown(&one.path), escaped(&one.reason))
    };
    let verdict = match bind.access {
        Access::List | Access::Read | Access::Layered => Verdict::Read,
        Access::ReadWrite => Verdict::ReadWrite,
    };
    let line = format!("{}{}", granted(bind), held.map(report).unwrap_or_default());
    Answer { verdict, line, origin }
}

fn granted(bind: &Bind) -> String {
    let line = match bind.source == bind.target {
        true => format!("{} is granted", shown(&bind.target)),
        false => format!("{} shows {} of the host", shown(&bind.target), shown(&bind.source)),
    };
    match bind.access {
        Access::Layered => format!("{line}; what is written to it stands in private memory"),
        _ => line,
    }
}

fn socket_answer(policy: &Policy, asked: &AbsPath) -> Answer {
    let path = follow(policy, asked);
    if policy.masked.iter().any(|mask| path.is_within(mask)) {
        return path_answer(policy, asked);
    }
    match policy
        .binds
        .iter()
        .find(|bind| bind.kind == FileKind::Socket && bind.target == path)
    {
        Some(bind) => Answer {
            verdict: Verdict::Connect,
            line: granted(bind),
            origin: Some(bind.origin.clone()),
        },
        None => denied(
            format!(
                "no line grants the socket {}; only sockets made inside can be connected to",
                shown(&path)
            ),
            None,
        ),
    }
}

fn name_answer(policy: &Policy, name: &str, port: Port) -> Answer {
    let network = &policy.network;
    let connect = |line: String, origin: Option<&Origin>| Answer {
        verdict: Verdict::Connect,
        line: escaped(&line),
        origin: origin.cloned(),
    };
    match decide(network, name, port) {
        Decision::Allowed { name, rule } => {
            let origin = network.allow.iter().find(|one| one.text == rule).map(|one| &one.origin);
            connect(
                format!("`{rule}` allows {name}:{port}, if its address is public"),
                origin,
            )
        }
        Decision::Service { name, address } => {
            let origin = network.services.get(&name).map(|service| &service.origin);
            connect(format!("{name} is the service at {address}"), origin)
        }
        Decision::Refused(refusal) => {
            let open = network.open_ports.contains(&port) && matches!(name, "localhost" | "127.0.0.1");
            if open && network.mode == Network::Brokered {
                let subject = format!("open {port}");
                return connect(
                    format!("port {port} of the host's loopback is open"),
                    noted(policy, Topic::Port, &subject).as_ref(),
                );
            }
            let rule = network
                .deny
                .iter()
                .find(|rule| matches!(&refusal, super::net::Refusal::Denied(text) if *text == rule.text));
            denied(refusal.to_string(), rule.map(|rule| rule.origin.clone()))
        }
    }
}

/// Follows the policy's own links, as the sandbox's root has them.
fn follow(policy: &Policy, path: &AbsPath) -> AbsPath {
    let mut path = path.clone();
    for _ in 0..40 {
        let Some(link) = policy.links.iter().find(|link| path.is_within(&link.at)) else {
            break;
        };
        let Ok(rest) = path.as_path().strip_prefix(&link.at) else {
            break;
        };
        let base = link.at.parent().unwrap_or_else(AbsPath::root);
        let joined = base.as_path().join(&link.to).join(rest);
        let plain = joined.components().fold(PathBuf::new(), |mut plain, component| {
            match component {
                Component::ParentDir => {
                    plain.pop();
                }
                other => plain.push(other),
            }
            plain
        });
        let Ok(next) = AbsPath::new(plain) else { break };
        path = next;
    }
    path
}
