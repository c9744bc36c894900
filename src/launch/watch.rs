//! Verification while a launch lives: every second for twenty seconds, then every fifteen, and on request.

use crate::verify::{Report, Subject, running};
use nix::errno::Errno;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the short interval is kept.
const YOUNG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(15);
/// A round that is later than this means that verification is stuck.
pub const OVERDUE: Duration = Duration::from_secs(45);

/// One look at every subject, in their order.
#[derive(Debug)]
pub struct Round {
    pub reports: Vec<Report>,
    /// Whether somebody asked for it.
    pub asked: bool,
}

/// A verification thread; dropped, it has ended: the next sandbox of this process needs it to have one thread.
pub struct Watch {
    wishes: Option<Sender<()>>,
    rounds: Receiver<Round>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.wishes.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Watch {
    /// Verifies every subject again and again; a report of each round wakes whoever polls `wake`.
    pub fn start(subjects: Vec<Subject>) -> std::io::Result<Watch> {
        let (wake, bell) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC | nix::fcntl::OFlag::O_NONBLOCK)?;
        let (wishes, wished) = channel();
        let (sender, rounds) = channel();
        let work = move || watch(&subjects, &wished, &sender, &mut std::fs::File::from(bell));
        let thread = std::thread::Builder::new().name("verify".into()).spawn(work)?;
        Ok(Watch {
            wishes: Some(wishes),
            rounds,
            wake,
            thread: Some(thread),
        })
    }

    /// What to poll.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Asks for a verification now.
    pub fn ask(&self) {
        if let Some(wishes) = &self.wishes {
            let _ = wishes.send(());
        }
    }

    /// The rounds since the last call, after a wake-up. `EPIPE`: the thread is gone, and nothing verifies any more.
    pub fn rounds(&self) -> nix::Result<Vec<Round>> {
        let mut bell = [0; 64];
        match nix::unistd::read(&self.wake, &mut bell) {
            Ok(0) => return Err(Errno::EPIPE),
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(self.rounds.try_iter().collect())
    }
}

fn watch(subjects: &[Subject], wished: &Receiver<()>, rounds: &Sender<Round>, bell: &mut std::fs::File) {
    let begun = Instant::now();
    loop {
        let pause = if begun.elapsed() < YOUNG { SHORT } else { LONG };
        let asked = match wished.recv_timeout(pause) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let reports = subjects.iter().map(running).collect();
        if rounds.send(Round { reports, asked }).is_err() {
            return;
        }
        let _ = bell.write_all(&[1]);
    }
}
