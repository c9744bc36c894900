//! What was refused while a launch ran: read from its logs, each thing once, with the smallest grant that allows it.

use super::Setting;
use super::changes::kept;
use crate::base::regular;
use crate::base::{AbsPath, Explain, Fault, Kind, Port};
use crate::policy::remedy::{self, Remedy};
use crate::sandbox::mediate::{Refusal, What};
use crate::state::{Logs, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

/// A log is set aside at half of this.
const LARGEST: u64 = 32 << 20;
/// Different things that are told of one launch.
const MOST: usize = 512;

/// One thing that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denied {
    /// `name`, `socket`, `port` or `request`.
    pub kind: &'static str,
    /// What was asked for.
    pub subject: String,
    /// The rule or the reason.
    pub reason: String,
    /// How often; of sockets and ports, at least.
    pub count: u64,
    pub remedy: Remedy,
}

/// A launch and what was refused in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denials {
    pub launch: String,
    pub denied: Vec<Denied>,
    /// What the launch changed that this machine may execute: not refused, or only after it was there.
    pub changed: Vec<AbsPath>,
    /// Whether there was more than is told.
    pub cut: bool,
}

/// There is no launch to tell of.
#[derive(Debug, thiserror::Error)]
pub enum NoLaunch {
    #[error("no launch that is still known has refused anything")]
    None,
    #[error("there are no logs of a launch {0:?}")]
    Unknown(String),
    #[error("{0:?} fits more than one launch")]
    Several(String),
}

impl Explain for NoLaunch {
    fn kind(&self) -> Kind {
        Kind::NotFound
    }
    fn hint(&self) -> Option<String> {
        Some("files that are not granted are not there inside, and nobody hears of it: `pinfold why PATH`".into())
    }
}

/// A line of the broker's log, as much of it as is needed.
#[derive(Deserialize)]
struct Line {
    name: Option<String>,
    port: Option<u16>,
    address: Option<String>,
    #[serde(default)]
    verdict: String,
    reason: Option<String>,
}

/// The launch that `named` names, or the last one in which anything was refused.
pub fn last(named: Option<&str>, setting: &Setting) -> Result<Denials, Fault> {
    let store = Store::open(&setting.dirs)?;
    let logs = store.logs();
    let sessions = logs.newest_first()?;
    let records = store.list()?.records;
    let of = |session: &str| {
        let record = records.iter().find(|record| record.session_name == session);
        Denials {
            changed: kept(&store, record, session).unwrap_or_default().paths(),
            ..of(session, logs)
        }
    };
    if let Some(named) = named {
        let exact = |session: &&String| session.as_str() == named || session.ends_with(&format!("-{named}"));
        let fits: Vec<&String> = match sessions.iter().find(exact) {
            Some(session) => vec![session],
            None => sessions.iter().filter(|session| session.contains(named)).collect(),
        };
        return match fits.as_slice() {
            [session] => Ok(of(session)),
            [] => Err(NoLaunch::Unknown(named.to_owned()).into()),
            _ => Err(NoLaunch::Several(named.to_owned()).into()),
        };
    }
    let all = sessions.iter().map(|session| of(session));
    let found = all.into_iter().find(|denials| !denials.denied.is_empty());
    found.ok_or_else(|| NoLaunch::None.into())
}

/// How many different things one launch refused; none where that cannot be read.
pub fn count(session: &str, setting: &Setting) -> usize {
    Store::open(&setting.dirs).map_or(0, |store| of(session, store.logs()).denied.len())
}

/// The sockets of this machine that one launch looked for in vain; none where that cannot be read.
pub fn sockets(session: &str, setting: &Setting) -> Vec<PathBuf> {
    let denied = Store::open(&setting.dirs).map_or_else(|_| Vec::new(), |store| of(session, store.logs()).denied);
    let sockets = denied.into_iter().filter(|denied| denied.kind == "socket");
    sockets.map(|denied| denied.subject.into()).collect()
}

fn of(session: &str, logs: &Logs) -> Denials {
    let mut found = Found::default();
    if let Ok(log) = logs.network(session) {
        let aside = format!("{}.1", log.as_path().display());
        for path in [std::path::Path::new(&aside), log.as_path()] {
            lines(path, |line| found.network(line));
        }
    }
    if let Ok(log) = logs.refused(session) {
        lines(log.as_path(), |line: Refusal| found.mediated(line));
    }
    let cut = found.cut;
    let mut denied: Vec<Denied> = found.all.into_values().collect();
    denied.sort_by(|a, b| (b.count, &a.subject).cmp(&(a.count, &b.subject)));
    Denials {
        launch: session.to_owned(),
        denied,
        changed: Vec::new(),
        cut,
    }
}

