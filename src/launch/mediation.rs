//! The step mediate: broker, joins and mediator are up before anything untrusted runs.

use super::traffic::{Route, Target, Traffic, publish};
use super::wish::broker_port;
use crate::base::{AbsPath, Explain, Kind, LaunchId, Pid, Port};
use crate::policy::{Access, FileKind, Mode, NetPolicy, Network, Policy};
use crate::sandbox::door::Door;
use crate::sandbox::egress::{Admission, Broker, Log, PolicyJudge};
use crate::sandbox::mediate::Detour;
use crate::sandbox::{Jailed, mediate};
use crate::verify::{Birth, descendants};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Why traffic could not be served.
#[derive(Debug, thiserror::Error)]
pub enum MediationError {
    #[error("the log of network decisions {path} cannot be opened ({source})")]
    Log { path: AbsPath, source: io::Error },
    #[error("the log of network decisions has no place ({0})")]
    Name(crate::base::PathError),
    #[error("nothing says where port {0} of the sandbox should lead")]
    NoWay(Port),
    #[error("port {port} of this machine's loopback cannot be listened on ({source})")]
    Publish { port: Port, source: io::Error },
    #[error("the sandbox's traffic cannot be served ({0})")]
    Thread(io::Error),
    #[error(transparent)]
    Undecidable(#[from] mediate::Undecidable),
}

impl Explain for MediationError {
    fn kind(&self) -> Kind {
        match self {
            MediationError::Publish { .. } => Kind::Conflict,
            MediationError::Undecidable(error) => error.kind(),
            _ => Kind::Startup,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            MediationError::Publish { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("ports below 1024 are root's here: choose a higher --listen-port".into())
            }
            MediationError::Publish { .. } => {
                Some("another program has it: end that one, or choose another --listen-port".into())
            }
            MediationError::Undecidable(error) => error.hint(),
            _ => None,
        }
    }
}

/// The ports that a sandbox under this policy needs listeners for, inside.
pub fn inlets(policy: &Policy) -> Vec<Port> {
    let broker = broker_port().filter(|_| policy.network.mode == Network::Brokered);
    let mut ports: Vec<Port> = policy.network.open_ports.clone();
    ports.extend(broker.filter(|broker| !policy.network.open_ports.contains(broker)));
    ports
}

/// Takes the held sandbox's listeners, and says where each goes.
pub struct Mediation {
    routes: Vec<Route>,
    mediators: Vec<mediate::Crew>,
    refusals: Option<Arc<mediate::Refusals>>,
}

/// What serves sandboxes; dropped, it stops.
pub struct Serving {
    _traffic: Option<Traffic>,
    _mediators: Vec<mediate::Crew>,
}

impl Mediation {
    /// Nothing yet; what the mediators of this launch refuse is told to the file.
    pub fn new(refused: Option<AbsPath>) -> Mediation {
        Mediation {
            routes: Vec::new(),
            mediators: Vec::new(),
            refusals: refused.map(|file| Arc::new(mediate::Refusals::to(file))),
        }
    }

    /// The broker, this machine's opened ports, published ports and the mediator of one sandbox. A port in `joined`
    /// leads to its target instead of this machine.
    pub fn add(
        &mut self,
        jailed: &mut Jailed,
        policy: &Policy,
        log: Option<(&LaunchId, &AbsPath)>,
        joined: Option<(Port, Arc<Door>)>,
    ) -> Result<(), MediationError> {
        for (port, listener) in std::mem::take(&mut jailed.inlets) {
            let way = way(&policy.network, joined.as_ref().map(|(port, _)| *port), port);
            let target = match (way, &joined, log) {
                (Some(Way::Inside), Some((_, door)), _) => Target::Inside(Arc::clone(door), port),
                (Some(Way::Broker), _, Some((launch, path))) => Target::Broker(Arc::new(broker(policy, launch, path)?)),
                (Some(Way::Host), _, _) => Target::Host(port),
                _ => return Err(MediationError::NoWay(port)),
            };
            self.routes.push(Route { listener, target });
        }
        if let Some((listener, diag)) = jailed.mediation.take() {
            mediate::try_on(jailed.facts.command)?;
            let sockets = policy.binds.iter().filter(|bind| bind.kind == FileKind::Socket);
            let granted = sockets.map(|bind| bind.source.clone()).collect();
            let rules = match policy.mode() {
                Mode::Full => mediate::Rules {
                    net: mediate::Net::Private {
                        closed: policy.network.closed_ports.clone(),
                    },
                    detour: None,
                    writable: mediate::Writable::default(),
                    granted,
                    inside: mediate::Inside::Namespace,
                    diag,
                    refusals: self.refusals.clone(),
                },
                Mode::Reduced => {
                    let detour = log.map(|(launch, path)| self.serve_broker(policy, launch, path));
                    let detour = detour.transpose()?.flatten();
                    mediate::Rules {
                        net: shared_net(&policy.network, detour.as_ref()),
                        detour,
                        writable: writable(policy),
                        granted,
                        inside: held_by(jailed.facts.first)?,
                        diag,
                        refusals: self.refusals.clone(),
                    }
                }
            };
            let crew = mediate::start(listener, rules).map_err(MediationError::Thread)?;
            self.mediators.push(crew);
        }
        Ok(())
    }

