//! Which names, ports and addresses may be reached. Pure: one decision for the broker, `why` and the tests.

mod address;
mod name;
mod rule;
#[cfg(test)]
mod tests;

pub use address::{address_allowed, service_address};
pub use name::{NameError, is_literal, normalise};
pub use rule::{RuleError, parse_deny, parse_rule, parse_service};

use super::frozen::{NetPolicy, Network, Rule};
use crate::base::Port;
use std::net::SocketAddr;

/// The answer for one name and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// A rule allows it: resolve `name` once, and dial only what `address_allowed` lets pass.
    Allowed {
        /// The normalised name to resolve.
        name: String,
        /// The rule as written.
        rule: String,
    },
    /// A granted service: dial exactly this address, no look-up, no `address_allowed`.
    Service {
        /// The normalised private name.
        name: String,
        address: SocketAddr,
    },
    /// Not to be dialled.
    Refused(Refusal),
}

/// Why something is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this sandbox has no network")]
    Blocked,
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("addresses are not names: allow the name, or grant a service")]
    Literal,
    #[error("denied by the rule `{0}`")]
    Denied(String),
    #[error("the service `{name}` is on port {port} only")]
    ServicePort { name: String, port: u16 },
    #[error("`{name}` is allowed on other ports only: {ports}")]
    Port { name: String, ports: String },
    #[error("no rule allows `{0}`")]
    NoRule(String),
}

/// Decides about a name as the client wrote it (without port or brackets taken off) and the port. A deny wins over
/// everything; an empty list allows nothing.
pub fn decide(policy: &NetPolicy, name: &str, port: Port) -> Decision {
    if policy.mode == Network::Blocked {
        return Decision::Refused(Refusal::Blocked);
    }
    if is_literal(name) {
        return Decision::Refused(Refusal::Literal);
    }
    let name = match normalise(name) {
        Ok(name) => name,
        Err(NameError::Literal) => return Decision::Refused(Refusal::Literal),
        Err(error) => return Decision::Refused(Refusal::Name(error)),
    };
    if let Some(rule) = policy.deny.iter().find(|rule| matches(rule, &name)) {
        return Decision::Refused(Refusal::Denied(rule.text.clone()));
    }
    if let Some(service) = policy.services.get(&name) {
        let own = service.address.port();
        return if port.get() == own || port.get() == 80 {
            Decision::Service {
                name,
                address: service.address,
            }
        } else {
            Decision::Refused(Refusal::ServicePort { name, port: own })
        };
    }
    let named: Vec<&Rule> = policy.allow.iter().filter(|rule| matches(rule, &name)).collect();
    if let Some(rule) = named.iter().find(|rule| rule.ports.contains(&port)) {
        return Decision::Allowed {
            name,
            rule: rule.text.clone(),
        };
    }
    if named.is_empty() {
        return Decision::Refused(Refusal::NoRule(name));
    }
    let mut ports: Vec<Port> = named.iter().flat_map(|rule| rule.ports.iter().copied()).collect();
    ports.sort();
    ports.dedup();
    let ports = ports.iter().map(Port::to_string).collect::<Vec<_>>().join(", ");
    Decision::Refused(Refusal::Port { name, ports })
}

/// Whether a rule names this normalised name: whole labels only, and `*.name` never `name` itself.
pub(in crate::policy) fn matches(rule: &Rule, name: &str) -> bool {
    match (rule.below, rule.name.as_str()) {
        (false, exact) => name == exact,
        // `*`: every public name, and a public name has a dot.
        (true, "") => name.contains('.') && rule::private_reason(name).is_none(),
        (true, above) => name
            .strip_suffix(above)
            .is_some_and(|front| front.len() > 1 && front.ends_with('.')),
    }
}
