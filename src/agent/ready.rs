//! Asks a server until it is ready, and makes sure that it asks for the password.

use super::Version;
use super::answer::{Answer, Parsed, Verdict, Wrong};
use crate::base::{Explain, Kind, Port, Secret};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How to ask one server.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Paths to ask in turn; the next one after an answer 404.
    pub paths: &'static [&'static str],
    /// The major version that was started.
    pub major: u32,
    /// User name of HTTP Basic.
    pub user: &'static str,
    /// The server's port, for the Host line.
    pub port: Port,
    pub password: Secret,
}

/// Whether a request carries the password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Password {
    Sent,
    Withheld,
}

/// How long to wait.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For everything.
    pub total: Duration,
    /// For one request and its answer.
    pub each: Duration,
    /// Between two tries.
    pub pause: Duration,
}

impl Default for Patience {
    /// A minute: a cold start of OpenCode took 15 seconds on a busy machine. A second for each try: a request that
    /// arrives in the first moments of its socket is accepted and never answered.
    fn default() -> Patience {
        Patience {
            total: Duration::from_secs(60),
            each: Duration::from_secs(1),
            pause: Duration::from_millis(100),
        }
    }
}

/// A server that answered as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// As the running server says.
    pub version: Version,
    /// From the call to the answer.
    pub after: Duration,
}

/// Why a server did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    #[error("the agent's server ended before it was ready: {how} (last: {last})")]
    Exited { how: String, last: String },
    #[error("the agent's server was not ready after {} seconds: {last}", after.as_secs())]
    NeverAnswered { after: Duration, last: String },
    #[error("the agent's server answers without the password")]
    Open,
    #[error("the agent's server does not take the password of this launch")]
    Refuses,
    #[error("the agent's server says version {found}, but {expected}.x was started")]
    WrongVersion { expected: u32, found: Version },
}

impl Explain for NotReady {
    fn kind(&self) -> Kind {
        match self {
            NotReady::WrongVersion { .. } => Kind::Target,
            _ => Kind::Startup,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            NotReady::Exited { .. } | NotReady::NeverAnswered { .. } => {
                "the server's log says more: `pinfold info` names it".to_owned()
            }
            NotReady::Open => {
                "refused: any process that reaches its port could run tools; is another server there?".to_owned()
            }
            NotReady::Refuses => {
                "is another server on that port, or is a user name set in the agent's configuration?".to_owned()
            }
            NotReady::WrongVersion { .. } => "reinstall the agent so that program and package agree".to_owned(),
        })
    }
}

impl Probe {
    /// The bytes of one request.
    pub fn request(&self, path: &str, password: Password) -> Vec<u8> {
        let authorization = match password {
            Password::Sent => {
                let pair = format!("{}:{}", self.user, self.password.reveal());
                format!("Authorization: Basic {}\r\n", base64(pair.as_bytes()))
            }
            Password::Withheld => String::new(),
        };
        let port = self.port;
        format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{authorization}Accept: application/json\r\nConnection: close\r\n\r\n"
        )
        .into_bytes()
    }
}

/// Asks until the server is ready, has ended, is seen to be the wrong one, or patience is at its end.
///
/// `connect` makes a new connection for each request; `exited` tells how the server ended, once it has.
pub fn wait_ready(
    probe: &Probe,
    patience: Patience,
    connect: impl Fn() -> io::Result<TcpStream>,
    exited: impl Fn() -> Option<String>,
) -> Result<Ready, NotReady> {
    let start = Instant::now();
    let mut last = "it was never asked".to_owned();
    loop {
        if let Some(how) = exited() {
            return Err(NotReady::Exited { how, last });
        }
        let left = patience.total.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(NotReady::NeverAnswered {
                after: patience.total,
                last,
            });
        }
        match attempt(probe, patience.each.min(left), &connect) {
            Verdict::Ready(version) => {
                return Ok(Ready {
                    version,
                    after: start.elapsed(),
                });
            }
            Verdict::NotYet(reason) => last = reason,
            Verdict::Wrong(Wrong::Version(found)) => {
                return Err(NotReady::WrongVersion {
                    expected: probe.major,
                    found,
                });
            }
            Verdict::Wrong(Wrong::Refuses) => return Err(NotReady::Refuses),
            Verdict::Wrong(Wrong::Open) => return Err(NotReady::Open),
        }
        std::thread::sleep(patience.pause.min(patience.total.saturating_sub(start.elapsed())));
    }
}

/// Asks once with the password, and where that is answered, once without.
fn attempt(probe: &Probe, limit: Duration, connect: &impl Fn() -> io::Result<TcpStream>) -> Verdict {
    let ask = |path: &str, password| exchange(&probe.request(path, password), limit, connect);
    let mut verdict = Verdict::NotYet("it has no path to ask".to_owned());
    for path in probe.paths {
        let answer = match ask(path, Password::Sent) {
            Ok(answer) => answer,
            Err(error) => return Verdict::NotYet(reason(&error)),
        };
        verdict = answer.judge(probe.major);
        if let Verdict::Ready(version) = verdict {
            return match ask(path, Password::Withheld) {
                Ok(answer) => answer.judge_without_password(version),
                Err(error) => Verdict::NotYet(format!("without the password, {}", reason(&error))),
            };
        }
        if answer.status != 404 {
            break;
        }
    }
    verdict
}

/// One request and its answer on a connection of their own, within `limit` in all.
fn exchange(request: &[u8], limit: Duration, connect: &impl Fn() -> io::Result<TcpStream>) -> io::Result<Answer> {
    let end = Instant::now() + limit;
    let left = || match end.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(left),
    };
    let mut stream = connect()?;
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(request)?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        // A server that sends a byte now and then must not hold us for longer than one that sends none.
        stream.set_read_timeout(Some(left()?))?;
        let count = match stream.read(&mut piece) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes.extend_from_slice(&piece[..count]);
        match Answer::parse(&bytes, count == 0) {
            Parsed::Whole(answer) => return Ok(answer),
            Parsed::Garbage => return Err(io::Error::from(io::ErrorKind::InvalidData)),
            Parsed::Incomplete => {}
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it took a request and did not answer it".to_owned(),
        io::ErrorKind::ConnectionRefused => "nothing listens yet".to_owned(),
        io::ErrorKind::InvalidData => "what it answered is not HTTP".to_owned(),
        _ => format!("the connection failed: {error}"),
    }
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, i| {
            bits << 8 | u32::from(group.get(i).copied().unwrap_or(0))
        });
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests;
