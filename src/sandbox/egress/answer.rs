//! What the broker itself says to a client: a status and one line of plain text. An agent reads it, so it says what to do.

use super::head::Malformed;
use crate::base::Port;
use std::fmt::Write as _;

/// One answer of the broker's own; the connection closes after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    status: u16,
    phrase: &'static str,
    /// One line of printable ASCII.
    text: String,
}

impl Answer {
    fn new(status: u16, phrase: &'static str, text: &str) -> Answer {
        Answer {
            status,
            phrase,
            text: format!("pinfold: {}\n", escaped(text)),
        }
    }
    /// For a request that names no host.
    pub fn page() -> Answer {
        let text = "this is Pinfold's broker, not a web server; programs in this sandbox reach the network through it \
             as their HTTP proxy (CONNECT host:port, or http://host/path)";
        Answer::new(400, "Bad Request", text)
    }
    /// For bytes that cannot be read in one way only.
    pub fn malformed(why: Malformed) -> Answer {
        let (status, phrase) = match why {
            Malformed::Long => (431, "Request Header Fields Too Large"),
            _ => (400, "Bad Request"),
        };
        Answer::new(status, phrase, &format!("the request was not taken: {why}"))
    }
    /// For a head that did not come in time.
    pub fn slow() -> Answer {
        Answer::new(408, "Request Timeout", "the request's head did not come in time")
    }
    /// For a name and port that nothing grants.
    pub fn refused(host: &str, port: Port, reason: &str) -> Answer {
        let place = place(host, port);
        let grant = if matches!(port.get(), 80 | 443) {
            host.to_owned()
        } else {
            place.clone()
        };
        let text = format!(
            "{place} is refused: {reason}; to grant it: --allow-domain {grant}, or network.allow_domain in the profile"
        );
        Answer::new(403, "Refused by Pinfold", &text)
    }
    /// For a granted name all of whose addresses are of a kind that is never dialled.
    pub fn refused_address(host: &str, port: Port, reason: &str) -> Answer {
        let place = place(host, port);
        let text = format!(
            "{place} is refused: {reason}; --allow-domain {host} does not reach such addresses, a service of the host \
             is granted with --service NAME=ADDRESS:{port}, or pinfold.services in the profile"
        );
        Answer::new(403, "Refused by Pinfold", &text)
    }
    /// For a granted name that has no address, or a host that does not answer, or answers in no clear way.
    pub fn unreachable(host: &str, port: Port, why: &str) -> Answer {
        Answer::new(
            502,
            "Bad Gateway",
            &format!("{} is granted but not reached: {why}", place(host, port)),
        )
    }
    /// For a granted host that did not answer in time.
    pub fn late(host: &str, port: Port, why: &str) -> Answer {
        Answer::new(
            504,
            "Gateway Timeout",
            &format!("{} is granted but not reached: {why}", place(host, port)),
        )
    }
    /// For one connection more than are kept.
    pub fn crowded() -> Answer {
        Answer::new(503, "Service Unavailable", "too many connections at once")
    }
    /// The whole response; to `HEAD` without its body.
    pub fn bytes(&self, method: &[u8]) -> Vec<u8> {
        let Answer { status, phrase, text } = self;
        let length = text.len();
        let mut out = format!(
            "HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        if method != b"HEAD" {
            out.push_str(text);
        }
        out.into_bytes()
    }
}

/// `host:port`, with brackets around an IPv6 literal.
fn place(host: &str, port: Port) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Printable ASCII stays; everything else becomes visible, so that no text can move a cursor or hide.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            ' '..='~' => out.push(c),
            _ => _ = write!(out, "{}", c.escape_unicode()),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::Answer;
    use crate::base::Port;

    #[test]
    fn says_what_was_refused_and_how_to_grant_it() {
        let text = |host, port| Answer::refused(host, Port::new(port).unwrap(), "no rule names it").text;
        assert_eq!(
            text("ok.test", 443),
            "pinfold: ok.test:443 is refused: no rule names it; to grant it: --allow-domain ok.test, or \
             network.allow_domain in the profile\n"
        );
        assert!(text("ok.test", 22).contains("--allow-domain ok.test:22,"));
        assert!(text("::1", 22).contains("[::1]:22 is refused"));
    }

    #[test]
    fn stays_one_printable_line_whatever_the_name_holds() {
        let answer = Answer::refused("a\u{202e}b\u{9b}c\r\nX: y", Port::new(1).unwrap(), "no\n");
        let text = answer.text.strip_suffix('\n').unwrap();
        assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b)), "{text}");
        assert!(text.contains("a\\u{202e}b"));
    }

    #[test]
    fn has_no_body_for_head() {
        let answer = Answer::page();
        assert!(answer.bytes(b"HEAD").ends_with(b"\r\n\r\n"));
        assert!(answer.bytes(b"GET").ends_with(answer.text.as_bytes()));
    }
}
