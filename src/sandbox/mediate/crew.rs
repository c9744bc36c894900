//! Who makes the calls: one thread takes a trapped call, decides it and makes it, which needs no further switch between
//! threads. Whether a call will block cannot be told beforehand: the socket's flags are another thread's to change, and
//! only the kernel knows a backlog. So a second thread looks now and then, and lets a third take over from one that is
//! stuck in a call. How many may be stuck at once is bounded; then the next gets `EAGAIN`.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, Thread};
use std::time::Duration;

/// How long a call may hold up others before another thread takes over.
const PATIENCE: Duration = Duration::from_millis(2);
/// How often stuck calls are looked at, for callers that were killed.
const ROUND: Duration = Duration::from_millis(50);
/// Idle looks after which the watching thread sleeps.
const IDLE: u32 = 25;
/// Looks at what is left of the threads at the end.
const LAST_LOOKS: u32 = 100;
/// Calls that may be stuck at once; fewer where the supervisor may have few descriptors.
const MOST_STUCK: u64 = 256;
/// Descriptors that everything else of the supervisor needs, and those of one stuck call: its socket, and the socket file.
const OTHERS: u64 = 96;
const EACH: u64 = 2;

/// The work: takes one trapped call from the listener, decides and makes it.
pub trait Work: Send + Sync + 'static {
    /// What a thread keeps between two calls.
    type Memory: Default;
    /// Where calls arrive.
    fn listener(&self) -> &OwnedFd;
    /// Takes one call; nothing if it went away meanwhile.
    fn take(&self) -> Result<Option<Taken>, Errno>;
    /// Decides and makes it, and answers.
    fn work(&self, taken: Taken, memory: &mut Self::Memory);
    /// Answers with an error.
    fn refuse(&self, taken: Taken, errno: Errno);
    /// Whether the caller still waits.
    fn waits(&self, id: u64) -> bool;
}

/// A call that was taken.
pub type Taken = crate::sys::seccomp::Notification;

/// The threads of one sandbox. Dropped, they stop; a call that is stuck then is left to the end of the process.
#[derive(Debug)]
pub struct Crew {
    stop: OwnedFd,
    watcher: Option<JoinHandle<()>>,
}

struct Board<W> {
    work: W,
    /// Counts up when a call is begun, when it is done, and when somebody takes over: odd while one is under way.
    turn: AtomicU64,
    /// The caller's notification, and the thread at work.
    job: AtomicU64,
    worker: AtomicU64,
    /// Threads that were taken over from: each with its notification.
    stuck: Mutex<Vec<(i32, u64)>>,
    most_stuck: u64,
    threads: Mutex<Vec<JoinHandle<()>>>,
    watcher: OnceLock<Thread>,
    sleeps: AtomicBool,
    ended: AtomicBool,
    /// Readable when the crew is to stop.
    stopped: OwnedFd,
}

impl Crew {
    /// Serves until nothing is left in the sandbox, or until dropped.
    pub fn start<W: Work>(work: W) -> io::Result<Crew> {
        crate::sys::interrupt::prepare()?;
        let (stopped, stop) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let board = Arc::new(Board {
            work,
            turn: AtomicU64::new(0),
            job: AtomicU64::new(0),
            worker: AtomicU64::new(0),
            stuck: Mutex::new(Vec::new()),
            most_stuck: most_stuck(),
            threads: Mutex::new(Vec::new()),
            watcher: OnceLock::new(),
            sleeps: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            stopped,
        });
        let watching = Arc::clone(&board);
        let watcher = named("mediator-watch").spawn(move || watch(&watching))?;
        let crew = Crew {
            stop,
            watcher: Some(watcher),
        };
        crew.own(&board);
        let leading = Arc::clone(&board);
        match named("mediator").spawn(move || lead(&leading)) {
            Ok(leader) => board.threads().push(leader),
            Err(error) => {
                board.end();
                return Err(error);
            }
        }
        Ok(crew)
    }

