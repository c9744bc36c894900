//! One plain-HTTP request and its response, each to its own end, so that the next request on the same connection can
//! be told from this one's body.

use super::answer::Answer;
use super::body::Body;
use super::head::{Malformed, Version};
use super::inlet::{Inlet, Short};
use super::join::{self, Leak, Tally};
use super::request::Request;
use super::response::Response;
use super::rewrite::{self, Then};
use super::route::Far;
use crate::base::Port;
use std::sync::atomic::AtomicU64;
use tokio::io::AsyncWriteExt as _;
use tokio::net::tcp::WriteHalf;

/// The longest head of a response, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;

/// The most interim responses (100, 103) before the real one.
const MOST_INTERIM: usize = 16;

/// What the client's connection is good for afterwards.
pub enum After {
    /// The next request.
    Next,
    /// Nothing more; all was said.
    Close,
    /// This answer, and nothing more.
    Say(Answer),
    /// A reset: the response was cut short.
    Torn,
}

/// Sends the request on and the response back.
pub async fn run(
    mut far: Far<'_>,
    request: &Request<'_>,
    (host, port): (&str, Port),
    from: &mut Inlet<'_>,
    to: &mut WriteHalf<'_>,
) -> After {
    let mut upload = Upload {
        from,
        body: request.body.clone(),
    };
    let mut download = Download {
        to,
        request,
        begun: false,
    };
    let result = {
        let (far_from, mut far_to) = far.stream.split();
        let head = rewrite::to_server(request, &far.name, port);
        let tally = &far.account.tally;
        tokio::select! {
            biased;
            fault = upload.run(head, &mut far_to, tally) => Err(fault),
            ended = download.run(Inlet::new(far_from), tally) => ended,
        }
    };
    match result {
        Ok(Ended::Framed) if request.persists && upload.body.is_done() => After::Next,
        Ok(_) => After::Close,
        Err(fault) => {
            far.account.failed(&fault);
            join::break_off(&far.stream);
            match fault {
                _ if download.begun => After::Torn,
                Fault::Client(Leak::Malformed(why)) => After::Say(Answer::malformed(why)),
                Fault::Client(_) => After::Torn,
                Fault::Far(_) | Fault::Answer(_) => After::Say(Answer::unreachable(host, port, &fault.to_string())),
            }
        }
    }
}

/// Why an exchange was given up.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("client: {0}")]
    Client(Leak),
    #[error("{0}")]
    Far(&'static str),
    #[error("its answer is not clear: {0}")]
    Answer(#[from] Malformed),
}

/// The way there.
struct Upload<'s, 'a> {
    from: &'s mut Inlet<'a>,
    body: Body,
}

impl Upload<'_, '_> {
    /// Sends head and body, then watches the client. Returns only when the exchange must be given up; whether the
    /// body was taken whole is in `body`.
    async fn run(&mut self, head: Vec<u8>, to: &mut WriteHalf<'_>, tally: &Tally) -> Fault {
        match self.send(head, to, &tally.sent).await {
            Ok(()) => {}
            // The far side may have answered before it stopped reading: its answer counts.
            Err(Leak::Sink(_)) => return std::future::pending().await,
            Err(leak) => return Fault::Client(leak),
        }
        if self.from.held.is_empty() {
            match self.from.more().await {
                // The far side sees what it would see without a broker between: that nothing more comes, for example
                // because the client has given up. Whether that ends its answer is its own affair.
                Ok(0) => _ = to.shutdown().await,
                Ok(_) => {}
                Err(error) => return Fault::Client(Leak::Source(error)),
            }
        }
        std::future::pending().await
    }

    async fn send(&mut self, mut head: Vec<u8>, to: &WriteHalf<'_>, count: &AtomicU64) -> Result<(), Leak> {
        // What is here already goes out with the head, not in a segment of its own.
        let used = self.body.take(&self.from.held)?;
        head.extend_from_slice(&self.from.take(used));
        join::write(to, &head, count).await?;
        drop(head);
        if self.body.is_done() {
            return Ok(());
        }
        join::pour(self.from, to, &mut self.body, count).await
    }
}

/// How a response ended.
enum Ended {
    /// By its own length.
    Framed,
    /// By the far side's close.
    AtClose,
}

/// The way back.
struct Download<'s, 'a> {
    to: &'s WriteHalf<'a>,
    request: &'s Request<'s>,
    /// Whether the client has seen a part of the response.
    begun: bool,
}

impl Download<'_, '_> {
    async fn run(&mut self, mut from: Inlet<'_>, tally: &Tally) -> Result<Ended, Fault> {
        let head = self.final_head(&mut from, tally).await?;
        let mut response = Response::parse(&head, self.request.method)?;
        let ended = if response.body == Body::Rest {
            Ended::AtClose
        } else {
            Ended::Framed
        };
        let then = match ended {
            Ended::Framed if self.request.persists => Then::KeepAlive,
            _ => Then::Close,
        };
        let mut out = rewrite::to_client(&response, then);
        let used = response.body.take(&from.held)?;
        out.extend_from_slice(&from.take(used));
        self.begun = true;
        join::write(self.to, &out, &tally.received)
            .await
            .map_err(Fault::Client)?;
        drop(out);
        match join::pour(&mut from, self.to, &mut response.body, &tally.received).await {
            Ok(()) => Ok(ended),
            Err(Leak::Source(_)) => Err(Fault::Far("it broke off within its answer")),
            Err(Leak::Malformed(why)) => Err(Fault::Answer(why)),
            Err(leak) => Err(Fault::Client(leak)),
        }
    }

    /// The head of the response itself; interim ones are passed to clients that know them.
    async fn final_head(&mut self, from: &mut Inlet<'_>, tally: &Tally) -> Result<Vec<u8>, Fault> {
        for _ in 0..MOST_INTERIM {
            let head = match from.head(LONGEST_HEAD).await {
                Ok(head) => head,
                Err(Short::Malformed(why)) => return Err(Fault::Answer(why)),
                Err(Short::Closed | Short::Broken) => return Err(Fault::Far("it closed without an answer")),
            };
            let response = Response::parse(&head, self.request.method)?;
            if response.status == 101 {
                return Err(Fault::Answer(Malformed::Switch));
            }
            if !response.is_interim() {
                return Ok(head);
            }
            if self.request.version == Version::Http11 {
                let out = rewrite::to_client(&response, Then::KeepAlive);
                join::write(self.to, &out, &tally.received)
                    .await
                    .map_err(Fault::Client)?;
            }
        }
        Err(Fault::Far("it sent too many interim answers"))
    }
}
