//! A request to the broker, read in one way or refused.

use super::authority::Authority;
use super::body::{Body, Chunks};
use super::head::{self, Fields, Malformed, Version};
use crate::base::Port;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'a> {
    /// `CONNECT host:port`: bytes both ways.
    Tunnel { host: String, port: Port },
    /// `http://host[:port]/path`: one request; the path as written, perhaps empty or beginning with `?`.
    Absolute { host: String, port: Port, path: &'a [u8] },
    /// `/path` or `*`: meant for a server, not for a broker.
    Origin,
}

/// One request's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    pub method: &'a [u8],
    pub target: Target<'a>,
    pub version: Version,
    pub fields: Fields<'a>,
    /// What follows the head.
    pub body: Body,
    /// Whether the client wants to send another request after this one.
    pub persists: bool,
}

impl<'a> Request<'a> {
    /// Reads a whole head, its empty line included.
    pub fn parse(bytes: &'a [u8]) -> Result<Request<'a>, Malformed> {
        let (line, fields) = head::split(bytes)?;
        let words: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
        let &[method, target, version] = words.as_slice() else {
            return Err(Malformed::FirstLine);
        };
        let visible = target.iter().all(|b| *b > b' ' && *b != 0x7f);
        if !head::is_token(method) || target.is_empty() || !visible {
            return Err(Malformed::FirstLine);
        }
        let version = Version::parse(version)?;
        fields.check_nominated()?;
        let body = body(&fields, version)?;
        let target = parse_target(method, target)?;
        check_host(&target, fields.one("host")?)?;
        if matches!(target, Target::Tunnel { .. }) && !body.is_done() {
            return Err(Malformed::ConnectBody);
        }
        let closes = fields.lists("connection", "close") || fields.lists("proxy-connection", "close");
        let persists = version == Version::Http11 && !closes;
        Ok(Request {
            method,
            target,
            version,
            fields,
            body,
            persists,
        })
    }
}

fn body(fields: &Fields<'_>, version: Version) -> Result<Body, Malformed> {
    if fields.is_chunked(version)? {
        return Ok(Body::Chunked(Chunks::default()));
    }
    Ok(fields.length()?.map_or(Body::EMPTY, Body::Length))
}

fn parse_target<'a>(method: &[u8], target: &'a [u8]) -> Result<Target<'a>, Malformed> {
    if target.contains(&b'#') {
        return Err(Malformed::Fragment);
    }
    if method == b"CONNECT" {
        let Authority { host, port } = Authority::parse(target)?;
        return Ok(Target::Tunnel {
            host,
            port: port.ok_or(Malformed::NoPort)?,
        });
    }
    if target.starts_with(b"/") || target == b"*" {
        return Ok(Target::Origin);
    }
    let colon = target.windows(3).position(|w| w == b"://").ok_or(Malformed::Target)?;
    if !target[..colon].eq_ignore_ascii_case(b"http") {
        return Err(Malformed::Scheme);
    }
    let rest = &target[colon + 3..];
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    let Authority { host, port } = Authority::parse(&rest[..end])?;
    let port = port.or_else(|| Port::new(80)).ok_or(Malformed::NoPort)?;
    Ok(Target::Absolute {
        host,
        port,
        path: &rest[end..],
    })
}

/// A `Host` beside an authority must say the same. `CONNECT` clients often leave the port out of it.
fn check_host(target: &Target<'_>, value: Option<&[u8]>) -> Result<(), Malformed> {
    let (host, port, default) = match target {
        Target::Tunnel { host, port } => (host, *port, Some(*port)),
        Target::Absolute { host, port, .. } => (host, *port, Port::new(80)),
        Target::Origin => return Ok(()),
    };
    let Some(value) = value else { return Ok(()) };
    let said = Authority::parse(value).map_err(|_| Malformed::Host)?;
    let meant = Authority {
        host: host.clone(),
        port: Some(port),
    };
    let same = said.same_host(&meant) && said.port.or(default) == Some(port);
    if same { Ok(()) } else { Err(Malformed::Host) }
}

#[cfg(test)]
mod tests;
