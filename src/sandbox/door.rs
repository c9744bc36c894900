//! A way in: sockets of a sandbox's network namespace for the supervisor.
//!
//! A tiny process of ours stands in the sandbox's user and network namespaces, but in none of the others: what runs
//! inside cannot see it. It makes unconnected TCP sockets on request and does nothing else; the supervisor connects
//! them. It has no capability and ends with the supervisor. A reduced sandbox shares the supervisor's network, and needs
//! no such process.

use super::layers::{capabilities, descriptors, network, privileges};
use crate::base::{Explain, Kind};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

/// The supervisor's end.
#[derive(Debug)]
pub enum Door {
    /// A process in the sandbox's network makes the sockets.
    Process {
        socket: Mutex<OwnedFd>,
        process: OwnedFd,
        pid: nix::unistd::Pid,
    },
    /// The sandbox's network is ours.
    Open,
}

/// A door that is gone: nothing can be led into its sandbox any more.
#[derive(Debug, thiserror::Error)]
#[error("the door, Pinfold's own process in the sandbox's network, was ended from outside, so the launch was ended")]
pub struct DoorGone;

impl Explain for DoorGone {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
    fn hint(&self) -> Option<String> {
        Some("it is a second process of `pinfold`, without a name of its own; leave it running, and start again".into())
    }
}

impl Door {
    /// Forks the process at the door of the sandbox whose first process `first` refers to. The caller has one thread.
    pub fn open(first: &OwnedFd) -> nix::Result<Door> {
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        match crate::sys::clone::fork()? {
            None => {
                drop(ours);
                let _ = attend(first, &theirs);
                crate::sys::clone::leave(0)
            }
            Some(pid) => {
                drop(theirs);
                let mut ready = [0; 1];
                let got = crate::sys::descriptor::receive(ours.as_fd(), &mut ready)?;
                let door = Door::Process {
                    socket: Mutex::new(ours),
                    process: crate::sys::pidfd::open(pid)?,
                    pid: nix::unistd::Pid::from_raw(pid),
                };
                if got.length == 1 { Ok(door) } else { Err(Errno::EPERM) }
            }
        }
    }

    /// A fresh unconnected, non-blocking TCP socket of the sandbox's network namespace.
    pub fn socket(&self) -> nix::Result<OwnedFd> {
        let Door::Process { socket, .. } = self else {
            return network::stream();
        };
        let socket = socket.lock().map_err(|_| Errno::EIO)?;
        crate::sys::descriptor::send(socket.as_fd(), &[1], &[])?;
        let mut answer = [0; 1];
        let mut got = crate::sys::descriptor::receive(socket.as_fd(), &mut answer)?;
        got.descriptors.pop().ok_or(Errno::EPIPE)
    }
}

impl Door {
    /// Readable once the process at the door has ended.
    pub fn ended(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Door::Process { process, .. } => Some(process.as_fd()),
            Door::Open => None,
        }
    }

    /// Whether it has.
    pub fn is_gone(&self) -> bool {
        let Some(ended) = self.ended() else { return false };
        let mut polled = [PollFd::new(ended, PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Door::Process { pid, .. } = self {
            let _ = nix::sys::signal::kill(*pid, Signal::SIGKILL);
            let _ = nix::sys::wait::waitpid(*pid, None);
        }
    }
}

fn attend(first: &OwnedFd, socket: &OwnedFd) -> nix::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    nix::unistd::setsid()?;
    crate::sys::pidfd::enter(first, CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    nix::sys::prctl::set_dumpable(false)?;
    privileges::apply()?;
    capabilities::apply()?;
    let null = nix::fcntl::open("/dev/null", nix::fcntl::OFlag::O_RDWR, nix::sys::stat::Mode::empty())?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    descriptors::apply(&[socket.as_raw_fd()])?;
    // Entering a user namespace may have cleared it.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    crate::sys::descriptor::send(socket.as_fd(), &[0], &[])?;
    let mut request = [0; 1];
    while crate::sys::descriptor::receive(socket.as_fd(), &mut request)?.length == 1 {
        match network::stream() {
            Ok(stream) => crate::sys::descriptor::send(socket.as_fd(), &[1], &[stream.as_raw_fd()])?,
            Err(_) => crate::sys::descriptor::send(socket.as_fd(), &[0], &[])?,
        }
    }
    Ok(())
}
