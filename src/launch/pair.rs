//! What the two sandboxes of an agent are made from: program, port, password, and a policy for each side.

use super::attendance::OnFailure;
use super::version::{VersionError, version_of};
use super::{Additions, Setting, Wish};
use crate::agent::{self, Agent, Patience, Program, Resume, Search, Side};
use crate::base::{AbsPath, Explain, Fault, Kind, Port, Secret};
use crate::policy::Policy;
use crate::sandbox::{Doors, Order, Stream};
use crate::state::Record;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// Where the joined port is looked for: below the range from which the kernel takes ports for outgoing connections,
/// so that nothing inside can have it by chance (ip(7), `ip_local_port_range`).
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const TRIES: usize = 1000;

/// What a person asks `start` for. Kept in the record, so that the pane can take it from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionWish {
    pub wish: Wish,
    pub agent: OsString,
    pub binary: Option<OsString>,
    pub resume: bool,
    pub warn_only: bool,
    /// Seconds until an agent that does not answer is given up.
    #[serde(default)]
    pub ready_timeout: Option<u16>,
    pub arguments: Vec<OsString>,
}

impl SessionWish {
    /// What a failed verification does.
    pub fn on_failure(&self) -> OnFailure {
        if self.warn_only {
            OnFailure::Warn
        } else {
            OnFailure::Stop
        }
    }

    /// How long the agent may take to tell its version, and its server to answer.
    pub fn patience(&self) -> Duration {
        self.ready_timeout
            .map_or(Patience::default().total, |seconds| Duration::from_secs(seconds.into()))
    }

    /// The agent.
    pub fn agent(&self) -> Result<&'static dyn Agent, Fault> {
        Ok(agent::named(&self.agent)?)
    }

    /// Finds the agent's program without running it.
    pub fn find(&self, root: &AbsPath, setting: &Setting) -> Result<agent::Candidate, Fault> {
        let binary = self.binary.as_ref().map(|binary| setting.here.join(binary));
        let search = Search {
            configured: binary.as_deref(),
            path: setting.environ.get(OsStr::new("PATH")).map(OsString::as_os_str),
            workspace: Some(root),
            data: &setting.dirs.data,
        };
        Ok(self.agent()?.find(&search)?)
    }
}

/// What is missing for a pair.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    #[error("an agent needs a terminal, and this process has none")]
    NoTerminal,
    #[error("no port could be chosen for the two sandboxes")]
    NoPort,
    #[error("the server's sandbox has no door")]
    NoDoor,
    #[error("the server ended while the client was up ({0}), so the client was ended too")]
    ServerEnded(String),
    #[error("the agent's client is gone: {0}")]
    ClientLost(String),
    #[error("a stream for the server cannot be opened ({0})")]
    Stream(nix::errno::Errno),
    #[error(transparent)]
    Version(#[from] VersionError),
}

impl Explain for PairError {
    fn kind(&self) -> Kind {
        match self {
            PairError::Version(error) => error.kind(),
            PairError::NoTerminal => Kind::Target,
            _ => Kind::Startup,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            PairError::NoTerminal => Some("run it in a terminal, or inside tmux".into()),
            PairError::ServerEnded(_) => Some("the end of its log says more: `pinfold info` names the file".into()),
            PairError::Version(error) => error.hint(),
            _ => None,
        }
    }
}

/// Everything that is decided before the first sandbox is made.
pub struct Pair {
    pub agent: &'static dyn Agent,
    pub program: Program,
    pub port: Port,
    pub password: Secret,
    pub server: Policy,
    pub client: Policy,
    client_argv: Vec<OsString>,
}

impl Pair {
    /// Steps load and resolve for both sides.
    pub fn resolve(wish: &SessionWish, record: &Record, setting: &Setting) -> Result<Pair, Fault> {
        let agent = wish.agent()?;
        let candidate = wish.find(&record.local_path, setting)?;
        let version = match candidate.hint {
            Some(version) => version,
            None => version_of(agent, &candidate, wish.patience(), &wish.wish.allow_missing, setting)?,
        };
        let program = candidate.with_version(version);
        let port = fresh_port(wish)?;
        let password = Secret::fresh();
        let resume = if wish.resume { Resume::Last } else { Resume::Fresh };
        let client_argv = agent.client_argv(&program, port, resume, &wish.arguments)?;
        let variables = || named(agent.variables(&program, &setting.dirs.data));
        let server = Additions {
            closed_ports: vec![port],
            variables: variables(),
            ..Additions::default()
        };
        let client = Additions {
            open_ports: vec![port],
            variables: variables(),
            ..Additions::default()
        };
        let client_wish = Wish {
            allow_missing: wish.wish.allow_missing.clone(),
            workdir: wish.wish.workdir.clone(),
            from: wish.wish.from.clone(),
            ..Wish::default()
        };
        let mut server = wish.wish.policy(agent.profile(Side::Server), server, setting)?;
        let mut client = client_wish.policy(agent.profile(Side::Client), client, setting)?;
        agent.additions(Side::Server, &password).apply(&mut server.environment);
        agent.additions(Side::Client, &password).apply(&mut client.environment);
        Ok(Pair {
            agent,
            program,
            port,
            password,
            server,
            client,
            client_argv,
        })
    }
}

/// A port that nothing in the two sandboxes has. Only what a person asks for by number can be in the way there.
fn fresh_port(wish: &SessionWish) -> Result<Port, PairError> {
    // Without a network of its own the server listens on this machine's loopback.
    let free = |port: &Port| TcpListener::bind((Ipv4Addr::LOCALHOST, port.get())).is_ok();
    let asked = |port: &Port| wish.wish.open_ports.contains(port) || wish.wish.listen_ports.contains(port);
    let tries = std::iter::repeat_with(|| Port::new(rand::rng().random_range(PORTS))).take(TRIES);
    tries
        .flatten()
        .find(|port| !asked(port) && free(port))
        .ok_or(PairError::NoPort)
}

/// The policy that a server would have, for checks before a pane is opened, for `shell` and for `doctor`.
pub fn server_policy(wish: &SessionWish, program: &Program, setting: &Setting) -> Result<Policy, Fault> {
    let agent = wish.agent()?;
    let additions = Additions {
        variables: named(agent.variables(program, &setting.dirs.data)),
        ..Additions::default()
    };
    wish.wish.policy(agent.profile(Side::Server), additions, setting)
}

fn named(variables: Vec<(&'static str, OsString)>) -> Vec<(String, PathBuf)> {
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), PathBuf::from(value)))
        .collect()
}

/// The server: no terminal, its words go to its log.
pub fn server_order(pair: &Pair, log: &OwnedFd, inlets: Vec<Port>) -> Result<Order, PairError> {
    let null = nix::fcntl::open("/dev/null", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
    let copy = || {
        log.try_clone()
            .map_err(|_| PairError::Stream(nix::errno::Errno::EMFILE))
    };
    let streams = [
        Stream::File(null.map_err(PairError::Stream)?),
        Stream::File(copy()?),
        Stream::File(copy()?),
    ];
    let argv = pair.agent.strip(pair.agent.server_argv(&pair.program, pair.port));
    Ok(Order {
        argv,
        streams,
        inlets,
        door: Doors::One,
    })
}

/// The client: the sandbox's own terminal, which is joined to the pane.
pub fn client_order(pair: &Pair, inlets: Vec<Port>) -> Order {
    let streams = [Stream::Terminal, Stream::Terminal, Stream::Terminal];
    Order {
        argv: pair.agent.strip(pair.client_argv.clone()),
        streams,
        inlets,
        door: Doors::None,
    }
}
