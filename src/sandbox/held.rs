//! Waiting until both processes inside have said that they are ready.

use super::failure::{SpawnError, failed, step};
use super::gate::{self, Report};
use super::layers::network;
use super::plan::Op;
use crate::base::Pid;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd as _, OwnedFd};

/// Seconds until a sandbox that is not held counts as stuck.
const PATIENCE: u64 = 30;

/// What came out of the sandbox while it was made.
pub(super) struct Held {
    pub command: Pid,
    pub canary: (i32, i32),
    /// Whether Landlock gave all that was asked for.
    pub landlock: bool,
    pub terminal: Option<OwnedFd>,
    pub inlets: Vec<OwnedFd>,
    pub listener: OwnedFd,
    pub diag: OwnedFd,
}

/// Reads reports until the command is held and the first process tends.
pub(super) fn await_held(control: &OwnedFd, ops: &[Op]) -> Result<Held, SpawnError> {
    let mut prepared: Option<Vec<OwnedFd>> = None;
    let mut tending = false;
    let mut listener: Option<OwnedFd> = None;
    let mut landlock = false;
    let mut held: Option<(Pid, (i32, i32))> = None;
    loop {
        let arrived = next_report(control)?;
        match arrived.report {
            Report::Failed { op, errno } => return Err(failed(ops, op, errno)),
            Report::Prepared => prepared = Some(arrived.descriptors),
            Report::Tending => tending = true,
            Report::Filtered { whole } => {
                listener = arrived.descriptors.into_iter().next();
                landlock = whole == 1;
            }
            Report::Held { before, after } => {
                let command = arrived.sender.and_then(Pid::new).ok_or(SpawnError::Gone)?;
                held = Some((command, (before, after)));
            }
            _ => return Err(SpawnError::Gone),
        }
        if !tending {
            continue;
        }
        if let Some((command, canary)) = held.take() {
            let mut given = prepared.ok_or(SpawnError::Gone)?;
            let terminal = ops.contains(&Op::Terminal).then(|| given.pop()).flatten();
            let mut given = given.into_iter();
            let diag = match ops.contains(&Op::Loopback) {
                true => given.next().ok_or(SpawnError::Gone)?,
                // No network of its own: the supervisor's is the sandbox's.
                false => network::diag().map_err(step("opening a socket for questions about sockets"))?,
            };
            let listener = listener.ok_or(SpawnError::Gone)?;
            return Ok(Held {
                command,
                canary,
                landlock,
                terminal,
                inlets: given.collect(),
                listener,
                diag,
            });
        }
    }
}

fn next_report(control: &OwnedFd) -> Result<gate::Arrived, SpawnError> {
    let limit = PollTimeout::try_from(PATIENCE * 1000).unwrap_or(PollTimeout::MAX);
    loop {
        let mut polled = [PollFd::new(control.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, limit) {
            Ok(0) => return Err(SpawnError::Slow(PATIENCE)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(step("waiting for the sandbox")(errno)),
            Ok(_) => {
                return gate::receive(control)
                    .map_err(step("reading from the sandbox"))?
                    .ok_or(SpawnError::Gone);
            }
        }
    }
}
