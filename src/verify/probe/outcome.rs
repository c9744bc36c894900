//! What an attempt met, and what two outcomes together prove.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// The result of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", content = "errno", rename_all = "kebab-case")]
pub enum Tried {
    /// It worked.
    Done,
    /// The kernel, or the broker, said no: EACCES, EPERM or EROFS.
    Denied(i32),
    /// There is nothing of the kind here: no such path, process, route, protocol or system call.
    Absent,
    /// Nobody listens there.
    Refused,
    /// No answer within two seconds. That is no denial.
    TimedOut,
    /// Anything else. That is no denial either.
    Error(i32),
}

impl Tried {
    /// Sorts an errno.
    pub fn from_errno(errno: Errno) -> Tried {
        match errno {
            Errno::EACCES | Errno::EPERM | Errno::EROFS => Tried::Denied(errno as i32),
            Errno::ENOENT
            | Errno::ENOTDIR
            | Errno::ESRCH
            | Errno::ENXIO
            | Errno::ENODEV
            | Errno::ENOSYS
            | Errno::EAFNOSUPPORT
            | Errno::EPROTONOSUPPORT
            | Errno::EOPNOTSUPP
            | Errno::ESOCKTNOSUPPORT
            | Errno::ENETUNREACH
            | Errno::EHOSTUNREACH
            | Errno::EADDRNOTAVAIL => Tried::Absent,
            Errno::ECONNREFUSED => Tried::Refused,
            Errno::ETIMEDOUT | Errno::EAGAIN | Errno::EINPROGRESS => Tried::TimedOut,
            errno => Tried::Error(errno as i32),
        }
    }

    /// Sorts an error of the standard library.
    pub fn from_io(error: &std::io::Error) -> Tried {
        match (error.raw_os_error(), error.kind()) {
            (Some(raw), _) => Tried::from_errno(Errno::from_raw(raw)),
            (None, std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock) => Tried::TimedOut,
            (None, _) => Tried::Error(0),
        }
    }
}

/// One attempt with what it met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub attempt: String,
    #[serde(flatten)]
    pub result: Tried,
    /// The kernel's or the broker's words, or what was found. It may quote unknown text: escape it before showing.
    pub detail: String,
}

/// What an attempt inside proves, together with its control outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It worked outside and is kept from working inside.
    Held,
    /// It worked inside.
    Escaped,
    /// It is denied to this user outside as well, so the sandbox has nothing to add; not counted as proof.
    DeniedAnyway,
    /// It worked outside, and inside it met silence or an error that is no denial.
    Unproven,
    /// The control failed: nothing is known.
    NoControl,
}

impl Verdict {
    /// Judges an attempt that must not work inside.
    pub fn of(control: &Outcome, inside: &Outcome) -> Verdict {
        match (control.result, inside.result) {
            (_, Tried::Done) => Verdict::Escaped,
            (Tried::Done, Tried::Denied(_) | Tried::Absent | Tried::Refused) => Verdict::Held,
            (Tried::Done, _) => Verdict::Unproven,
            (Tried::Denied(_) | Tried::Absent, Tried::Denied(_) | Tried::Absent) => Verdict::DeniedAnyway,
            _ => Verdict::NoControl,
        }
    }
}