    fn own<W>(&self, board: &Board<W>) {
        if let Some(watcher) = &self.watcher {
            let _ = board.watcher.set(watcher.thread().clone());
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let _ = nix::unistd::write(&self.stop, &[1]);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

fn named(name: &str) -> Builder {
    Builder::new().name(name.into()).stack_size(256 << 10)
}

/// As many as there are descriptors for.
fn most_stuck() -> u64 {
    let soft = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
    (soft.saturating_sub(OTHERS) / EACH).clamp(1, MOST_STUCK)
}

impl<W: Work> Board<W> {
    fn end(&self) {
        self.ended.store(true, SeqCst);
        self.wake();
    }

    fn wake(&self) {
        self.sleeps.store(false, SeqCst);
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }

    fn stuck(&self) -> std::sync::MutexGuard<'_, Vec<(i32, u64)>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full(&self) -> bool {
        self.stuck().len() as u64 >= self.most_stuck
    }
}

/// Takes and makes calls until there are no more, or until somebody else has taken over.
fn lead<W: Work>(board: &Arc<Board<W>>) {
    let mut memory = W::Memory::default();
    let tid = nix::unistd::gettid().as_raw();
    board.worker.store(u64::from(tid.unsigned_abs()), SeqCst);
    while arrives(board) {
        let taken = match board.work.take() {
            Ok(Some(taken)) => taken,
            Ok(None) => continue,
            Err(_) => break,
        };
        if board.is_full() {
            board.work.refuse(taken, Errno::EAGAIN);
            continue;
        }
        board.job.store(taken.id, SeqCst);
        let begun = board.turn.fetch_add(1, SeqCst) + 1;
        if board.sleeps.load(SeqCst) {
            board.wake();
        }
        board.work.work(taken, &mut memory);
        if board.turn.compare_exchange(begun, begun + 1, SeqCst, SeqCst).is_err() {
            // Another leads by now.
            board.stuck().retain(|(stuck, _)| *stuck != tid);
            return;
        }
    }
    board.end();
}

/// Waits for a call; false when none comes any more.
fn arrives<W: Work>(board: &Board<W>) -> bool {
    loop {
        let mut polled = [
            PollFd::new(board.work.listener().as_fd(), PollFlags::POLLIN),
            PollFd::new(board.stopped.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut polled, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            Err(_) => return false,
            Ok(_) => {}
        }
        let events = |index: usize| {
            polled
                .get(index)
                .and_then(PollFd::revents)
                .unwrap_or(PollFlags::POLLHUP)
        };
        return events(1).is_empty() && events(0).contains(PollFlags::POLLIN);
    }
}

/// Looks whether the leading thread gets on, and whether anybody still waits for those that do not.
fn watch<W: Work>(board: &Arc<Board<W>>) {
    let mut seen = board.turn.load(SeqCst);
    let mut idle = 0;
    let mut since_round = Duration::ZERO;
    while !board.ended.load(SeqCst) {
        let now = board.turn.load(SeqCst);
        idle = if now == seen { idle + 1 } else { 0 };
        if now == seen && now % 2 == 1 {
            take_over(board, now);
        }
        seen = now;
        if since_round >= ROUND {
            since_round = Duration::ZERO;
            let gone = |(_, id): &(i32, u64)| !board.work.waits(*id);
            interrupt(board.stuck().iter().copied().filter(gone).collect());
        }
        let none_stuck = board.stuck().is_empty();
        let pause = if idle < IDLE { PATIENCE } else { ROUND };
        if idle < IDLE {
            std::thread::sleep(PATIENCE);
        } else {
            sleep_until_woken(board, seen, none_stuck);
        }
        since_round += pause;
    }
    // The next sandbox of this process needs it to have one thread.
    for _ in 0..LAST_LOOKS {
        interrupt(board.stuck().clone());
        if board.threads().iter().all(JoinHandle::is_finished) {
            break;
        }
        std::thread::sleep(PATIENCE);
    }
    let ended = std::mem::take(&mut *board.threads());
    let ended = ended.into_iter().filter(JoinHandle::is_finished);
    ended.for_each(|thread| drop(thread.join()));
}

/// A thread that has just ended by itself is none of ours any more, and is not found.
fn interrupt(stuck: Vec<(i32, u64)>) {
    stuck.into_iter().for_each(|(tid, _)| {
        let _ = crate::sys::interrupt::thread(tid);
    });
}

/// Sleeps until a call is begun; with calls that are stuck, not longer than until the next round.
fn sleep_until_woken<W: Work>(board: &Board<W>, seen: u64, none_stuck: bool) {
    board.sleeps.store(true, SeqCst);
    // Whoever begins a call from here on sees that this thread sleeps.
    if board.turn.load(SeqCst) == seen && seen % 2 == 0 && !board.ended.load(SeqCst) {
        if none_stuck {
            std::thread::park();
        } else {
            std::thread::park_timeout(ROUND);
        }
    }
    board.sleeps.store(false, SeqCst);
}

/// A new thread leads if the call of this turn is still under way when it comes to that.
fn take_over<W: Work>(board: &Arc<Board<W>>, turn: u64) {
    let next = Arc::clone(board);
    let lead_on = move || {
        let stuck = (next.worker.load(SeqCst), next.job.load(SeqCst));
        if next.turn.compare_exchange(turn, turn + 1, SeqCst, SeqCst).is_ok() {
            let tid = i32::try_from(stuck.0).unwrap_or(0);
            next.stuck().push((tid, stuck.1));
            lead(&next);
        }
    };
    // Without a thread to spare the others wait; the next look tries again.
    if let Ok(thread) = named("mediator").spawn(lead_on) {
        let mut threads = board.threads();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }
}
