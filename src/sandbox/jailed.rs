//! A held command, and a running one. The types keep the order: only a `Jailed` can be released, and only with proof.

use super::door::Door;
use super::gate::{self, Report, Request};
use super::given::Given;
use super::group::Group;
use crate::base::{Explain, Kind, Pid, Port};
use crate::policy::Mode;
use crate::verify::Passed;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// What the kernel said while the sandbox was made; the checker compares it with what it reads itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The sandbox's first process, as the host numbers it.
    pub first: Pid,
    /// The held command.
    pub command: Pid,
    /// Error numbers of reading the canary before and after Landlock (0: read).
    pub canary: (i32, i32),
    /// Filters that the first process carries.
    pub filters_first: u32,
    /// Filters that the command carries.
    pub filters_command: u32,
    /// Device and inode of the control socket and the gate as the inside holds them.
    pub gate: Vec<(u64, u64)>,
    /// Device and inode of streams that came from outside.
    pub standard: Vec<(u64, u64)>,
    /// Its control group, where it has one.
    pub group: Option<PathBuf>,
    /// Bytes of private memory of each process, where no group bounds them together.
    pub memory_each: Option<u64>,
    /// What the kernel gave, for the record.
    pub given: Given,
    /// What was carried out.
    pub ops: Vec<super::plan::Op>,
}

/// The hold on a sandbox's first process: dropped, it ends everything inside and collects it.
#[derive(Debug)]
pub struct Leash {
    first: Pid,
    pidfd: OwnedFd,
    mode: Mode,
    /// Gone after everything in it.
    group: Option<Group>,
}

/// Milliseconds that the first process of a reduced sandbox has to end the others.
const GRACE: u16 = 12_000;

impl Leash {
    pub(super) fn new(first: Pid, pidfd: OwnedFd, mode: Mode, group: Option<Group>) -> Leash {
        Leash {
            first,
            pidfd,
            mode,
            group,
        }
    }
    /// Where its control group is.
    pub(super) fn group(&self) -> Option<PathBuf> {
        self.group.as_ref().map(|group| group.folder().to_owned())
    }
    /// The first process, as the host numbers it.
    pub fn first(&self) -> Pid {
        self.first
    }
    /// The first process, by descriptor.
    pub fn pidfd(&self) -> &OwnedFd {
        &self.pidfd
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if self.mode == Mode::Reduced {
            let _ = crate::sys::pidfd::signal(&self.pidfd, Signal::SIGTERM);
            let mut ended = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
            while poll(&mut ended, PollTimeout::from(GRACE)) == Err(Errno::EINTR) {}
        }
        let _ = crate::sys::pidfd::signal(&self.pidfd, Signal::SIGKILL);
        // Its end is collected only when everything in its PID namespace is gone (pid_namespaces(7)).
        let ended = waitpid(nix::unistd::Pid::from_raw(self.first.get()), None);
        if self.mode == Mode::Reduced && !matches!(ended, Ok(WaitStatus::Exited(..))) {
            // It could not end the others, which have come to this process since.
            super::inside::end_all();
        }
    }
}

/// A command that has everything applied and waits at its gate.
#[derive(Debug)]
pub struct Jailed {
    pub facts: Facts,
    pub(super) leash: Leash,
    pub(super) control: OwnedFd,
    pub(super) opener: OwnedFd,
    /// The supervisor's side of the sandbox's own terminal.
    pub terminal: Option<OwnedFd>,
    /// Listeners on the sandbox's loopback.
    pub inlets: Vec<(Port, OwnedFd)>,
    /// Where mediated calls arrive, and a socket of the sandbox's network namespace for questions about its sockets.
    pub mediation: Option<(OwnedFd, OwnedFd)>,
    pub door: Option<Door>,
}

/// A released command.
#[derive(Debug)]
pub struct Running {
    pub facts: Facts,
    leash: Leash,
    control: OwnedFd,
    pub terminal: Option<OwnedFd>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    /// Ended by this signal number.
    Signal(i32),
    /// exec failed: the program is not there, or cannot be run.
    NotExecuted(Errno),
    /// The sandbox ended without saying how (its first process was killed).
    Lost,
}

impl Exit {
    /// The exit status that a wrapper passes on: the code, 128 + signal, 127 or 126, 125 for a lost sandbox.
    pub fn status(self) -> u8 {
        match self {
            Exit::Code(code) => u8::try_from(code).unwrap_or(125),
            Exit::Signal(signal) => u8::try_from(signal).map_or(125, |n| n.saturating_add(128)),
            Exit::NotExecuted(Errno::ENOENT) => 127,
            Exit::NotExecuted(_) => 126,
            Exit::Lost => 125,
        }
    }
}

/// What a running sandbox told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Stopped,
    /// After `freeze`: nothing inside runs; `whole` is false where something could not be stopped.
    Frozen {
        whole: bool,
    },
    Ended(Exit),
    /// Something that means nothing to us.
    Noise,
}

/// Why a held command could not be released.
#[derive(Debug, thiserror::Error)]
#[error("the held command went away before it was released ({0})")]
pub struct ReleaseError(Errno);

impl Explain for ReleaseError {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
}

impl Jailed {
    /// Lets the command go. Consumes the proof: it was for this command, at this moment.
    pub fn release(self, _proof: Passed) -> Result<Running, ReleaseError> {
        nix::unistd::write(&self.opener, &[1]).map_err(ReleaseError)?;
        Ok(Running {
            facts: self.facts,
            leash: self.leash,
            control: self.control,
            terminal: self.terminal,
        })
    }
}

impl Running {
    /// What to poll for messages.
    pub fn messages(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Reads one message; call it when `messages` is readable.
    pub fn told(&self) -> Told {
        match gate::receive(&self.control) {
            Ok(Some(arrived)) => match arrived.report {
                Report::Stopped => Told::Stopped,
                Report::Frozen { whole } => Told::Frozen { whole: whole == 1 },
                Report::Exited { code } => Told::Ended(Exit::Code(code)),
                Report::Killed { signal } => Told::Ended(Exit::Signal(signal)),
                Report::NotExecuted { errno } => Told::Ended(Exit::NotExecuted(errno)),
                _ => Told::Noise,
            },
            Ok(None) => Told::Ended(Exit::Lost),
            Err(Errno::EBADMSG | Errno::EINTR | Errno::EAGAIN) => Told::Noise,
            Err(_) => Told::Ended(Exit::Lost),
        }
    }

    /// Sends a signal to the command's process group.
    pub fn signal(&self, signal: Signal) {
        self.request(Request::Signal(signal));
    }

    /// Continues a stopped command.
    pub fn resume(&self) {
        self.request(Request::Continue);
    }

    /// Stops everything inside; the sandbox tells when it has.
    pub fn freeze(&self) {
        self.request(Request::Freeze);
    }

    /// Lets go on what `freeze` has stopped.
    pub fn thaw(&self) {
        self.request(Request::Thaw);
    }

    fn request(&self, request: Request) {
        // A sandbox that is gone is noticed by its message socket.
        let _ = crate::sys::descriptor::send(self.control.as_fd(), &request.encode(), &[]);
    }

    /// Ends everything inside at once and collects it.
    pub fn end(self) {
        drop(self.leash);
    }
}
