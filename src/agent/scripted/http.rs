//! As much HTTP/1.1 as agents need of a model server: one request for each connection, bounded in size.

use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Bytes of a request's head.
const HEAD_LIMIT: usize = 64 * 1024;
/// Bytes of a request's body; a long conversation has some hundred kilobytes.
const BODY_LIMIT: usize = 16 * 1024 * 1024;

/// One request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub method: String,
    /// Without scheme, host and query: proxies may pass on the absolute form.
    pub path: String,
    pub body: Vec<u8>,
}

/// A request that is answered with an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: u16,
    pub reason: String,
}

/// Reads one request; the inner error is for the one who asks, the outer one means that it is gone.
pub(super) async fn read_request(stream: &mut TcpStream) -> io::Result<Result<Request, Refusal>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() > HEAD_LIMIT {
            return Ok(Err(refusal(431, "the head is longer than 64 KiB")));
        }
        read_more(stream, &mut bytes).await?;
    };
    let (method, path, length) = match parse_head(&bytes[..end]) {
        Ok(head) => head,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        read_more(stream, &mut body).await?;
    }
    body.truncate(length);
    Ok(Ok(Request { method, path, body }))
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(bytes).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Method, path and length of the body.
fn parse_head(head: &[u8]) -> Result<(String, String, usize), Refusal> {
    let malformed = || refusal(400, "the head is not HTTP/1");
    let head = std::str::from_utf8(head).map_err(|_| malformed())?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (first.next(), first.next(), first.next(), first.next())
    else {
        return Err(malformed());
    };
    let mut length = 0;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(malformed)?;
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(|_| malformed())?,
            "transfer-encoding" => return Err(refusal(411, "the body must come with its length")),
            _ => {}
        }
    }
    if length > BODY_LIMIT {
        return Err(refusal(413, "the body is longer than 16 MiB"));
    }
    Ok((method.to_owned(), path_of(target).to_owned(), length))
}

fn path_of(target: &str) -> &str {
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => target,
    };
    path.split('?').next().unwrap_or_default()
}

fn refusal(status: u16, reason: &str) -> Refusal {
    Refusal {
        status,
        reason: reason.to_owned(),
    }
}

/// Answers with one JSON object.
pub(super) async fn respond(stream: &mut TcpStream, status: u16, json: &Value) -> io::Result<()> {
    let body = json.to_string();
    let head = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        if status == 200 { "OK" } else { "Refused" },
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await?;
    stream.shutdown().await
}

/// Answers with an error, and takes in what is still on its way: closing on unread bytes would reset the connection
/// and lose the answer.
pub(super) async fn refuse(stream: &mut TcpStream, refusal: &Refusal) -> io::Result<()> {
    respond(stream, refusal.status, &json!({"error": {"message": refusal.reason}})).await?;
    let mut rest = [0; 4096];
    let drain = async { while matches!(stream.read(&mut rest).await, Ok(1..)) {} };
    // Who goes on sending for longer may lose the answer.
    let _ = tokio::time::timeout(Duration::from_secs(2), drain).await;
    Ok(())
}

/// Answers with a stream of server-sent events, closed by `[DONE]`; chunked, so that a cut is seen as one.
pub(super) async fn respond_with_events(stream: &mut TcpStream, events: &[Value]) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\
                Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let texts = events.iter().map(Value::to_string).chain(["[DONE]".to_owned()]);
    for text in texts {
        let event = format!("data: {text}\n\n");
        stream
            .write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
            .await?;
        stream.flush().await?;
    }
    stream.write_all(b"0\r\n\r\n").await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_heads_in_both_forms_of_the_target() {
        let table = [
            ("GET /v1/models HTTP/1.1\r\nHost: x", ("GET", "/v1/models", 0)),
            ("POST /v1/x?y=z HTTP/1.0\r\ncontent-LENGTH:  12 ", ("POST", "/v1/x", 12)),
            ("POST http://model.pinfold/v1/x HTTP/1.1", ("POST", "/v1/x", 0)),
            ("GET http://model.pinfold HTTP/1.1", ("GET", "/", 0)),
        ];
        for (head, (method, path, length)) in table {
            assert_eq!(
                parse_head(head.as_bytes()),
                Ok((method.into(), path.into(), length)),
                "{head:?}"
            );
        }
    }

    #[test]
    fn refuses_heads_that_it_cannot_take() {
        let table: &[(&[u8], u16)] = &[
            (b"", 400),
            (b"GET /", 400),
            (b"GET / x HTTP/1.1", 400),
            (b"GET / HTTP/2", 400),
            (b"GET / HTTP/1.1\r\nno colon", 400),
            (b"GET / HTTP/1.1\r\nContent-Length: -1", 400),
            (b"GET / HTTP/1.1\r\nX: \xff", 400),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked", 411),
            (b"POST / HTTP/1.1\r\nContent-Length: 16777217", 413),
        ];
        for (head, status) in table {
            assert_eq!(parse_head(head).unwrap_err().status, *status, "{}", head.escape_ascii());
        }
    }
}
