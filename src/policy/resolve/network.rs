//! The network side of a policy.

use super::{Request, ResolveError};
use crate::base::Port;
use crate::policy::frozen::{NetPolicy, Network, Note, Origin, Rule, Topic};
use crate::policy::net::{RuleError, parse_deny, parse_rule, parse_service};
use crate::policy::profile::{Entry, Profile};
use std::collections::BTreeMap;

/// Parses every rule and service; the command line's services win over the profile's of the same name.
pub(super) fn resolve(profile: &Profile, request: &Request, notes: &mut Vec<Note>) -> Result<NetPolicy, ResolveError> {
    let blocked = request.block_net || profile.block == Some(true);
    let typed = |flag: &str, text: &String| Entry {
        text: text.clone(),
        optional: false,
        origin: Origin::command_line(flag),
    };
    let asked: Vec<Entry> = request
        .allow_domains
        .iter()
        .map(|text| typed("--allow-domain", text))
        .collect();
    let offered: Vec<Entry> = request.services.iter().map(|text| typed("--service", text)).collect();
    if blocked && !asked.is_empty() {
        return Err(ResolveError::NoNetwork("--allow-domain"));
    }
    if blocked && !offered.is_empty() {
        return Err(ResolveError::NoNetwork("--service"));
    }
    let mut services = BTreeMap::new();
    for entry in profile.services.iter().chain(&offered) {
        let (name, service) = parse_service(&entry.text, entry.origin.clone()).map_err(|source| at(entry, source))?;
        services.insert(name, service);
    }
    let rules = |entries: &mut dyn Iterator<Item = &Entry>, parse: fn(&str, Origin) -> Result<Rule, RuleError>| {
        let one = |entry: &Entry| parse(&entry.text, entry.origin.clone()).map_err(|source| at(entry, source));
        entries.map(one).collect::<Result<Vec<Rule>, ResolveError>>()
    };
    let open_ports = join_ports(notes, "open", &profile.open_ports, &request.open_ports);
    let listen_ports = join_ports(notes, "listen", &profile.listen_ports, &request.listen_ports);
    let mut closed_ports = request.closed_ports.clone();
    closed_ports.sort();
    closed_ports.dedup();
    Ok(NetPolicy {
        mode: if blocked { Network::Blocked } else { Network::Brokered },
        allow: rules(&mut profile.allow_domains.iter().chain(&asked), parse_rule)?,
        deny: rules(&mut profile.deny_domains.iter(), parse_deny)?,
        services,
        open_ports,
        listen_ports,
        closed_ports,
    })
}

/// The profile's ports and those of `--WORD-port`, each once, each with a note of its origin.
fn join_ports(notes: &mut Vec<Note>, word: &str, written: &[(Port, Origin)], asked: &[Port]) -> Vec<Port> {
    let typed = Origin::command_line(&format!("--{word}-port"));
    let mut all: BTreeMap<Port, Origin> = written.iter().cloned().collect();
    all.extend(asked.iter().map(|port| (*port, typed.clone())));
    for (port, origin) in &all {
        let subject = format!("{word} {port}");
        notes.push(Note {
            topic: Topic::Port,
            subject,
            text: String::new(),
            origin: origin.clone(),
        });
    }
    all.into_keys().collect()
}

fn at(entry: &Entry, source: RuleError) -> ResolveError {
    ResolveError::Rule {
        source,
        origin: Box::new(entry.origin.clone()),
    }
}
