//! One client's connection: request after request, each decided on the very authority that is dialled for it.

use super::answer::Answer;
use super::broker::{Broker, LONGEST_HEAD};
use super::exchange::{self, After};
use super::head::Malformed;
use super::inlet::{Inlet, Short};
use super::join::{self, Tally};
use super::request::{Request, Target};
use super::route::{self, Far};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::WriteHalf;
use tokio::time::timeout;

/// How a connection ends.
enum End {
    /// Nothing is owed.
    Plain,
    /// With a last answer.
    Said(Vec<u8>),
    /// In the middle of something: by reset, so that it does not look complete.
    Torn,
}

/// Serves one client until it or the broker closes.
pub async fn attend(broker: &Broker, mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (from, mut to) = stream.split();
    let mut from = Inlet::new(from);
    let last = match converse(broker, &mut from, &mut to).await {
        End::Plain => Vec::new(),
        End::Said(answer) => answer,
        End::Torn => return join::break_off(&stream),
    };
    let _ = timeout(broker.limits.farewell, part(&mut from, &mut to, &last)).await;
}

/// Tells one client why it is not served.
pub async fn dismiss(broker: &Broker, mut stream: TcpStream, answer: &Answer) {
    let (from, mut to) = stream.split();
    let _ = timeout(
        broker.limits.farewell,
        part(&mut Inlet::new(from), &mut to, &answer.bytes(b"")),
    )
    .await;
}

/// Says the last word, then reads what the client still sends: closing on unread bytes would reset the connection and
/// take the answer with it.
async fn part(from: &mut Inlet<'_>, to: &mut WriteHalf<'_>, last: &[u8]) {
    if to.write_all(last).await.is_err() || to.shutdown().await.is_err() {
        return;
    }
    while matches!(from.more().await, Ok(1..)) {
        from.held.clear();
    }
}

async fn converse<'a>(broker: &Broker, from: &mut Inlet<'a>, to: &mut WriteHalf<'a>) -> End {
    let mut first = true;
    loop {
        let head = match next_head(broker, from, first).await {
            Ok(head) => head,
            Err(end) => return end,
        };
        first = false;
        let request = match Request::parse(&head) {
            Ok(request) => request,
            Err(why) => return malformed(broker, why),
        };
        let (host, port) = match &request.target {
            Target::Tunnel { host, port } | Target::Absolute { host, port, .. } => (host, *port),
            Target::Origin => {
                broker.refuse(broker.line(), "a request that names no host");
                return End::Said(Answer::page().bytes(request.method));
            }
        };
        let far = match route::open(broker, host, port).await {
            Ok(far) => far,
            Err(answer) => return End::Said(answer.bytes(request.method)),
        };
        if let Target::Tunnel { .. } = request.target {
            return tunnel(far, from, to).await;
        }
        match exchange::run(far, &request, (host, port), from, to).await {
            After::Next => {}
            After::Close => return End::Plain,
            After::Say(answer) => return End::Said(answer.bytes(request.method)),
            After::Torn => return End::Torn,
        }
    }
}

/// Waits for a request: patiently for its first byte, briefly for the rest.
async fn next_head(broker: &Broker, from: &mut Inlet<'_>, first: bool) -> Result<Vec<u8>, End> {
    if !first && from.held.is_empty() {
        match timeout(broker.limits.idle, from.more()).await {
            Ok(Ok(1..)) => {}
            Ok(Err(_)) => return Err(End::Torn),
            Ok(Ok(_)) | Err(_) => return Err(End::Plain),
        }
    }
    match timeout(broker.limits.head, from.head(LONGEST_HEAD)).await {
        Ok(Ok(head)) => Ok(head),
        Ok(Err(Short::Closed)) => Err(End::Plain),
        Ok(Err(Short::Broken)) => Err(End::Torn),
        Ok(Err(Short::Malformed(why))) => Err(malformed(broker, why)),
        Err(_) if from.held.is_empty() => Err(End::Plain),
        Err(_) => Err(End::Said(Answer::slow().bytes(b""))),
    }
}

fn malformed(broker: &Broker, why: Malformed) -> End {
    broker.refuse(broker.line(), &why.to_string());
    End::Said(Answer::malformed(why).bytes(b""))
}

async fn tunnel<'a>(mut far: Far<'_>, from: &mut Inlet<'a>, to: &mut WriteHalf<'a>) -> End {
    let open = b"HTTP/1.1 200 Connection established\r\n\r\n";
    let own = Tally::default();
    let result = match join::write(to, open, &own.received).await {
        Ok(()) => {
            let (far_from, mut far_to) = far.stream.split();
            join::tunnel((from, to), (&mut Inlet::new(far_from), &mut far_to), &far.account.tally).await
        }
        Err(leak) => Err(leak),
    };
    match result {
        Ok(()) => End::Plain,
        Err(leak) => {
            far.account.failed(leak);
            join::break_off(&far.stream);
            End::Torn
        }
    }
}
