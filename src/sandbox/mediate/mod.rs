//! The mediator: decides calls that name a socket, and carries them out on the caller's behalf.
//!
//! The address is copied once, the decision is made on the copy, and the call is made with the copy on a duplicate of
//! the caller's descriptor. "Continue" is never answered: the kernel would read the address again, and another thread
//! can have changed it by then (seccomp_unotify(2)).

mod address;
mod caller;
mod crew;
mod decision;
pub mod destination;
mod detour;
mod diag;
mod job;
mod known;
mod permissions;
mod refusals;
pub mod request;
mod trial;
mod view;
pub mod walk;
mod writable;

pub use crew::Crew;
pub use decision::{Listen, Net};
pub use detour::Detour;
pub use known::Inside;
pub use refusals::{Refusal, Refusals, What};
pub use trial::{Undecidable, try_on};
pub use writable::Writable;

use crate::base::AbsPath;
use caller::{Caller, Last};
use crew::{Taken, Work};
use job::Judge;
use known::Known;
use nix::errno::Errno;
use request::Request;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

/// What is decided by.
#[derive(Debug)]
pub struct Rules {
    pub net: Net,
    /// Where the broker's port leads, in a network that is not the sandbox's own.
    pub detour: Option<Detour>,
    /// Where the supervisor may make socket files and change permissions for the sandbox.
    pub writable: Writable,
    /// Sockets of the host that are granted by path.
    pub granted: Vec<AbsPath>,
    /// How the sandbox's own sockets are known.
    pub inside: Inside,
    /// A sock_diag socket of the network namespace that the sandbox stands in.
    pub diag: OwnedFd,
    /// Where refusals are told.
    pub refusals: Option<Arc<Refusals>>,
}

/// Serves one sandbox on threads of its own until nothing in it is left, or until what comes back is dropped.
pub fn start(listener: OwnedFd, rules: Rules) -> std::io::Result<Crew> {
    // Older kernels cannot; the calls are only slower then.
    let _ = crate::sys::seccomp::in_turns(&listener);
    Crew::start(Mediator {
        listener,
        judge: Judge {
            net: rules.net,
            detour: rules.detour,
            known: Known::new(&rules.granted, rules.inside, rules.diag)?,
            refusals: rules.refusals,
            writable: rules.writable,
            root: OnceLock::new(),
        },
    })
}

struct Mediator {
    listener: OwnedFd,
    judge: Judge,
}

impl Mediator {
    fn answer(&self, id: u64, result: Result<i64, Errno>) {
        // ENOENT: the caller was killed meanwhile; nobody waits for the answer.
        let _ = crate::sys::seccomp::answer(&self.listener, id, result);
    }
}

impl Work for Mediator {
    type Memory = Last;

    fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    fn take(&self) -> Result<Option<Taken>, Errno> {
        match crate::sys::seccomp::receive(&self.listener) {
            Ok(taken) => Ok(Some(taken)),
            // The caller died between poll and receive, or a signal came.
            Err(Errno::ENOENT | Errno::EINTR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn work(&self, taken: Taken, last: &mut Last) {
        let mut carried_out = || {
            let request = Request::read(taken.number, taken.args)?;
            if let Request::Message { first_of: Some(0), .. } = request {
                return Ok(0);
            }
            let caller = Caller::new(taken.tid);
            if let Request::Permissions(change) = request {
                return self.judge.change(change, &caller, last, || self.waits(taken.id));
            }
            self.judge
                .prepare(request, caller, last, || self.waits(taken.id))?
                .carry_out()
        };
        let result = carried_out();
        self.answer(taken.id, result);
    }

    fn refuse(&self, taken: Taken, errno: Errno) {
        self.answer(taken.id, Err(errno));
    }

    fn waits(&self, id: u64) -> bool {
        crate::sys::seccomp::still_waits(&self.listener, id)
    }
}
