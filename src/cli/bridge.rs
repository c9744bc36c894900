//! `pinfold bridge`: what runs in an agent's pane.

use super::Outcome;
use super::args::Bridge;
use super::output::{fail, tell};
use super::run::warn;
use crate::base::Fault;
use crate::launch::Setting;
use crate::launch::begin::bridge;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::process::ExitCode;

/// How long a failure stays readable in a pane that closes with its program, in milliseconds.
const READABLE: u16 = 60_000;

/// Runs the session of a launch that `start` has recorded.
pub fn run(args: Bridge) -> Outcome {
    let outcome = Setting::find().and_then(|setting| bridge(&args.launch, &setting));
    match outcome {
        Ok((_, ended)) => {
            warn(&ended.changed);
            if !ended.changed.is_empty() {
                linger();
            }
            Ok(ExitCode::from(ended.exit.status()))
        }
        Err(fault) => Ok(told(&fault)),
    }
}

fn told(fault: &Fault) -> ExitCode {
    fail(fault, false);
    linger();
    ExitCode::from(super::status::OWN_FAILURE)
}

/// Keeps the pane open until Enter, or for a minute.
fn linger() {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        tell("  (Enter closes this pane)");
        let _ = poll(
            &mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)],
            PollTimeout::from(READABLE),
        );
    }
}
