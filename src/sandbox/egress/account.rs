//! What one allowed connection came to: told to the log when it ends, however it ends.

use super::join::Tally;
use super::log::{Line, Log};
use std::net::SocketAddr;
use std::time::Instant;

/// One allowed request on its way. Dropping it writes the closing line.
#[derive(Debug)]
pub struct Account<'a> {
    log: &'a Log,
    line: Line,
    began: Instant,
    pub tally: Tally,
}

impl<'a> Account<'a> {
    /// Writes the line of the decision and begins to count.
    pub fn open(log: &'a Log, line: Line) -> Account<'a> {
        log.record(line.clone());
        Account {
            log,
            line,
            began: Instant::now(),
            tally: Tally::default(),
        }
    }
    /// The address that answered.
    pub fn reached(&mut self, address: Option<SocketAddr>) {
        self.line.address = address.map(|a| a.to_string());
    }
    /// What went wrong.
    pub fn failed(&mut self, error: impl ToString) {
        self.line.error = Some(error.to_string());
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        let (sent, received) = self.tally.read();
        let mut line = std::mem::take(&mut self.line);
        line.sent = Some(sent);
        line.received = Some(received);
        line.ms = Some(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.log.record(line);
    }
}