    /// The broker of a sandbox that shares the machine's network, on a port of its loopback; nothing if it has none.
    fn serve_broker(
        &mut self,
        policy: &Policy,
        launch: &LaunchId,
        log: &AbsPath,
    ) -> Result<Option<Detour>, MediationError> {
        let Some(asked) = broker_port().filter(|_| policy.network.mode == Network::Brokered) else {
            return Ok(None);
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(MediationError::Thread)?;
        let at = listener.local_addr().map_err(MediationError::Thread)?.port();
        let at = Port::new(at).ok_or(MediationError::NoWay(asked))?;
        let admission = Arc::new(Admission::default());
        let broker = broker(policy, launch, log)?.with_admission(Arc::clone(&admission));
        self.routes.push(Route {
            listener: listener.into(),
            target: Target::Broker(Arc::new(broker)),
        });
        Ok(Some(Detour { asked, at, admission }))
    }

    /// Ports of a sandbox that this machine's loopback may reach.
    pub fn publish(&mut self, listeners: Vec<(Port, OwnedFd)>, door: &Arc<Door>) {
        if matches!(**door, Door::Open) {
            // In one network with the machine's own the command listens there itself.
            return;
        }
        let routes = listeners.into_iter().map(|(port, listener)| Route {
            listener,
            target: Target::Inside(Arc::clone(door), port),
        });
        self.routes.extend(routes);
    }

    /// Serves from now on.
    pub fn start(self) -> Result<Serving, MediationError> {
        let traffic = if self.routes.is_empty() {
            None
        } else {
            Some(Traffic::start(self.routes).map_err(MediationError::Thread)?)
        };
        Ok(Serving {
            _traffic: traffic,
            _mediators: self.mediators,
        })
    }
}

/// Listeners for the ports that the policy publishes, taken before the sandbox is made.
pub fn published(policy: &Policy) -> Result<Vec<(Port, OwnedFd)>, MediationError> {
    let ports = policy.network.listen_ports.iter();
    ports
        .map(|&port| {
            publish(port)
                .map(|fd| (port, fd))
                .map_err(|source| MediationError::Publish { port, source })
        })
        .collect()
}

/// Where a listener of the sandbox leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Into the other sandbox.
    Inside,
    Broker,
    /// The same port of the host's loopback.
    Host,
}

/// The one decision: what was joined, then the broker, then a port that was opened by number; nothing else leads anywhere.
fn way(network: &NetPolicy, joined: Option<Port>, port: Port) -> Option<Way> {
    if joined == Some(port) {
        Some(Way::Inside)
    } else if network.mode == Network::Brokered && broker_port() == Some(port) {
        Some(Way::Broker)
    } else {
        network.open_ports.contains(&port).then_some(Way::Host)
    }
}

fn broker(policy: &Policy, launch: &LaunchId, path: &AbsPath) -> Result<Broker, MediationError> {
    let log = Log::open(path).map_err(|source| MediationError::Log {
        path: path.clone(),
        source,
    })?;
    Ok(Broker::new(
        launch.clone(),
        PolicyJudge::new(policy.network.clone()),
        log,
    ))
}

/// What of the machine's network is open to a sandbox that shares it: its broker, the ports that were opened, and for
/// listening those that are published or that only the supervisor may connect to.
fn shared_net(network: &NetPolicy, detour: Option<&Detour>) -> mediate::Net {
    let broker = detour.map(|detour| detour.asked);
    let listen = network.listen_ports.iter().chain(&network.closed_ports);
    mediate::Net::Host {
        reach: network.open_ports.iter().copied().chain(broker).collect(),
        listen: mediate::Listen::Only(listen.copied().collect()),
    }
}

/// Where the policy grants writing.
fn writable(policy: &Policy) -> mediate::Writable {
    let folders = policy.binds.iter().filter(|bind| bind.access == Access::ReadWrite);
    mediate::Writable(folders.map(|bind| bind.source.clone()).collect())
}

/// The sockets of whatever descends from the sandbox's first process.
fn held_by(first: Pid) -> Result<mediate::Inside, MediationError> {
    let unread = || MediationError::Thread(io::Error::from(io::ErrorKind::NotFound));
    let first = Birth::of(first).map_err(|_| unread())?;
    Ok(mediate::Inside::Held(Box::new(move || descendants(first))))
}

#[cfg(test)]
mod tests {
    use super::{Way, broker_port, way};
    use crate::base::Port;
    use crate::policy::{NetPolicy, Network};

    #[test]
    fn a_listener_leads_only_where_the_policy_says() {
        let port = |raw| Port::new(raw).unwrap();
        let network = |mode| NetPolicy {
            mode,
            allow: Vec::new(),
            deny: Vec::new(),
            services: std::collections::BTreeMap::new(),
            open_ports: vec![port(5432), port(21_000)],
            listen_ports: Vec::new(),
            closed_ports: Vec::new(),
        };
        let (blocked, brokered) = (network(Network::Blocked), network(Network::Brokered));
        let broker = broker_port().unwrap();
        assert_eq!(way(&brokered, None, broker), Some(Way::Broker));
        assert_eq!(
            way(&blocked, None, broker),
            None,
            "without a broker its port leads nowhere, not to the host"
        );
        assert_eq!(way(&blocked, None, port(5432)), Some(Way::Host));
        assert_eq!(way(&blocked, Some(port(21_000)), port(21_000)), Some(Way::Inside));
        assert_eq!(way(&brokered, None, port(1)), None);
    }
}
