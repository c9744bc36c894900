//! The guard: what no mount can hold, because nothing stands there yet or because it is a link.
//!
//! An unprivileged process cannot make a name impossible: a mount needs something to stand on, which would be left on
//! the host, and file calls are never trapped. So a thread of the supervisor, outside, watches the folders above each
//! such path. Whatever appears there is moved aside at once, to a name that no tool reads. This is a reaction within
//! about a millisecond, not a refusal of the kernel's.

mod keeper;
mod notices;
mod places;

use crate::base::{AbsPath, Explain, Kind};
use crate::policy::Policy;
use keeper::Keeper;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use notices::Notices;
use places::Place;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Something that was made where nothing may be, and moved aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub path: AbsPath,
    pub reason: String,
    /// What it is called now, each time; a link that was only put back has no other name.
    pub aside: Vec<AbsPath>,
    pub times: usize,
}

/// A protected file that something tried to replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub path: AbsPath,
    pub reason: String,
}

/// What the guard has seen in one launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub refused: Vec<Refused>,
    pub tried: Vec<Tried>,
    /// Paths that could not be looked at when the launch began.
    pub unguarded: Vec<AbsPath>,
    /// The kernel had no room for watches, so everything was looked at twenty times a second.
    pub polled: bool,
}

/// Puts back covers that the host took away; says who was quicker.
pub type Mend = Box<dyn Fn() -> Result<(), String> + Send>;

/// Why a launch is not guarded, or not any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("{0} appeared while the sandbox was made")]
    Appeared(AbsPath),
    #[error("something inside makes {0} again and again, which is protected")]
    Insisted(AbsPath),
    #[error("what stands at {0} cannot be moved aside ({1})")]
    Failed(AbsPath, Errno),
    #[error("changes of protected paths are not noticed any more ({0})")]
    Blind(Errno),
    #[error("a protected file was replaced from outside, and {0}")]
    Opened(String),
    #[error("nobody guards the protected paths any more")]
    Gone,
}

impl Explain for Trouble {
    fn kind(&self) -> Kind {
        Kind::Unconfined
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Trouble::Appeared(_) => "look at it, and start again".into(),
            Trouble::Insisted(_) | Trouble::Failed(..) => {
                "look at it before you use it; if it is yours, make it before the launch".into()
            }
            Trouble::Opened(_) => "look at it before you use it, and start again".into(),
            Trouble::Blind(_) | Trouble::Gone => "start again".into(),
        })
    }
}

/// A guard at work; dropped, it has ended.
#[derive(Debug)]
pub struct Guard {
    /// Closed, it ends the thread.
    wish: Option<OwnedFd>,
    /// Readable once the thread has ended.
    ended: OwnedFd,
    outcome: Arc<Mutex<(Kept, Option<Trouble>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    /// Guards what the policy protects and no mount holds. Call it before anything untrusted runs.
    /// `mend` puts back covers that the host took away.
    pub fn start(policy: &Policy, mend: Mend) -> Result<Guard, Trouble> {
        let link = |path: &AbsPath| std::fs::read_link(path).ok();
        Guard::over(places::places(policy, link), Notices::new(), mend)
    }

    fn over(places: Vec<Place>, notices: Notices, mend: Mend) -> Result<Guard, Trouble> {
        let pipe = || nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(Trouble::Blind);
        let ((done, wish), (ended, bell)) = (pipe()?, pipe()?);
        let mut keeper = Keeper::new(places, notices, mend)?;
        let outcome = Arc::new(Mutex::new((Kept::default(), None)));
        let theirs = Arc::clone(&outcome);
        let work = move || {
            let trouble = keeper.keep(&done).err();
            if let Ok(mut outcome) = theirs.lock() {
                *outcome = (keeper.kept, trouble);
            }
            drop(bell);
        };
        let thread = std::thread::Builder::new().name("guard".into()).spawn(work);
        let thread = thread.map_err(|_| Trouble::Blind(Errno::EAGAIN))?;
        Ok(Guard {
            wish: Some(wish),
            ended,
            outcome,
            thread: Some(thread),
        })
    }

    /// What to poll: readable when the launch must end.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Why the launch must end; nothing while all is well.
    pub fn trouble(&self) -> Option<Trouble> {
        let mut polled = [nix::poll::PollFd::new(self.wake(), nix::poll::PollFlags::POLLIN)];
        let ready = nix::poll::poll(&mut polled, nix::poll::PollTimeout::ZERO);
        if ready == Ok(0) {
            return None;
        }
        let told = self.outcome.lock().ok().and_then(|outcome| outcome.1.clone());
        Some(told.unwrap_or(Trouble::Gone))
    }

    /// Looks once more, now that nothing runs any more, and says what it has seen.
    pub fn finish(mut self) -> (Kept, Option<Trouble>) {
        self.end();
        self.outcome.lock().map(|outcome| outcome.clone()).unwrap_or_default()
    }

    fn end(&mut self) {
        drop(self.wish.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
