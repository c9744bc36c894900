//! The broker itself: who it asks, what it allows itself, and the loop that accepts.

use super::admission::Admission;
use super::answer::Answer;
use super::judge::Judge;
use super::log::{Line, Log};
use super::resolve::{Resolve, System};
use super::session;
use crate::base::LaunchId;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long the broker waits and how much it keeps. None of these ends a stream that is idle.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For one whole head, from its first byte or, for the first head, from the accept.
    pub head: Duration,
    /// Between two requests of one connection.
    pub idle: Duration,
    /// For resolving one name.
    pub resolve: Duration,
    /// For reaching one of a name's addresses.
    pub dial: Duration,
    /// Before the next address is tried beside one that is silent.
    pub stagger: Duration,
    /// For a client to take a last answer and close.
    pub farewell: Duration,
    /// Connections at once; the next one is told 503.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            resolve: Duration::from_secs(10),
            dial: Duration::from_secs(10),
            stagger: Duration::from_millis(250),
            farewell: Duration::from_secs(2),
            connections: 4096,
        }
    }
}

/// Connections beyond the limit that are told so at once; further ones are just closed.
const TURNED_AWAY: usize = 64;

/// The longest head of a request, in bytes.
pub(super) const LONGEST_HEAD: usize = 16 * 1024;

/// One sandbox's way out.
pub struct Broker {
    pub(super) judge: Box<dyn Judge>,
    pub(super) resolver: Box<dyn Resolve>,
    pub(super) log: Log,
    pub(super) limits: Limits,
    /// Who may connect, where others than the sandbox can: nothing in a network of its own.
    admission: Option<Arc<Admission>>,
    launch: LaunchId,
    decisions: AtomicU64,
}

impl Broker {
    /// A broker for one launch, with the system's resolver and the default limits.
    pub fn new(launch: LaunchId, judge: impl Judge + 'static, log: Log) -> Broker {
        Broker {
            judge: Box::new(judge),
            resolver: Box::new(System::default()),
            log,
            limits: Limits::default(),
            admission: None,
            launch,
            decisions: AtomicU64::new(0),
        }
    }
    /// The same with another resolver.
    pub fn with_resolver(self, resolver: impl Resolve + 'static) -> Broker {
        Broker {
            resolver: Box::new(resolver),
            ..self
        }
    }
    /// The same, on a listener that others than the sandbox can reach too.
    pub fn with_admission(self, admission: Arc<Admission>) -> Broker {
        Broker {
            admission: Some(admission),
            ..self
        }
    }
    /// The same with other limits.
    pub fn with_limits(self, limits: Limits) -> Broker {
        Broker { limits, ..self }
    }

    /// Accepts for ever on a listener of the sandbox's namespace. Dropping the future closes every connection and writes
    /// their closing lines; a look-up that hangs keeps its thread, so end the runtime with `shutdown_background`.
    /// Each connection takes two descriptors: raise the soft limit of open files to the hard one first.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) -> Infallible {
        let mut sessions = JoinSet::new();
        let mut turned_away = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, from)) if self.admission.as_ref().is_none_or(|admission| admission.admits(from.port())) => {
                        self.admit(stream, &mut sessions, &mut turned_away);
                    }
                    Ok(_) => {}
                    // No descriptor left, mostly: connections that end bring some back.
                    Err(_) => sleep(Duration::from_millis(20)).await,
                },
                Some(_) = sessions.join_next() => {}
                Some(_) = turned_away.join_next() => {}
            }
        }
    }

    fn admit(self: &Arc<Self>, stream: TcpStream, sessions: &mut JoinSet<()>, turned_away: &mut JoinSet<()>) {
        while sessions.try_join_next().is_some() {}
        let broker = Arc::clone(self);
        if sessions.len() < self.limits.connections {
            sessions.spawn(async move { session::attend(&broker, stream).await });
        } else if turned_away.len() < TURNED_AWAY {
            turned_away.spawn(async move { session::dismiss(&broker, stream, &Answer::crowded()).await });
        }
    }

    /// A fresh line for the next decision.
    pub(super) fn line(&self) -> Line {
        let id = self.decisions.fetch_add(1, Ordering::Relaxed);
        Line {
            launch: self.launch.to_string(),
            id,
            ..Line::default()
        }
    }
    /// Writes a refusal.
    pub(super) fn refuse(&self, line: Line, reason: &str) {
        self.log.record(Line {
            verdict: "refused",
            reason: Some(reason.to_owned()),
            ..line
        });
    }
}
