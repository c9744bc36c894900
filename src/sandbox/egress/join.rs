//! Bytes from one connection to another, both ways: nothing is delayed, nothing is kept, a half-close stays one.

use super::body::Body;
use super::head::Malformed;
use super::inlet::Inlet;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::WriteHalf;

/// Bytes that were passed on so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Towards the far side.
    pub sent: AtomicU64,
    /// Towards the client.
    pub received: AtomicU64,
}

impl Tally {
    /// Both numbers as they are now.
    pub fn read(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed))
    }
}

/// Where bytes stopped.
#[derive(Debug, thiserror::Error)]
pub enum Leak {
    #[error("the sender broke off: {0}")]
    Source(io::Error),
    #[error("the receiver broke off: {0}")]
    Sink(io::Error),
    #[error("the body is malformed: {0}")]
    Malformed(#[from] Malformed),
}

impl From<Leak> for io::Error {
    fn from(leak: Leak) -> io::Error {
        match leak {
            Leak::Source(error) | Leak::Sink(error) => error,
            Leak::Malformed(why) => io::Error::new(ErrorKind::InvalidData, why),
        }
    }
}

/// Joins two connections until both directions have ended, and returns the bytes from `a` to `b` and from `b` to `a`.
/// The end of one direction is passed on alone; an error in one breaks both off, so that what was cut short does not
/// look complete. There is no idle timeout.
pub async fn join(mut a: TcpStream, mut b: TcpStream) -> io::Result<(u64, u64)> {
    let tally = Tally::default();
    let result = tie(&mut a, &mut b, &tally).await;
    if result.is_err() {
        break_off(&a);
        break_off(&b);
    }
    result.map(|()| tally.read())
}

async fn tie(a: &mut TcpStream, b: &mut TcpStream, tally: &Tally) -> io::Result<()> {
    a.set_nodelay(true)?;
    b.set_nodelay(true)?;
    let (a_from, mut a_to) = a.split();
    let (b_from, mut b_to) = b.split();
    tunnel(
        (&mut Inlet::new(a_from), &mut a_to),
        (&mut Inlet::new(b_from), &mut b_to),
        tally,
    )
    .await?;
    Ok(())
}

/// Makes the coming close a reset. Failing to is harmless: the close is then a plain one.
pub(super) fn break_off(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}

/// The two sides of one connection.
pub(super) type Sides<'s, 'a> = (&'s mut Inlet<'a>, &'s mut WriteHalf<'a>);

/// Pours both ways until both have ended.
pub(super) async fn tunnel(client: Sides<'_, '_>, far: Sides<'_, '_>, tally: &Tally) -> Result<(), Leak> {
    let (client_from, client_to) = client;
    let (far_from, far_to) = far;
    tokio::try_join!(
        pour_out(client_from, far_to, &tally.sent), //
        pour_out(far_from, client_to, &tally.received),
    )?;
    Ok(())
}

async fn pour_out(from: &mut Inlet<'_>, to: &mut WriteHalf<'_>, count: &AtomicU64) -> Result<(), Leak> {
    pour(from, to, &mut Body::Rest, count).await?;
    match to.shutdown().await {
        // It has closed already; that is no error of this direction.
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
        done => done.map_err(Leak::Sink),
    }
}

/// Passes one body on, what is held first. What was read beyond its end is held afterwards. When cancelled, `body` and
/// `from` still agree on what belongs to the body.
pub(super) async fn pour(
    from: &mut Inlet<'_>,
    to: &WriteHalf<'_>,
    body: &mut Body,
    count: &AtomicU64,
) -> Result<(), Leak> {
    let mut rest = Vec::new();
    if !from.held.is_empty() {
        let used = body.take(&from.held)?;
        rest = from.take(used);
        write(to, &rest, count).await?;
    }
    while !body.is_done() {
        rest.clear();
        match draw(from, to, body, &mut rest, count)? {
            Drawn::Nothing => {
                // An idle direction keeps no buffer.
                rest = Vec::new();
                from.readable().await.map_err(Leak::Source)?;
            }
            Drawn::End if *body == Body::Rest => return Ok(()),
            Drawn::End => return Err(Leak::Source(ErrorKind::UnexpectedEof.into())),
            Drawn::Some => write(to, &rest, count).await?,
        }
        // One fast connection must not hold the thread.
        tokio::task::coop::consume_budget().await;
    }
    Ok(())
}

enum Drawn {
    Nothing,
    End,
    Some,
}

/// One read and one write without waiting; what could not be written at once goes to `rest`.
fn draw(
    from: &mut Inlet<'_>,
    to: &WriteHalf<'_>,
    body: &mut Body,
    rest: &mut Vec<u8>,
    count: &AtomicU64,
) -> Result<Drawn, Leak> {
    let drawn = from.gulp(|bytes, held| {
        if bytes.is_empty() {
            return Ok(Drawn::End);
        }
        let (mine, next) = bytes.split_at(body.take(bytes)?);
        held.extend_from_slice(next);
        let written = match to.try_write(mine) {
            Ok(written) => written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(Leak::Sink(error)),
        };
        count.fetch_add(written as u64, Ordering::Relaxed);
        rest.extend_from_slice(&mine[written..]);
        Ok(Drawn::Some)
    });
    match drawn {
        Ok(drawn) => drawn,
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Drawn::Nothing),
        Err(error) => Err(Leak::Source(error)),
    }
}

/// Writes all of it, waiting as often as the receiver lets it wait.
pub(super) async fn write(to: &WriteHalf<'_>, mut bytes: &[u8], count: &AtomicU64) -> Result<(), Leak> {
    while !bytes.is_empty() {
        match to.try_write(bytes) {
            Ok(written) => {
                count.fetch_add(written as u64, Ordering::Relaxed);
                bytes = &bytes[written..];
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => to.writable().await.map_err(Leak::Sink)?,
            Err(error) => return Err(Leak::Sink(error)),
        }
    }
    Ok(())
}
