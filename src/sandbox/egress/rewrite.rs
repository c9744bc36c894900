//! Heads as they are sent on: what concerns one hop only is taken out.

use super::head::{Field, Fields};
use super::request::{Request, Target};
use super::response::Response;
use crate::base::Port;

/// Fields that speak to the next hop only (RFC 9110, 7.6.1); `proxy-*` and what `Connection` names go with them.
const HOP: [&str; 6] = ["connection", "keep-alive", "te", "upgrade", "http2-settings", "host"];

/// The request in origin form for the server. `Host` is made from the name and port that were decided and dialled.
pub fn to_server(request: &Request<'_>, name: &str, port: Port) -> Vec<u8> {
    let path = match &request.target {
        Target::Absolute { path, .. } => *path,
        Target::Tunnel { .. } | Target::Origin => b"",
    };
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(request.method);
    out.push(b' ');
    match path.first() {
        Some(b'/') => {}
        None if request.method == b"OPTIONS" => out.push(b'*'),
        _ => out.push(b'/'),
    }
    out.extend_from_slice(path);
    let host = host_field(name, port);
    out.extend_from_slice(format!(" {}\r\nHost: {host}\r\n", request.version.text()).as_bytes());
    push_fields(&mut out, &request.fields);
    // One connection for each request: a kept one could be answered by whoever was decided before.
    out.extend_from_slice(b"Connection: close\r\n\r\n");
    out
}

/// What the client is told about its connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    KeepAlive,
    Close,
}

/// The response for the client, with its version and its persistence ours.
pub fn to_client(response: &Response<'_>, then: Then) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(format!("HTTP/1.1 {} ", response.status).as_bytes());
    out.extend_from_slice(response.reason);
    out.extend_from_slice(b"\r\n");
    push_fields(&mut out, &response.fields);
    if !response.is_interim() {
        let word = match then {
            Then::KeepAlive => "keep-alive",
            Then::Close => "close",
        };
        out.extend_from_slice(format!("Connection: {word}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// `name`, `name:port` or `[v6]:port`; 80 is left out.
fn host_field(name: &str, port: Port) -> String {
    let host = match name.contains(':') && !name.starts_with('[') {
        true => format!("[{name}]"),
        false => name.to_owned(),
    };
    if port.get() == 80 {
        host
    } else {
        format!("{host}:{port}")
    }
}

fn push_fields(out: &mut Vec<u8>, fields: &Fields<'_>) {
    for field in fields.0.iter().filter(|field| !ends_here(field, fields)) {
        out.extend_from_slice(field.name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(field.value);
        out.extend_from_slice(b"\r\n");
    }
}

fn ends_here(field: &Field<'_>, fields: &Fields<'_>) -> bool {
    let name = String::from_utf8_lossy(field.name).to_ascii_lowercase();
    HOP.contains(&name.as_str()) || name.starts_with("proxy-") || fields.lists("connection", &name)
}
