//! `pinfold bridge`: what runs in an agent's pane.

use super::Outcome;
use super::args::Bridge;
use super::output::{fail, tell};
use super::run::{warn, warnings};
use super::status::{Wraps, of_failure};
use super::why_last::hint;
use crate::base::text::visible;
use crate::launch::Setting;
use crate::launch::begin::bridge;
use crate::launch::session::Progress;
use crate::sandbox::Exit;
use crate::sandbox::attend::Signals;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, tcflush};
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a failure stays readable in a pane that closes with its program.
const READABLE: Duration = Duration::from_secs(60);

/// Runs the session of a launch that `start` has recorded.
pub fn run(args: Bridge) -> Outcome {
    let setting = Setting::find()?;
    match bridge(&args.launch, &setting, &mut progress) {
        Ok((record, ended)) => {
            warn(&ended.changed);
            if ended.exit.status() != 0 {
                hint(&record.session_name, &setting);
            }
            if let Exit::Code(status @ 1..=125) = ended.exit {
                tell(format_args!("pinfold: the agent's client ended with status {status}"));
            }
            if !ended.changed.is_empty() || matches!(ended.exit, Exit::Code(1..=125)) {
                linger(&setting.signals);
            }
            Ok(ExitCode::from(ended.exit.status()))
        }
        Err(fault) => {
            fail(&fault, false);
            linger(&setting.signals);
            Ok(ExitCode::from(of_failure(Wraps::Command, fault.kind())))
        }
    }
}

/// Keeps the pane open until Enter, until somebody asks for an end, or for a minute; not at all if somebody has asked.
fn linger(signals: &Signals) {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() || signals.ending().is_some() {
        return;
    }
    // What was typed ahead, for an agent that did not come, is no answer to this.
    let _ = tcflush(&stdin, FlushArg::TCIFLUSH);
    tell("  (Enter closes this pane)");
    let end = Instant::now() + READABLE;
    while signals.ending().is_none() {
        let mut polled = [
            PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.file(), PollFlags::POLLIN),
        ];
        let left = end.saturating_duration_since(Instant::now());
        let ready = poll(&mut polled, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        let typed = polled[0].revents().is_some_and(|events| !events.is_empty());
        if typed || ready.is_ok_and(|count| count == 0) {
            return;
        }
    }
}

/// One line a step: without it a pane would stay empty for the seconds that an agent takes to start.
pub fn progress(step: Progress<'_>) {
    match step {
        Progress::Held(server) => {
            let root = server.root.as_ref().map(|root| visible(root.as_path()));
            let (root, protected) = (root.unwrap_or_default(), server.protected.len());
            tell(format_args!(
                "pinfold: {root} is granted; {protected} places in it are protected"
            ));
            warnings(server);
        }
        Progress::ServerPassed(report) => {
            let (checks, took) = (report.checks.len(), report.took_ms);
            let text = "the server is enclosed and verified";
            tell(format_args!(
                "pinfold: {text} ({checks} checks, {took} ms); it starts now, which takes some seconds"
            ));
        }
        Progress::Ready(ready) => {
            tell(format_args!(
                "pinfold: the server answers after {} ms",
                ready.after.as_millis()
            ));
        }
    }
}
