//! The control socket between the supervisor and the inside: fixed little messages, never text. What comes in after
//! release is untrusted: an unknown or short message is an error, not a guess.

use nix::errno::Errno;
use nix::sys::signal::Signal;
use std::os::fd::{AsFd, OwnedFd, RawFd};

/// What the inside says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// Operation number `op` of the plan failed.
    Failed { op: u16, errno: Errno },
    /// The first process has applied its part; the terminal and the inlets come with it.
    Prepared,
    /// The command has put on its filters; the mediator's listener comes with it, if there is one. `whole` is 0 where
    /// Landlock gave less than was asked for.
    Filtered { whole: i32 },
    /// The command is held at the gate and has nothing open any more that it did not get; with the canary's error
    /// numbers before and after Landlock (0: it could be read).
    Held { before: i32, after: i32 },
    /// The first process has put on its own part, and only reaps and relays from here on.
    Tending,
    /// The program could not be executed.
    NotExecuted { errno: Errno },
    /// The command ended with this code.
    Exited { code: i32 },
    /// The command was ended by this signal number.
    Killed { signal: i32 },
    /// The command was stopped (ctrl-Z).
    Stopped,
    /// Nothing inside runs any more, as was asked for; `whole` is 0 if something could not be stopped.
    Frozen { whole: i32 },
}

/// What the supervisor asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Send this signal to the command's process group.
    Signal(Signal),
    /// Continue the command after a stop.
    Continue,
    /// Stop everything, and say so.
    Freeze,
    /// Let go on what was stopped by that.
    Thaw,
}

/// Bytes of every message.
pub const LENGTH: usize = 12;

impl Report {
    /// That filters are on, with what Landlock said of its domain.
    pub fn filtered(domain: landlock::RulesetStatus) -> Report {
        let whole = i32::from(domain == landlock::RulesetStatus::FullyEnforced);
        Report::Filtered { whole }
    }

    /// The wire form: tag, op, two numbers.
    pub fn encode(self) -> [u8; LENGTH] {
        let (tag, op, a, b): (u8, u16, i32, i32) = match self {
            Report::Failed { op, errno } => (1, op, errno as i32, 0),
            Report::Prepared => (2, 0, 0, 0),
            Report::Held { before, after } => (3, 0, before, after),
            Report::NotExecuted { errno } => (4, 0, errno as i32, 0),
            Report::Exited { code } => (5, 0, code, 0),
            Report::Killed { signal } => (6, 0, signal, 0),
            Report::Stopped => (7, 0, 0, 0),
            Report::Tending => (8, 0, 0, 0),
            Report::Filtered { whole } => (9, 0, whole, 0),
            Report::Frozen { whole } => (10, 0, whole, 0),
        };
        let mut bytes = [0; LENGTH];
        bytes[0] = tag;
        bytes[2..4].copy_from_slice(&op.to_le_bytes());
        bytes[4..8].copy_from_slice(&a.to_le_bytes());
        bytes[8..12].copy_from_slice(&b.to_le_bytes());
        bytes
    }

    /// The message, or nothing if these are not the bytes of one.
    pub fn decode(bytes: &[u8]) -> Option<Report> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let op = u16::from_le_bytes([bytes[2], bytes[3]]);
        let a = i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let b = i32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        Some(match bytes[0] {
            1 => Report::Failed {
                op,
                errno: Errno::from_raw(a),
            },
            2 => Report::Prepared,
            3 => Report::Held { before: a, after: b },
            4 => Report::NotExecuted {
                errno: Errno::from_raw(a),
            },
            5 => Report::Exited { code: a & 0xff },
            6 => Report::Killed { signal: a & 0x7f },
            7 => Report::Stopped,
            8 => Report::Tending,
            9 => Report::Filtered { whole: a & 1 },
            10 => Report::Frozen { whole: a & 1 },
            _ => return None,
        })
    }
}

impl Request {
    /// The wire form.
    pub fn encode(self) -> [u8; 2] {
        match self {
            Request::Signal(signal) => [1, u8::try_from(signal as i32).unwrap_or(0)],
            Request::Continue => [2, 0],
            Request::Freeze => [3, 0],
            Request::Thaw => [4, 0],
        }
    }

    /// The message, or nothing if these are not the bytes of one.
    pub fn decode(bytes: &[u8]) -> Option<Request> {
        match bytes {
            [1, signal] => Signal::try_from(i32::from(*signal)).ok().map(Request::Signal),
            [2, 0] => Some(Request::Continue),
            [3, 0] => Some(Request::Freeze),
            [4, 0] => Some(Request::Thaw),
            _ => None,
        }
    }
}

/// Sends a report with descriptors.
pub fn send(control: impl AsFd, report: Report, descriptors: &[RawFd]) -> nix::Result<()> {
    crate::sys::descriptor::send(control.as_fd(), &report.encode(), descriptors)
}

/// One report as it came: nothing when the other side is gone.
pub struct Arrived {
    pub report: Report,
    pub descriptors: Vec<OwnedFd>,
    /// The sender's process id on the host.
    pub sender: Option<i32>,
}

/// Receives one report; `None` when the inside is gone.
pub fn receive(control: impl AsFd) -> nix::Result<Option<Arrived>> {
    let mut buffer = [0; LENGTH + 1];
    let got = loop {
        match crate::sys::descriptor::receive(control.as_fd(), &mut buffer) {
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) => return Ok(None),
            other => break other?,
        }
    };
    if got.length == 0 {
        return Ok(None);
    }
    let report = buffer
        .get(..got.length)
        .and_then(Report::decode)
        .ok_or(Errno::EBADMSG)?;
    Ok(Some(Arrived {
        report,
        descriptors: got.descriptors,
        sender: got.sender,
    }))
}

#[cfg(test)]
mod tests {
    use super::{LENGTH, Report, Request};
    use nix::errno::Errno;
    use nix::sys::signal::Signal;

    #[test]
    fn every_report_survives_the_wire() {
        for report in [
            Report::Failed {
                op: 700,
                errno: Errno::EPERM,
            },
            Report::Prepared,
            Report::Held { before: 0, after: 13 },
            Report::NotExecuted { errno: Errno::ENOENT },
            Report::Exited { code: 42 },
            Report::Killed { signal: 9 },
            Report::Stopped,
            Report::Tending,
            Report::Filtered { whole: 1 },
            Report::Frozen { whole: 1 },
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
    }

    #[test]
    fn a_short_long_or_unknown_message_is_not_guessed_at() {
        assert_eq!(Report::decode(&[2; LENGTH - 1]), None);
        assert_eq!(Report::decode(&[2; LENGTH + 1]), None);
        assert_eq!(Report::decode(&[99; LENGTH]), None);
        assert_eq!(Request::decode(&[1]), None);
        assert_eq!(Request::decode(&[1, 200]), None);
        for request in [Request::Continue, Request::Freeze, Request::Thaw] {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        assert_eq!(
            Request::decode(&Request::Signal(Signal::SIGTERM).encode()),
            Some(Request::Signal(Signal::SIGTERM))
        );
    }
}