/// Every line that is one; a log that is not there has none.
fn lines<T: serde::de::DeserializeOwned>(path: &std::path::Path, mut each: impl FnMut(T)) {
    let bytes = regular::read(path, LARGEST).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .for_each(&mut each);
}

#[derive(Default)]
struct Found {
    all: BTreeMap<(&'static str, String), Denied>,
    cut: bool,
}

impl Found {
    fn add(&mut self, denied: Denied, merge: impl Fn(u64, u64) -> u64) {
        let key = (denied.kind, format!("{} {}", denied.subject, denied.reason));
        if let Some(known) = self.all.get_mut(&key) {
            known.count = merge(known.count, denied.count);
        } else if self.all.len() < MOST {
            self.all.insert(key, denied);
        } else {
            self.cut = true;
        }
    }

    fn network(&mut self, line: Line) {
        if line.verdict != "refused" {
            return;
        }
        let reason = line.reason.unwrap_or_default();
        let denied = match (line.name, line.port.and_then(Port::new)) {
            (Some(name), Some(port)) => Denied {
                kind: "name",
                subject: format!("{name}:{port}"),
                remedy: remedy::name(&name, port, &reason, line.address.and_then(|text| text.parse().ok())),
                reason,
                count: 1,
            },
            (name, _) => Denied {
                kind: "request",
                subject: name.unwrap_or_else(|| "a request to the broker".into()),
                remedy: Remedy::None("it is no request that a proxy takes".into()),
                reason,
                count: 1,
            },
        };
        self.add(denied, |a, b| a + b);
    }

    fn mediated(&mut self, line: Refusal) {
        let (kind, subject, reason, remedy) = match &line.what {
            What::Port(port) => (
                "port",
                format!("port {port} inside"),
                "it is closed to everything inside",
                remedy::closed_port(),
            ),
            What::Loopback(port) => (
                "port",
                format!("port {port} of this machine's loopback"),
                "no line opens it",
                remedy::loopback_port(*port),
            ),
            What::Listen(port) => (
                "port",
                format!("listening on port {port}"),
                "in reduced mode that is a port of this machine, and no line publishes it",
                remedy::listened_port(*port),
            ),
            What::Elsewhere(address) => (
                "address",
                address.to_string(),
                "a connection past the broker",
                remedy::past_the_broker(),
            ),
            What::Socket(path) => (
                "socket",
                path.display().to_string(),
                "a socket of this machine, and no line grants it",
                remedy::socket(path),
            ),
            What::Invisible(path) => {
                // Programs look for sockets that are nowhere: only one that this machine has is news.
                if !std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
                    return;
                }
                let reason = "a socket of this machine that is not visible inside";
                ("socket", path.display().to_string(), reason, remedy::socket(path))
            }
        };
        let denied = Denied {
            kind,
            subject,
            reason: reason.into(),
            count: line.count,
            remedy,
        };
        self.add(denied, u64::max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_told_once_with_its_count() {
        let mut found = Found::default();
        for (name, times) in [("a.example.com", 3), ("b.example.com", 1)] {
            for _ in 0..times {
                let text = format!(
                    r#"{{"time": 1.0, "launch": "x", "id": 1, "name": "{name}", "port": 443, "verdict": "refused", "reason": "no rule allows `{name}`"}}"#
                );
                found.network(serde_json::from_str(&text).unwrap());
            }
        }
        let allowed = r#"{"name": "c.example.com", "port": 443, "verdict": "allowed"}"#;
        found.network(serde_json::from_str(allowed).unwrap());
        for count in [1, 2, 4] {
            let what = What::Socket("/x/y.sock".into());
            found.mediated(Refusal { time: 1, what, count });
        }
        let counts: Vec<_> = found
            .all
            .values()
            .map(|one| (one.subject.as_str(), one.count))
            .collect();
        assert_eq!(
            counts,
            [("a.example.com:443", 3), ("b.example.com:443", 1), ("/x/y.sock", 4)]
        );
    }

    #[test]
    fn a_socket_that_is_nowhere_is_no_news() {
        let mut found = Found::default();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let line = |path: &std::path::Path| Refusal {
            time: 1,
            what: What::Invisible(path.to_owned()),
            count: 1,
        };
        found.mediated(line(&path));
        assert!(found.all.is_empty());
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        found.mediated(line(&path));
        assert_eq!(found.all.len(), 1, "control");
    }
}
