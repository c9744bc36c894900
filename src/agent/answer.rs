//! Reads a server's answer to a readiness request; the bytes are of unknown origin.

use super::Version;
use serde_json::Value;

/// A head that is longer than this is no head.
const HEAD_LIMIT: usize = 16 * 1024;
/// What is read of a body; a readiness answer has some dozens of bytes.
const BODY_LIMIT: usize = 64 * 1024;

/// One HTTP answer, its body cut off at 64 KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The media type in lower case without parameters; empty if none was sent.
    pub media_type: String,
    pub body: Vec<u8>,
}

/// What one answer says about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is the expected server.
    Ready(Version),
    /// It may become ready; why it is not.
    NotYet(String),
    /// It never will.
    Wrong(Wrong),
}

/// Why a server can never be the right one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// It names a version of another major.
    Version(Version),
    /// It does not take this launch's password.
    Refuses,
    /// It answers without a password.
    Open,
}

/// How far the bytes so far make an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Incomplete,
    Whole(Answer),
    Garbage,
}

/// How a body ends.
enum Length {
    Bytes(usize),
    Chunked,
    UntilClosed,
}

impl Answer {
    /// Parses the bytes so far; `closed` says that no more will come.
    pub(super) fn parse(bytes: &[u8], closed: bool) -> Parsed {
        let Some(end) = find(bytes, b"\r\n\r\n") else {
            return if closed || bytes.len() > HEAD_LIMIT {
                Parsed::Garbage
            } else {
                Parsed::Incomplete
            };
        };
        let Some((status, media_type, length)) = parse_head(&bytes[..end]) else {
            return Parsed::Garbage;
        };
        let rest = &bytes[end + 4..];
        let body = match length {
            Length::Bytes(count) if rest.len() >= count => Some(rest[..count].to_vec()),
            Length::Chunked => dechunk(rest),
            Length::UntilClosed if closed => Some(rest.to_vec()),
            Length::Bytes(_) | Length::UntilClosed => None,
        };
        // A page that is too long is as good as a whole one: it is no readiness answer.
        match body.or_else(|| (rest.len() > BODY_LIMIT).then(|| rest.to_vec())) {
            Some(mut body) => {
                body.truncate(BODY_LIMIT);
                Parsed::Whole(Answer {
                    status,
                    media_type,
                    body,
                })
            }
            None if closed => Parsed::Garbage,
            None => Parsed::Incomplete,
        }
    }

    /// Judges the answer to a request with the password. The status alone proves nothing: 1.x answers every unknown
    /// path with 200 and a web page.
    pub fn judge(&self, major: u32) -> Verdict {
        if self.status == 401 {
            return Verdict::Wrong(Wrong::Refuses);
        }
        if self.status != 200 {
            return Verdict::NotYet(format!("it answered {}", self.status));
        }
        if self.media_type != "application/json" {
            return Verdict::NotYet(format!("it answered with {:?} instead of JSON", self.media_type));
        }
        let json: Option<Value> = serde_json::from_slice(&self.body).ok();
        let version = json.as_ref().and_then(|v| v.get("version")).and_then(Value::as_str);
        match version.and_then(|text| Version::first_in(text.as_bytes())) {
            None => Verdict::NotYet("its answer named no version".to_owned()),
            Some(version) if version.major == major => Verdict::Ready(version),
            Some(version) => Verdict::Wrong(Wrong::Version(version)),
        }
    }

    /// Judges the answer to the same request without the password: `ready` only if it was refused.
    pub fn judge_without_password(&self, ready: Version) -> Verdict {
        match self.status {
            401 => Verdict::Ready(ready),
            200..=299 => Verdict::Wrong(Wrong::Open),
            status => Verdict::NotYet(format!("it answered {status} without the password")),
        }
    }
}

fn parse_head(head: &[u8]) -> Option<(u16, String, Length)> {
    let mut lines = head
        .split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let rest = lines.next()?.strip_prefix(b"HTTP/1.")?;
    let status = rest
        .get(2..5)
        .filter(|_| rest[1] == b' ' && matches!(rest.get(5), None | Some(b' ')))?;
    let (mut media_type, mut length) = (String::new(), Length::UntilClosed);
    for line in lines {
        let colon = line.iter().position(|b| *b == b':')?;
        let value = std::str::from_utf8(&line[colon + 1..])
            .ok()?
            .trim()
            .to_ascii_lowercase();
        match line[..colon].to_ascii_lowercase().as_slice() {
            b"content-type" => media_type = value.split(';').next()?.trim().to_owned(),
            b"content-length" => length = Length::Bytes(value.parse().ok()?),
            b"transfer-encoding" if value == "chunked" => length = Length::Chunked,
            _ => {}
        }
    }
    Some((std::str::from_utf8(status).ok()?.parse().ok()?, media_type, length))
}

