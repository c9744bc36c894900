//! `host[:port]` as a client writes it. Only the shape is read here; what the name means is the policy's.

use crate::base::Port;
use std::net::Ipv6Addr;

/// The longest host text that is looked at, in bytes; a DNS name has at most 253.
const LONGEST: usize = 255;

/// A host as written and the port, if one was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// A name, an IPv4 literal, or an IPv6 literal without its brackets.
    pub host: String,
    pub port: Option<Port>,
}

/// Why a text is not one clear authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    #[error("the host is empty")]
    Empty,
    #[error("the host is longer than {LONGEST} bytes")]
    Long,
    #[error("the host has a character that no name has")]
    Character,
    #[error("user and password in an address are not taken")]
    UserInfo,
    #[error("the brackets do not hold an IPv6 address")]
    Literal,
    #[error("the port is not a plain number from 1 to 65535")]
    Port,
}

impl Authority {
    /// Reads `name`, `name:port`, `1.2.3.4:port` or `[v6]:port`. A port has no sign, no leading zero and no empty form;
    /// a name has no percent escapes, blanks or controls. Letters beyond ASCII are left for the policy to normalise.
    pub fn parse(bytes: &[u8]) -> Result<Authority, AuthorityError> {
        let text = std::str::from_utf8(bytes).map_err(|_| AuthorityError::Character)?;
        if text.contains('@') {
            return Err(AuthorityError::UserInfo);
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => literal(rest)?,
            None => named(text)?,
        };
        Ok(Authority {
            host: host.to_owned(),
            port: port.map(parse_port).transpose()?,
        })
    }

    /// Whether both name the same host, by spelling: letters of either case, one final dot or none.
    pub fn same_host(&self, other: &Authority) -> bool {
        let bare = |text: &str| text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        bare(&self.host) == bare(&other.host)
    }
}

fn literal(rest: &str) -> Result<(&str, Option<&str>), AuthorityError> {
    let (host, tail) = rest.split_once(']').ok_or(AuthorityError::Literal)?;
    host.parse::<Ipv6Addr>().map_err(|_| AuthorityError::Literal)?;
    match tail.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if tail.is_empty() => Ok((host, None)),
        None => Err(AuthorityError::Literal),
    }
}

fn named(text: &str) -> Result<(&str, Option<&str>), AuthorityError> {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    if host.is_empty() {
        return Err(AuthorityError::Empty);
    }
    if host.len() > LONGEST {
        return Err(AuthorityError::Long);
    }
    host.chars()
        .all(in_name)
        .then_some((host, port))
        .ok_or(AuthorityError::Character)
}

fn in_name(c: char) -> bool {
    match c {
        '-' | '.' | '_' => true,
        _ if c.is_ascii() => c.is_ascii_alphanumeric(),
        _ => !c.is_control() && !c.is_whitespace(),
    }
}

fn parse_port(text: &str) -> Result<Port, AuthorityError> {
    let port = text.parse::<Port>().map_err(|_| AuthorityError::Port)?;
    if text.starts_with('0') {
        return Err(AuthorityError::Port);
    }
    Ok(port)
}

#[cfg(test)]
mod tests {
    use super::{Authority, AuthorityError};
    use crate::base::Port;
    use proptest::prelude::{any, proptest};

    fn parse(text: &str) -> Result<Authority, AuthorityError> {
        Authority::parse(text.as_bytes())
    }

    #[test]
    fn takes_plain_spellings() {
        for (text, host, port) in [
            ("ok.test", "ok.test", None),
            ("OK.test.:443", "OK.test.", Some(443)),
            ("a_b-c.test:1", "a_b-c.test", Some(1)),
            ("127.0.0.1:65535", "127.0.0.1", Some(65535)),
            ("[::1]:80", "::1", Some(80)),
            ("[2001:db8::1]", "2001:db8::1", None),
            ("bücher.test:443", "bücher.test", Some(443)),
        ] {
            let wanted = Authority {
                host: host.into(),
                port: port.and_then(Port::new),
            };
            assert_eq!(parse(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn refuses_what_has_two_readings() {
        use AuthorityError as E;
        for (text, error) in [
            ("", E::Empty),
            (":443", E::Empty),
            ("ok.test:", E::Port),
            ("ok.test:0", E::Port),
            ("ok.test:0443", E::Port),
            ("ok.test:+443", E::Port),
            ("ok.test:443 ", E::Port),
            ("ok.test:65536", E::Port),
            ("ok.test:443:80", E::Port),
            ("ok.test :443", E::Character),
            ("%6fk.test", E::Character),
            ("*.test", E::Character),
            ("ok.test\u{a0}", E::Character),
            ("ok.test\u{85}", E::Character),
            ("ok.test\t", E::Character),
            ("ok.test\\x", E::Character),
            ("ok.test#x", E::Character),
            ("user:pw@ok.test", E::UserInfo),
            ("ok.test@evil.test", E::UserInfo),
            ("[::1", E::Literal),
            ("[::1]x", E::Literal),
            ("[::1]443", E::Literal),
            ("[fe80::1%eth0]:80", E::Literal),
            ("[1.2.3.4]:80", E::Literal),
            ("::1", E::Empty),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        assert_eq!(parse(&"a".repeat(255)).map(|a| a.port), Ok(None));
        assert_eq!(parse(&"a".repeat(256)), Err(E::Long));
        assert_eq!(Authority::parse(b"ok\xff.test"), Err(E::Character));
    }

    proptest! {
        #[test]
        fn what_is_taken_reads_the_same_when_written_again(bytes in any::<Vec<u8>>(), text in "[a-z.:0-9\\[\\]@%]{0,20}") {
            for input in [&bytes[..], text.as_bytes()] {
                if let Ok(first) = Authority::parse(input) {
                    let host = if first.host.contains(':') { format!("[{}]", first.host) } else { first.host.clone() };
                    let again = first.port.map_or(host.clone(), |port| format!("{host}:{port}"));
                    assert_eq!(again.as_bytes(), input);
                    assert_eq!(Authority::parse(again.as_bytes()), Ok(first));
                }
            }
        }
    }
}
