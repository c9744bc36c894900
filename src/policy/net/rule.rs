//! Network rules and services as people write them.

use super::{NameError, normalise, service_address};
use crate::base::Port;
use crate::policy::frozen::{Origin, Rule, Service};
use serde::Deserialize;
use std::net::SocketAddr;
use std::sync::LazyLock;

/// Why a rule or a service as written is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("{text:?} is not a host name: {source}")]
    Name { text: String, source: NameError },
    #[error("{text:?} is a URL; a rule is a name, with a port if it is neither 443 nor 80")]
    Url { text: String },
    #[error("{text:?} has no valid port behind the colon")]
    Port { text: String },
    #[error("{0:?} takes no port: a deny rule is for the name on every port")]
    DenyPort(String),
    #[error("{text:?} covers a whole top-level domain")]
    TooWide { text: String },
    #[error("{text:?} has a `*` that is not a leading `*.`")]
    Star { text: String },
    #[error("{text:?} is never a public name: {reason}")]
    Private { text: String, reason: String },
    #[error("{text:?} has no dot in it, so it cannot be a public name")]
    SingleLabel { text: String },
    #[error("{text:?} is not a service: it must be NAME.pinfold=ADDRESS:PORT")]
    Service { text: String },
    #[error("the service {text:?} cannot be at this address: {reason}")]
    ServiceAddress { text: String, reason: &'static str },
}

impl RuleError {
    /// What to write instead.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            RuleError::Name {
                source: NameError::Literal,
                ..
            }
            | RuleError::Private { .. }
            | RuleError::SingleLabel { .. } => {
                "grant one service on the host with --service NAME.pinfold=127.0.0.1:PORT (profile: pinfold.services)"
            }
            RuleError::TooWide { .. } | RuleError::Star { .. } => {
                "write `name`, `*.name.tld` for everything below a name, or `*` for every public name"
            }
            RuleError::Url { .. } | RuleError::Port { .. } => {
                "write for example `api.example.com` or `api.example.com:8443`"
            }
            RuleError::Service { .. } => "write for example model.pinfold=127.0.0.1:11434",
            RuleError::ServiceAddress { .. } => "only loopback and private addresses can be granted as a service",
            RuleError::Name { .. } | RuleError::DenyPort(_) => return None,
        };
        Some(hint.to_owned())
    }
}

#[derive(Debug, Deserialize)]
struct Private {
    name: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Names {
    private: Vec<Private>,
}

/// Nothing if the data is damaged: then every name counts as private.
static PRIVATE: LazyLock<Option<Names>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../profiles/names.json")).ok());

/// Why a normalised name is never public, or nothing.
pub(super) fn private_reason(name: &str) -> Option<&'static str> {
    let Some(names) = PRIVATE.as_ref() else {
        return Some("the table of names is damaged");
    };
    let at_or_below = |private: &&Private| {
        name.strip_suffix(private.name.as_str())
            .is_some_and(|front| front.is_empty() || front.ends_with('.'))
    };
    names
        .private
        .iter()
        .find(at_or_below)
        .map(|private| private.reason.as_str())
}

/// Parses an allow rule: `name`, `*.name`, either with `:port` (443 and 80 without), or `*` for every public name.
pub fn parse_rule(text: &str, origin: Origin) -> Result<Rule, RuleError> {
    let (host, ports) = split_port(text)?;
    let rule = named(text, host, ports, origin)?;
    let owned = || text.to_owned();
    if rule.name.is_empty() {
        return Ok(rule);
    }
    if let Some(reason) = private_reason(&rule.name) {
        return Err(RuleError::Private {
            text: owned(),
            reason: reason.to_owned(),
        });
    }
    match (rule.name.contains('.'), rule.below) {
        (true, _) => Ok(rule),
        (false, true) => Err(RuleError::TooWide { text: owned() }),
        (false, false) => Err(RuleError::SingleLabel { text: owned() }),
    }
}

/// Parses a deny rule: like an allow rule, but as wide as one likes, and without a port: it holds on every port.
pub fn parse_deny(text: &str, origin: Origin) -> Result<Rule, RuleError> {
    let (host, ports) = split_port(text)?;
    if host.len() != text.len() {
        return Err(RuleError::DenyPort(text.to_owned()));
    }
    named(text, host, ports, origin)
}

/// Parses `name.pinfold=address:port` into the normalised name and the service.
pub fn parse_service(text: &str, origin: Origin) -> Result<(String, Service), RuleError> {
    let malformed = || RuleError::Service { text: text.to_owned() };
    let (name, address) = text.split_once('=').ok_or_else(malformed)?;
    let name = normalise(name).map_err(|source| RuleError::Name {
        text: name.to_owned(),
        source,
    })?;
    if name.strip_suffix(".pinfold").is_none_or(str::is_empty) {
        return Err(malformed());
    }
    let address: SocketAddr = address.parse().map_err(|_| malformed())?;
    service_address(address).map_err(|reason| RuleError::ServiceAddress {
        text: text.to_owned(),
        reason,
    })?;
    Ok((name, Service { address, origin }))
}

fn named(text: &str, host: &str, ports: Vec<Port>, origin: Origin) -> Result<Rule, RuleError> {
    let text = text.to_owned();
    if host == "*" {
        return Ok(Rule {
            text,
            name: String::new(),
            below: true,
            ports,
            origin,
        });
    }
    let (below, rest) = host.strip_prefix("*.").map_or((false, host), |rest| (true, rest));
    if rest.contains('*') {
        return Err(RuleError::Star { text });
    }
    match normalise(rest) {
        Ok(name) => Ok(Rule {
            text,
            name,
            below,
            ports,
            origin,
        }),
        Err(source) => Err(RuleError::Name { text, source }),
    }
}

/// The host part and the ports: 443 and 80 where none is written.
fn split_port(text: &str) -> Result<(&str, Vec<Port>), RuleError> {
    if text.contains('/') {
        return Err(RuleError::Url { text: text.to_owned() });
    }
    if super::is_literal(text) && text.matches(':').count() != 1 {
        return Err(RuleError::Name {
            text: text.to_owned(),
            source: NameError::Literal,
        });
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Ok((text, [443, 80].into_iter().filter_map(Port::new).collect()));
    };
    let written = port.parse::<Port>().ok().filter(|_| !port.starts_with('0'));
    match written {
        Some(port) => Ok((host, vec![port])),
        None => Err(RuleError::Port { text: text.to_owned() }),
    }
}