/// The whole body of a chunked answer, or nothing while it is incomplete or makes no sense.
fn dechunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = find(rest, b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16)
            .ok()
            .filter(|size| *size <= BODY_LIMIT)?;
        if size == 0 {
            return Some(body);
        }
        rest = &rest[end + 2..];
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: Version = Version {
        major: 1,
        minor: 18,
        patch: 33,
    };

    fn whole(text: &str) -> Answer {
        match Answer::parse(text.as_bytes(), true) {
            Parsed::Whole(answer) => answer,
            other => panic!("{text:?} gave {other:?}"),
        }
    }

    fn json(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json;charset=utf-8\r\n\r\n{body}")
    }

    #[test]
    fn only_json_with_a_version_of_the_right_major_is_ready() {
        let not_yet = |reason: &str| Verdict::NotYet(reason.to_owned());
        let other = Version {
            major: 2,
            minor: 0,
            patch: 20,
        };
        let table = [
            (json(r#"{"healthy":true,"version":"1.18.33"}"#), Verdict::Ready(READY)),
            (
                json(r#"{"version":"2.0.20","pid":7}"#),
                Verdict::Wrong(Wrong::Version(other)),
            ),
            (json(r#"{"healthy":true}"#), not_yet("its answer named no version")),
            (json(r#"{"version":1.18}"#), not_yet("its answer named no version")),
            (json("1.18.33"), not_yet("its answer named no version")),
            (json("<html>1.18.33"), not_yet("its answer named no version")),
            (
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>1.18.33</html>".to_owned(),
                not_yet(r#"it answered with "text/html" instead of JSON"#),
            ),
            (
                "HTTP/1.1 200 OK\r\n\r\n{\"version\":\"1.18.33\"}".to_owned(),
                not_yet(r#"it answered with "" instead of JSON"#),
            ),
            (
                "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".to_owned(),
                Verdict::Wrong(Wrong::Refuses),
            ),
            ("HTTP/1.1 404 Not Found\r\n\r\n".to_owned(), not_yet("it answered 404")),
            ("HTTP/1.1 503 x\r\n\r\n".to_owned(), not_yet("it answered 503")),
        ];
        for (text, expected) in table {
            assert_eq!(whole(&text).judge(1), expected, "{text:?}");
        }
    }

    #[test]
    fn a_server_that_answers_without_the_password_is_wrong() {
        let table = [
            (401, Verdict::Ready(READY)),
            (200, Verdict::Wrong(Wrong::Open)),
            (204, Verdict::Wrong(Wrong::Open)),
            (503, Verdict::NotYet("it answered 503 without the password".to_owned())),
            (302, Verdict::NotYet("it answered 302 without the password".to_owned())),
        ];
        for (status, expected) in table {
            let answer = Answer {
                status,
                media_type: String::new(),
                body: Vec::new(),
            };
            assert_eq!(answer.judge_without_password(READY), expected, "{status}");
        }
    }

    #[test]
    fn an_answer_in_pieces_is_complete_only_at_its_end() {
        let bodies = [
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: a/b\r\n\r\nbody",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nContent-Type: A/B\r\n\r\n2\r\nbo\r\n2;x=y\r\ndy\r\n0\r\n\r\n",
        ];
        for text in bodies {
            let bytes = text.as_bytes();
            let end = bytes.len() - if text.contains("Chunked") { 2 } else { 0 };
            for cut in 0..end {
                assert_eq!(
                    Answer::parse(&bytes[..cut], false),
                    Parsed::Incomplete,
                    "{:?}",
                    &text[..cut]
                );
            }
            let expected = Answer {
                status: 200,
                media_type: "a/b".into(),
                body: b"body".to_vec(),
            };
            assert_eq!(Answer::parse(&bytes[..end], false), Parsed::Whole(expected));
        }
    }

    #[test]
    fn what_is_no_answer_is_garbage() {
        let table: &[&[u8]] = &[
            b"",
            b"SSH-2.0-OpenSSH\r\n\r\n",
            b"HTTP/1.1 200",
            b"HTTP/1.1 2000 OK\r\n\r\n",
            b"HTTP/1.1 -20 OK\r\n\r\n",
            b"HTTP/1.1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            b"HTTP/1.1 200 OK\r\nX: \xff\r\n\r\n",
        ];
        for bytes in table {
            assert_eq!(Answer::parse(bytes, true), Parsed::Garbage, "{}", bytes.escape_ascii());
        }
        assert_eq!(Answer::parse(&[b'a'; HEAD_LIMIT + 1], false), Parsed::Garbage);
    }

    #[test]
    fn a_long_body_is_cut_off_and_not_awaited() {
        let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_vec();
        bytes.extend(vec![b'x'; BODY_LIMIT + 1]);
        let Parsed::Whole(answer) = Answer::parse(&bytes, false) else {
            panic!("more was awaited")
        };
        assert_eq!(answer.body.len(), BODY_LIMIT);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>, closed: bool) {
            let _ = Answer::parse(&bytes, closed);
            let _ = Answer::parse(&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat(), closed);
        }
    }
}
