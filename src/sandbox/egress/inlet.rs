//! The reading side of a connection, with what was read beyond the current message.

use super::head::{Malformed, Scan};
use std::cell::RefCell;
use std::io::{self, ErrorKind};
use tokio::net::tcp::ReadHalf;

/// The most that is read at once, in bytes.
const GULP: usize = 64 * 1024;

thread_local! {
    /// One buffer for all connections of a thread: nothing waits while it is borrowed, so that an idle connection
    /// holds no memory for bytes that may never come.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; GULP]);
}

/// Why no head came.
#[derive(Debug)]
pub enum Short {
    /// The other side closed before a first byte.
    Closed,
    /// What came is not a head.
    Malformed(Malformed),
    /// The connection broke.
    Broken,
}

/// A read half and the bytes that were read from it but not used yet.
#[derive(Debug)]
pub struct Inlet<'a> {
    half: ReadHalf<'a>,
    /// At most one gulp more than the current head.
    pub held: Vec<u8>,
}

impl<'a> Inlet<'a> {
    /// With nothing held.
    pub fn new(half: ReadHalf<'a>) -> Inlet<'a> {
        Inlet { half, held: Vec::new() }
    }

    /// Reads once without waiting and hands over what came: nothing at the end. `WouldBlock` when there is nothing yet.
    pub fn gulp<T>(&mut self, then: impl FnOnce(&[u8], &mut Vec<u8>) -> T) -> io::Result<T> {
        SCRATCH.with_borrow_mut(|buffer| {
            let count = self.half.try_read(buffer)?;
            Ok(then(&buffer[..count], &mut self.held))
        })
    }

    /// Waits until a read may give something.
    pub async fn readable(&self) -> io::Result<()> {
        self.half.readable().await
    }

    /// Waits for more bytes and holds them; 0 at the end. Loses nothing when cancelled.
    pub async fn more(&mut self) -> io::Result<usize> {
        loop {
            let got = self.gulp(|bytes, held| {
                held.extend_from_slice(bytes);
                bytes.len()
            });
            match got {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable().await?,
                done => return done,
            }
        }
    }

    /// Takes one head, its empty line included, of at most `limit` bytes.
    pub async fn head(&mut self, limit: usize) -> Result<Vec<u8>, Short> {
        let mut scan = Scan::default();
        loop {
            if let Some(end) = scan.advance(&self.held, limit).map_err(Short::Malformed)? {
                return Ok(self.take(end));
            }
            match self.more().await {
                Ok(0) if self.held.is_empty() => return Err(Short::Closed),
                Ok(0) => return Err(Short::Malformed(Malformed::Open)),
                Ok(_) => {}
                Err(_) => return Err(Short::Broken),
            }
        }
    }

    /// Takes the first `count` of the held bytes, and lets go of the memory when none are left.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.held.split_off(count.min(self.held.len()));
        std::mem::replace(&mut self.held, rest)
    }
}
