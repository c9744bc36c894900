//! A response from the far side, as far as the broker must understand it to find its end.

use super::body::{Body, Chunks};
use super::head::{self, Fields, Malformed, Version};

/// One response's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response<'a> {
    /// 100 to 599.
    pub status: u16,
    pub reason: &'a [u8],
    pub fields: Fields<'a>,
    /// What follows the head.
    pub body: Body,
}

impl<'a> Response<'a> {
    /// Reads a whole head, its empty line included, as an answer to a request with this method.
    pub fn parse(bytes: &'a [u8], method: &[u8]) -> Result<Response<'a>, Malformed> {
        let (line, fields) = head::split(bytes)?;
        let (version, rest) = line.split_at_checked(8).ok_or(Malformed::NotHttp)?;
        let version = Version::parse(version)?;
        let (status, reason) = rest.split_at_checked(4).ok_or(Malformed::FirstLine)?;
        let status = parse_status(status)?;
        let reason = match reason.split_first() {
            None => reason,
            Some((b' ', text)) if text.iter().all(|b| head::is_text(*b)) => text,
            Some(_) => return Err(Malformed::FirstLine),
        };
        fields.check_nominated()?;
        let body = body(&fields, version, status, method)?;
        Ok(Response {
            status,
            reason,
            fields,
            body,
        })
    }
    /// Whether another head follows for the same request.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }
}

fn parse_status(bytes: &[u8]) -> Result<u16, Malformed> {
    let digits = bytes
        .strip_prefix(b" ")
        .filter(|d| d.iter().all(u8::is_ascii_digit))
        .ok_or(Malformed::FirstLine)?;
    let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
    number.filter(|n| (100..600).contains(n)).ok_or(Malformed::FirstLine)
}

fn body(fields: &Fields<'_>, version: Version, status: u16, method: &[u8]) -> Result<Body, Malformed> {
    let chunked = fields.is_chunked(version)?;
    let length = fields.length()?;
    if method == b"HEAD" || status < 200 || status == 204 || status == 304 {
        return Ok(Body::EMPTY);
    }
    Ok(match length {
        _ if chunked => Body::Chunked(Chunks::default()),
        Some(length) => Body::Length(length),
        None => Body::Rest,
    })
}

#[cfg(test)]
mod tests {
    use super::Response;
    use crate::sandbox::egress::body::{Body, Chunks};
    use crate::sandbox::egress::head::Malformed;
    use proptest::prelude::{any, proptest};

    fn read(head: &str, method: &str) -> Result<(u16, Body), Malformed> {
        Response::parse(head.as_bytes(), method.as_bytes()).map(|r| (r.status, r.body))
    }

    #[test]
    fn finds_how_the_body_ends() {
        for (head, method, wanted) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
                "GET",
                (200, Body::Length(3)),
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
                "HEAD",
                (200, Body::EMPTY),
            ),
            (
                "HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n",
                "GET",
                (200, Body::Chunked(Chunks::default())),
            ),
            ("HTTP/1.0 200 OK\r\n\r\n", "GET", (200, Body::Rest)),
            ("HTTP/1.1 304 \r\nContent-Length: 3\r\n\r\n", "GET", (304, Body::EMPTY)),
            ("HTTP/1.1 204 No Content\r\n\r\n", "GET", (204, Body::EMPTY)),
            ("HTTP/1.1 100 Continue\r\n\r\n", "POST", (100, Body::EMPTY)),
        ] {
            assert_eq!(read(head, method), Ok(wanted), "{head:?}");
        }
    }

    #[test]
    fn refuses_answers_with_two_ends() {
        for (head, error) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
                Malformed::Twice,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\n", Malformed::Length),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
                Malformed::LengthAndCoding,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                Malformed::Coding,
            ),
            (
                "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                Malformed::Coding,
            ),
            (
                "HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 3\r\n\r\n",
                Malformed::Nominated,
            ),
            ("HTTP/1.1 099 OK\r\n\r\n", Malformed::FirstLine),
            ("HTTP/1.1 2000 OK\r\n\r\n", Malformed::FirstLine),
            ("HTTP/1.1  200 OK\r\n\r\n", Malformed::FirstLine),
            ("HTTP/2.0 200 OK\r\n\r\n", Malformed::Version),
            ("ICY 200 OK\r\n\r\n", Malformed::Version),
        ] {
            assert_eq!(read(head, "GET"), Err(error), "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in any::<Vec<u8>>(), line in "HTTP/1.[01] ?[0-9]{0,4} ?[a-z]{0,3}") {
            let _ = Response::parse(&bytes, b"GET");
            let _ = Response::parse(format!("{line}\r\n\r\n").as_bytes(), b"GET");
        }
    }
}
