//! The step mediate: broker, joins and mediator are up before anything untrusted runs.

use super::traffic::{Route, Target, Traffic, publish};
use super::wish::broker_port;
use crate::base::{AbsPath, Explain, Kind, LaunchId, Port};
use crate::policy::{FileKind, NetPolicy, Network, Policy};
use crate::sandbox::door::Door;
use crate::sandbox::egress::{Broker, Log, PolicyJudge};
use crate::sandbox::{Jailed, mediate};
use std::io;
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
}

impl Explain for MediationError {
    fn kind(&self) -> Kind {
        match self {
            MediationError::Publish { .. } => Kind::Conflict,
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
    missed: mediate::Missed,
}

impl Mediation {
    /// Nothing yet.
    pub fn new() -> Mediation {
        Mediation {
            routes: Vec::new(),
            missed: mediate::Missed::default(),
        }
    }

    /// The socket files that were asked for and not connected to: to be read when the launch is over.
    pub fn missed(&self) -> mediate::Missed {
        self.missed.clone()
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
                (Some(Way::Broker), _, Some((launch, path))) => Target::Broker(broker(policy, launch, path)?),
                (Some(Way::Host), _, _) => Target::Host(port),
                _ => return Err(MediationError::NoWay(port)),
            };
            self.routes.push(Route { listener, target });
        }
        if let Some((listener, diag)) = jailed.mediation.take() {
            let sockets = policy.binds.iter().filter(|bind| bind.kind == FileKind::Socket);
            let rules = mediate::Rules {
                closed: policy.network.closed_ports.clone(),
                granted: sockets.map(|bind| bind.source.clone()).collect(),
                diag,
                missed: self.missed.clone(),
            };
            mediate::start(listener, rules).map_err(MediationError::Thread)?;
        }
        Ok(())
    }

    /// Ports of a sandbox that this machine's loopback may reach.
    pub fn publish(&mut self, listeners: Vec<(Port, OwnedFd)>, door: &Arc<Door>) {
        let routes = listeners.into_iter().map(|(port, listener)| Route {
            listener,
            target: Target::Inside(Arc::clone(door), port),
        });
        self.routes.extend(routes);
    }

    /// Serves from now on.
    pub fn start(self) -> Result<Option<Traffic>, MediationError> {
        if self.routes.is_empty() {
            return Ok(None);
        }
        Traffic::start(self.routes).map(Some).map_err(MediationError::Thread)
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

fn broker(policy: &Policy, launch: &LaunchId, path: &AbsPath) -> Result<Arc<Broker>, MediationError> {
    let log = Log::open(path).map_err(|source| MediationError::Log {
        path: path.clone(),
        source,
    })?;
    Ok(Arc::new(Broker::new(
        launch.clone(),
        PolicyJudge::new(policy.network.clone()),
        log,
    )))
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
