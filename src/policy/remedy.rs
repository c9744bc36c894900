//! The smallest grant that would have allowed what was refused. Never a pattern, never a folder, never something that a
//! resolution would refuse: what was asked for came from inside, and may have been asked for to be granted.

use super::frozen::Origin;
use super::net::{address_allowed, is_literal, normalise, parse_rule, parse_service};
use crate::base::Port;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::Path;

/// What may be done about a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// One grant: as a flag, where there is one, and as a line of a profile.
    Grant { flag: Option<String>, profile: String },
    /// Nothing is offered, and why.
    None(String),
}

fn none(reason: impl Into<String>) -> Remedy {
    Remedy::None(reason.into())
}

fn port_of_the_host(port: Port) -> Remedy {
    Remedy::Grant {
        flag: Some(format!("--open-port {port}")),
        profile: format!(r#""network": {{"open_port": [{port}]}}"#),
    }
}

/// A name or address that the broker refused; `leads_to` is the address that was refused for the name.
pub fn name(asked: &str, port: Port, reason: &str, leads_to: Option<IpAddr>) -> Remedy {
    // What a profile denies by name, a grant does not undo.
    if reason.starts_with("denied by the rule") {
        return none("a deny wins over every grant: use a profile without it");
    }
    if reason == "this sandbox has no network" {
        return none("the whole network is blocked: use a profile that does not, or leave --block-net out");
    }
    let plain = asked.trim_start_matches('[').trim_end_matches(']');
    let address = leads_to.or_else(|| plain.parse().ok());
    if let Some(address) = address {
        return service(address, port);
    }
    if plain.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
        return port_of_the_host(port);
    }
    if is_literal(plain) {
        return none("write the address as numbers with dots, or ask for a name");
    }
    let Ok(name) = normalise(plain) else {
        return none("that is no name of a host");
    };
    let rule = match port.get() {
        443 | 80 => name.clone(),
        _ => format!("{name}:{port}"),
    };
    let is_plain = rule
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'_'));
    match parse_rule(&rule, Origin::command_line("--allow-domain")) {
        _ if !is_plain => none("that is no plain name"),
        Err(error) => none(
            error
                .hint()
                .map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}")),
        ),
        Ok(_) => Remedy::Grant {
            flag: Some(format!("--allow-domain {rule}")),
            profile: format!(r#""network": {{"allow_domain": ["{rule}"]}}"#),
        },
    }
}

