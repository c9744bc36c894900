//! The mediator: decides `connect` for a sandbox and carries it out on the caller's behalf.
//!
//! The address is copied once, the decision is made on the copy, and the call is made with the copy on a duplicate of
//! the caller's descriptor. "Continue" is never answered: the kernel would read the address again, and another thread
//! can have changed it by then (seccomp_unotify(2)).

mod caller;
mod destination;
mod diag;
mod missed;

use crate::base::{AbsPath, Port};
use caller::Caller;
use destination::{Destination, Verdict, decide, decide_file};
use diag::SocketFile;
pub use missed::Missed;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Connects that may be under way at once for one sandbox; one more gets `EAGAIN`.
const MOST_BLOCKING: usize = 256;

/// What is decided by.
#[derive(Debug)]
pub struct Rules {
    /// Ports that nothing inside may connect to.
    pub closed: Vec<Port>,
    /// Sockets of the host that are granted by path.
    pub granted: Vec<AbsPath>,
    /// A sock_diag socket of the sandbox's network namespace.
    pub diag: OwnedFd,
    /// Where refused socket files are noted.
    pub missed: Missed,
}

/// Serves one sandbox on a thread of its own until nothing in it is left.
pub fn start(listener: OwnedFd, rules: Rules) -> std::io::Result<()> {
    let granted = rules.granted.iter().map(granted_file).collect::<nix::Result<_>>()?;
    let mediator = Arc::new(Mediator {
        listener,
        closed: rules.closed,
        granted,
        diag: rules.diag,
        missed: rules.missed,
        blocking: AtomicUsize::new(0),
    });
    std::thread::Builder::new()
        .name("mediator".into())
        .stack_size(128 << 10)
        .spawn(move || serve(&mediator))
        .map(drop)
}

/// The file that a granted path names now; it was bound into the sandbox a moment ago.
fn granted_file(path: &AbsPath) -> nix::Result<SocketFile> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let file = nix::fcntl::open(path.as_path(), flags, Mode::empty())?;
    caller::socket_file(&file, "/proc/self/mountinfo")
}

struct Mediator {
    listener: OwnedFd,
    closed: Vec<Port>,
    granted: Vec<SocketFile>,
    diag: OwnedFd,
    missed: Missed,
    blocking: AtomicUsize,
}

fn serve(mediator: &Arc<Mediator>) {
    loop {
        let mut polled = [PollFd::new(mediator.listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        let events = polled[0].revents().unwrap_or(PollFlags::POLLHUP);
        if !events.contains(PollFlags::POLLIN) {
            return;
        }
        match crate::sys::seccomp::receive(&mediator.listener) {
            Ok(notification) => attend(mediator, notification.id, &Caller::of(&notification)),
            // The caller died between poll and receive, or a signal came.
            Err(Errno::ENOENT | Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// Decides one call here, and carries it out on a thread of its own: it may block for as long as the other side likes,
/// and whether it will cannot be told from the socket's flags, which another thread can change meanwhile.
fn attend(mediator: &Arc<Mediator>, id: u64, caller: &Caller) {
    let job = match prepare(mediator, id, caller) {
        Ok(job) => job,
        Err(errno) => return answer(mediator, id, Err(errno)),
    };
    if mediator.blocking.fetch_add(1, Ordering::Relaxed) >= MOST_BLOCKING {
        mediator.blocking.fetch_sub(1, Ordering::Relaxed);
        return answer(mediator, id, Err(Errno::EAGAIN));
    }
    let shared = Arc::clone(mediator);
    let work = move || {
        answer(&shared, id, job.carry_out());
        shared.blocking.fetch_sub(1, Ordering::Relaxed);
    };
    if std::thread::Builder::new().stack_size(64 << 10).spawn(work).is_err() {
        mediator.blocking.fetch_sub(1, Ordering::Relaxed);
        answer(mediator, id, Err(Errno::EAGAIN));
    }
}

/// An allowed call, ready to be made.
struct Job {
    socket: OwnedFd,
    address: Vec<u8>,
    /// Keeps a socket file pinned until the call has been made.
    _pinned: Option<OwnedFd>,
}

impl Job {
    fn carry_out(&self) -> Result<(), Errno> {
        crate::sys::socket::connect(&self.socket, &self.address)
    }
}

fn prepare(mediator: &Mediator, id: u64, caller: &Caller) -> Result<Job, Errno> {
    let address = caller.address()?;
    let socket = caller.socket()?;
    // What was read is the caller's only if the caller still waits: otherwise its id may be another process's by now.
    if !crate::sys::seccomp::still_waits(&mediator.listener, id) {
        return Err(Errno::ESRCH);
    }
    let destination = Destination::parse(&address)?;
    if let Verdict::Refuse(errno) = decide(&mediator.closed, &destination) {
        return Err(errno);
    }
    match destination {
        Destination::Path(path) => {
            let (address, pinned) =
                socket_file(mediator, caller, &path).inspect_err(|_| mediator.missed.note(&path))?;
            Ok(Job {
                socket,
                address,
                _pinned: Some(pinned),
            })
        }
        _ => Ok(Job {
            socket,
            address,
            _pinned: None,
        }),
    }
}

/// The address and the file of a path that may be connected to.
fn socket_file(mediator: &Mediator, caller: &Caller, path: &Path) -> Result<(Vec<u8>, OwnedFd), Errno> {
    let (address, pinned) = caller.pin(path)?;
    let file = caller.socket_file(&pinned)?;
    match decide_file(file, &mediator.granted, &diag::bound(&mediator.diag)?) {
        Verdict::Refuse(errno) => Err(errno),
        Verdict::CarryOut => Ok((address, pinned)),
    }
}

fn answer(mediator: &Mediator, id: u64, result: Result<(), Errno>) {
    // ENOENT: the caller was killed meanwhile; nobody waits for the answer.
    let _ = crate::sys::seccomp::answer(&mediator.listener, id, result);
}
