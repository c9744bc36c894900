//! Verification while a launch lives: every second for twenty seconds, then every fifteen, and on request.

use super::heal::Healer;
use crate::verify::{EnvSubject, Report, Subject, running};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the short interval is kept.
const YOUNG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(15);
/// A round that is later than this means that verification is stuck.
pub const OVERDUE: Duration = Duration::from_secs(45);

/// Looks in a row while the host goes on replacing files.
const ROUNDS: usize = 50;

/// One look at every subject, in their order.
#[derive(Debug)]
pub struct Round {
    pub reports: Vec<Report>,
    /// Whether somebody asked for it.
    pub asked: bool,
}

/// A verification thread; dropped, it has ended: the next sandbox of this process needs it to have one thread.
pub struct Watch {
    /// One byte asks for a round; closed, it ends the thread.
    wish: Option<OwnedFd>,
    rounds: Receiver<Round>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.wish.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Watch {
    /// Verifies every subject again and again; a report of each round wakes whoever polls `wake`.
    /// The healer is that of the first.
    pub fn start(subjects: Vec<Subject>, healer: Option<Arc<Healer>>) -> std::io::Result<Watch> {
        let pipe = || nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK);
        let ((wake, bell), (wished, wish)) = (pipe()?, pipe()?);
        let (sender, rounds) = channel();
        let mounts = subjects
            .iter()
            .map(|subject| File::open(format!("/proc/{}/mountinfo", subject.init.pid)));
        let mut watching = Watching {
            mounts: mounts.collect::<std::io::Result<_>>()?,
            subjects,
            healer,
            wished,
            rounds: sender,
            bell: File::from(bell),
        };
        let thread = std::thread::Builder::new()
            .name("verify".into())
            .spawn(move || watching.watch())?;
        Ok(Watch {
            wish: Some(wish),
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
        if let Some(wish) = &self.wish {
            let _ = nix::unistd::write(wish, &[1]);
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

/// The thread's own side.
struct Watching {
    subjects: Vec<Subject>,
    healer: Option<Arc<Healer>>,
    /// Tells when a sandbox's mounts change (proc_pid_mountinfo(5)): somebody outside who replaces a protected file
    /// takes its cover away in every mount namespace, and that must not wait for the next round.
    mounts: Vec<File>,
    wished: OwnedFd,
    rounds: Sender<Round>,
    bell: File,
}

/// Why a pause ended.
#[derive(PartialEq, Eq)]
enum Woken {
    Asked,
    /// The time has come, or the mounts of a sandbox have changed.
    Due,
    /// Nobody wants to know any more.
    Done,
}

impl Watching {
    fn watch(&mut self) {
        let begun = Instant::now();
        loop {
            let woken = self.pause(if begun.elapsed() < YOUNG { SHORT } else { LONG });
            if woken == Woken::Done {
                return;
            }
            let reports = self.look();
            // What the command was given is judged once, on the program that was released: what it or its successors
            // put into their environment later is their own.
            if reports.iter().all(Report::ok) {
                self.subjects
                    .iter_mut()
                    .for_each(|subject| subject.environment = EnvSubject::default());
            }
            let asked = woken == Woken::Asked;
            if self.rounds.send(Round { reports, asked }).is_err() {
                return;
            }
            let _ = self.bell.write_all(&[1]);
        }
    }

    fn look(&self) -> Vec<Report> {
        let healer = |index: usize| self.healer.as_ref().filter(|_| index == 0);
        let subjects = self.subjects.iter().enumerate();
        subjects
            .map(|(index, subject)| look(subject, healer(index).map(Arc::as_ref)))
            .collect()
    }

    fn pause(&self, pause: Duration) -> Woken {
        let mut polled = vec![PollFd::new(self.wished.as_fd(), PollFlags::POLLIN)];
        polled.extend(
            self.mounts
                .iter()
                .map(|mounts| PollFd::new(mounts.as_fd(), PollFlags::POLLPRI)),
        );
        let _ = poll(&mut polled, PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX));
        if polled[0].revents().is_none_or(|events| events.is_empty()) {
            return Woken::Due;
        }
        match nix::unistd::read(&self.wished, &mut [0; 64]) {
            Ok(0) => Woken::Done,
            _ => Woken::Asked,
        }
    }
}

/// A look, once covers that were taken away from outside are back; what it finds counts only if a second one, at once, finds something too: processes come and go while they are
/// looked at, and this process can have been stopped in the middle.
fn look(subject: &Subject, healer: Option<&Healer>) -> Report {
    let heal = || healer.map(Healer::heal).unwrap_or_default();
    let mut healed = heal();
    let mut findings = healed.findings;
    let mut report = running(subject);
    for _ in 0..ROUNDS {
        if report.ok() || report.ended {
            break;
        }
        let again = heal();
        findings.extend(again.findings);
        report = running(subject);
        // Once more only if the host has replaced something meanwhile.
        if again.times == healed.times {
            break;
        }
        healed.times = again.times;
    }
    report.findings.extend(findings);
    report
}