fn service(address: IpAddr, port: Port) -> Remedy {
    if address.is_loopback() {
        return port_of_the_host(port);
    }
    if address_allowed(address).is_ok() {
        return none("public addresses are reached by their names: allow the name");
    }
    let text = match address {
        IpAddr::V4(address) => format!("host.pinfold={address}:{port}"),
        IpAddr::V6(address) => format!("host.pinfold=[{address}]:{port}"),
    };
    match parse_service(&text, Origin::command_line("--service")) {
        Err(error) => none(error.to_string()),
        Ok((name, service)) => Remedy::Grant {
            flag: Some(format!("--service {text}")),
            profile: format!(r#""pinfold": {{"services": {{"{name}": "{}"}}}}"#, service.address),
        },
    }
}

#[derive(Deserialize)]
struct Table {
    sockets: Vec<Never>,
}

#[derive(Deserialize)]
struct Never {
    name: String,
    reason: String,
}

/// A socket of the host by its path.
pub fn socket(path: &Path) -> Remedy {
    let table: Result<Table, _> = serde_json::from_str(include_str!("../../profiles/never-offered.json"));
    let Ok(table) = table else {
        return none("the data of never-offered.json is damaged");
    };
    let last = path.file_name().unwrap_or_default();
    if let Some(never) = table.sockets.iter().find(|never| last == never.name.as_str()) {
        return none(never.reason.clone());
    }
    let plain = |text: &&str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:=@%".contains(&byte);
        text.starts_with('/') && text.bytes().all(letter) && !text.split('/').any(|part| part == "..")
    };
    match path.to_str().filter(plain) {
        None => none("its path has characters that mean something else in a profile"),
        Some(path) => Remedy::Grant {
            flag: None,
            profile: format!(r#""filesystem": {{"unix_socket": ["{path}"]}}"#),
        },
    }
}

/// A port of the machine's loopback, asked for by a sandbox in its network.
pub fn loopback_port(port: u16) -> Remedy {
    Port::new(port).map_or_else(|| none("there is no port 0"), port_of_the_host)
}

/// A port to listen on, of a sandbox in the machine's network.
pub fn listened_port(port: u16) -> Remedy {
    match Port::new(port) {
        Some(port) => Remedy::Grant {
            flag: Some(format!("--listen-port {port}")),
            profile: format!(r#""network": {{"listen_port": [{port}]}}"#),
        },
        None => none("in reduced mode a port must be named to be granted: have the program listen on one"),
    }
}

/// An address that a sandbox in the machine's network tried to reach by itself.
pub fn past_the_broker() -> Remedy {
    none("allowed names are reached through the broker, which the proxy variables name")
}

/// A port inside that only the supervisor's join reaches.
pub fn closed_port() -> Remedy {
    none("only Pinfold itself connects to the agent's own port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_the_machine_is_offered_by_its_number_and_for_what_was_asked() {
        assert_eq!(flag(&loopback_port(5432)), Some("--open-port 5432"));
        assert_eq!(flag(&listened_port(8080)), Some("--listen-port 8080"));
        for nothing in [listened_port(0), loopback_port(0), past_the_broker()] {
            assert_eq!(flag(&nothing), None);
        }
    }

    fn named(asked: &str, port: u16, reason: &str) -> Remedy {
        name(asked, Port::new(port).unwrap(), reason, None)
    }

    fn flag(remedy: &Remedy) -> Option<&str> {
        match remedy {
            Remedy::Grant { flag, .. } => flag.as_deref(),
            Remedy::None(_) => None,
        }
    }

    #[test]
    fn the_grant_is_for_that_one_thing() {
        for (asked, port, wanted) in [
            ("api.example.com", 443, "--allow-domain api.example.com"),
            ("API.Example.com.", 80, "--allow-domain api.example.com"),
            ("api.example.com", 8443, "--allow-domain api.example.com:8443"),
            ("localhost", 5432, "--open-port 5432"),
            ("127.0.0.1", 5432, "--open-port 5432"),
            ("[::1]", 5432, "--open-port 5432"),
            ("192.168.1.7", 8080, "--service host.pinfold=192.168.1.7:8080"),
        ] {
            assert_eq!(flag(&named(asked, port, "no rule")), Some(wanted), "{asked}");
        }
        let address = Some("10.1.2.3".parse().unwrap());
        let led = name("intern.example.com", Port::new(443).unwrap(), "its address", address);
        assert_eq!(flag(&led), Some("--service host.pinfold=10.1.2.3:443"));
    }

    #[test]
    fn nothing_wide_and_nothing_that_is_refused_is_offered() {
        for asked in [
            "*",
            "*.com",
            "*.example.com",
            "com",
            "printer.local",
            "a b.example.com",
            "x\u{202e}.example.com",
            "8.8.8.8",
            "169.254.169.254",
            "0x7f.1",
            "",
            "-",
            "a;reboot.example.com",
            "$(x).example.com",
        ] {
            let remedy = named(asked, 443, "no rule");
            assert!(matches!(remedy, Remedy::None(_)), "{asked}: {remedy:?}");
        }
        assert!(matches!(
            named("a.example.com", 443, "denied by the rule `a`"),
            Remedy::None(_)
        ));
        assert!(matches!(
            named("a.example.com", 443, "this sandbox has no network"),
            Remedy::None(_)
        ));
        for path in [
            "/var/run/docker.sock",
            "/run/user/1000/bus",
            "/run/user/1000/systemd/private",
            "/tmp/.X11-unix/X0",
            "relative.sock",
            "/a/*.sock",
            "/a/$HOME.sock",
            "/a/\n.sock",
            "/a/../b.sock",
            "/a \"b.sock",
        ] {
            assert!(matches!(socket(Path::new(path)), Remedy::None(_)), "{path}");
        }
        let Remedy::Grant { profile, flag: None } = socket(Path::new("/run/user/1000/ssh-agent.sock")) else {
            panic!("control")
        };
        assert_eq!(
            profile,
            r#""filesystem": {"unix_socket": ["/run/user/1000/ssh-agent.sock"]}"#
        );
    }
}
