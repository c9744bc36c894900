//! Bytes between the pane and the sandbox's terminal: passed on as they are, in both directions, with bounded memory.

use super::Pane;
use super::modes::Modes;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::PollFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Bytes taken in one read.
const CHUNK: usize = 64 << 10;
/// Reads of the inner terminal for one look at everything else: it hands out at most a page at a time.
const BURST: u32 = 32;
/// Longest wait for a pane that does not take its last bytes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// One pane joined to one inner terminal.
#[derive(Debug)]
pub struct Relay {
    pub pane: Pane,
    inner: OwnedFd,
    to_pane: Flow,
    to_inner: Flow,
    modes: Modes,
    told_hang_up: bool,
}

/// One direction: what was read and not yet written, and whether more can come.
#[derive(Debug, Default)]
struct Flow {
    waiting: Vec<u8>,
    written: usize,
    closed: bool,
}

impl Relay {
    /// Joins the two, gives the inner one the pane's size, and takes the keys.
    pub fn new(mut pane: Pane, inner: OwnedFd) -> nix::Result<Relay> {
        let flags = OFlag::from_bits_truncate(fcntl(&inner, FcntlArg::F_GETFL)?);
        fcntl(&inner, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        pane.resize(&inner);
        pane.take();
        Ok(Relay {
            pane,
            inner,
            to_pane: Flow::default(),
            to_inner: Flow::default(),
            modes: Modes::default(),
            told_hang_up: false,
        })
    }

    /// What to poll for on the pane and on the inner terminal.
    pub fn interest(&self) -> [(BorrowedFd<'_>, PollFlags); 2] {
        let reads = self.pane.is_taken() && self.to_inner.is_free();
        let pane = flags(reads, !self.to_pane.is_empty());
        let inner = flags(self.to_pane.is_free(), !self.to_inner.is_empty());
        [(self.pane.file(), pane), (self.inner.as_fd(), inner)]
    }

    /// Moves what can be moved now.
    pub fn move_bytes(&mut self) {
        self.to_pane.drain(self.pane.file());
        for _ in 0..BURST {
            if !self.to_pane.fill(self.inner.as_fd()) {
                break;
            }
            self.modes.watch(&self.to_pane.waiting);
            self.to_pane.drain(self.pane.file());
        }
        if self.pane.is_taken() {
            self.to_inner.fill(self.pane.file());
        }
        self.to_inner.drain(self.inner.as_fd());
    }

    /// True once, when the pane is gone: nobody can see or type anything any more. The kernel tells only the leader of
    /// the terminal's session, which this process need not be.
    pub fn hangs_up(&mut self) -> bool {
        self.to_inner.closed && !std::mem::replace(&mut self.told_hang_up, true)
    }

    /// The pane has another size.
    pub fn resize(&self) {
        self.pane.resize(&self.inner);
    }

    /// Shows what the command wrote last, undoes what it left on, gives the pane back.
    pub fn finish(mut self) {
        let end = Instant::now() + LAST_WORDS;
        loop {
            self.move_bytes();
            if (self.to_pane.closed && self.to_pane.is_empty()) || Instant::now() > end {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.give_back();
    }

    /// Undoes modes and restores the pane, for a stop or the end.
    pub fn give_back(&mut self) {
        let undo = self.modes.undo();
        if !undo.is_empty() {
            let _ = nix::unistd::write(self.pane.file(), &undo);
        }
        self.pane.restore();
    }

    /// Takes the pane again after a stop.
    pub fn take_again(&mut self) {
        self.pane.take();
        self.pane.resize(&self.inner);
    }
}

impl Flow {
    fn is_empty(&self) -> bool {
        self.written >= self.waiting.len()
    }

    fn is_free(&self) -> bool {
        self.is_empty() && !self.closed
    }

    /// Reads one chunk if there is room; true if bytes came.
    fn fill(&mut self, from: BorrowedFd<'_>) -> bool {
        if !self.is_free() {
            return false;
        }
        self.waiting.resize(CHUNK, 0);
        self.written = 0;
        let got = match nix::unistd::read(from, &mut self.waiting) {
            Ok(0) => Err(Errno::EIO),
            other => other,
        };
        self.waiting.truncate(*got.as_ref().unwrap_or(&0));
        // EIO: the last process has closed the inner terminal, or the pane has hung up.
        self.closed = matches!(got, Err(errno) if !matches!(errno, Errno::EAGAIN | Errno::EINTR));
        !self.waiting.is_empty()
    }

    fn drain(&mut self, to: BorrowedFd<'_>) {
        while let Some(rest) = self.waiting.get(self.written..).filter(|rest| !rest.is_empty()) {
            match nix::unistd::write(to, rest) {
                Ok(count) => self.written += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                Err(_) => {
                    self.written = self.waiting.len();
                    return;
                }
            }
        }
    }
}

fn flags(reads: bool, writes: bool) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::POLLIN, reads);
    flags.set(PollFlags::POLLOUT, writes);
    flags
}
