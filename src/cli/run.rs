//! `pinfold run`: one command in one sandbox.

use super::Outcome;
use super::args::Run;
use super::changes::warn;
use super::output::{say, say_json, tell};
use super::why_last::hint;
use crate::base::text::visible;
use crate::base::{AbsPath, Explain, Kind};
use crate::launch::denials::sockets;
use crate::launch::enclose::missing;
use crate::launch::run::{Progress, dry_run, line, run_name};
use crate::launch::{Setting, Wish};
use crate::policy::{Policy, Promise, Sought, Topic, explain, sought};
use crate::sandbox::{Exit, describe};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

/// The descriptor that was named is not one to write to.
#[derive(Debug, thiserror::Error)]
#[error("--status-fd {0} is not an open descriptor above 2")]
struct StatusFd(i32);

impl Explain for StatusFd {
    fn kind(&self) -> Kind {
        Kind::Usage
    }
    fn hint(&self) -> Option<String> {
        Some("open it in the calling shell, for example with 3>status.json".into())
    }
}

/// Runs it, and passes its exit status on. `begun` is when this process entered `main`.
pub fn run(args: Run, begun: Instant) -> Outcome {
    let mut status = args.status_fd.map(open).transpose()?;
    let setting = Setting::find()?;
    let program = args.command.first().cloned().unwrap_or_default();
    let wish = Wish::from(args.grants);
    if args.dry_run {
        return show_plan(&wish, args.command, &setting, args.json);
    }
    let mut launched = None;
    let exit = line(&wish, args.command, &setting, &mut |progress| {
        match &progress {
            Progress::Resolved(policy) => warnings(policy),
            Progress::Verified(report) => report.unlayered.iter().for_each(tell_unlayered),
            Progress::Changed(changes, name) => warn(changes, name),
            Progress::Held { launch, policy, .. } => {
                launched = Some(run_name(launch));
                promises(policy);
            }
            _ => {}
        }
        if let Some(status) = status.as_mut() {
            say_status(status, timed(event(&progress), begun));
        }
    });
    if let (Err(fault), Some(status)) = (&exit, status.as_mut()) {
        let failed = serde_json::json!({
            "event": "failed", "kind": fault.kind().word(), "message": fault.to_string(), "hint": fault.hint(),
        });
        say_status(status, timed(failed, begun));
    }
    let exit = exit?;
    if let (true, Exit::NotExecuted(errno)) = (args.json, exit) {
        let kind = if errno == nix::errno::Errno::ENOENT {
            "not-found"
        } else {
            "not-executable"
        };
        say_json(&serde_json::json!({
            "ok": false, "errorKind": kind, "message": format!("the command cannot be run inside: {}", errno.desc()),
        }));
    }
    if let (Some(session), 1..) = (launched, exit.status()) {
        sought(&program, &sockets(&session, &setting))
            .iter()
            .for_each(tell_sought);
        hint(&session, &setting);
    }
    Ok(passed_on(exit, &program))
}

/// The command's status; that it could not be run is told.
pub fn passed_on(exit: Exit, program: &OsStr) -> ExitCode {
    if let Exit::NotExecuted(errno) = exit {
        tell(format_args!(
            "pinfold: {} cannot be run inside: {}",
            visible(program),
            errno.desc()
        ));
        tell(match errno {
            nix::errno::Errno::ENOENT => {
                "  only granted paths are visible: `pinfold why PATH` says which, --read PATH grants one"
            }
            _ => "  it is there, but it is not a program that can be executed",
        });
    }
    ExitCode::from(exit.status())
}

fn open(fd: i32) -> Result<File, StatusFd> {
    crate::sys::descriptor::inherited(fd)
        .map(File::from)
        .map_err(|_| StatusFd(fd))
}

/// What a person should know before a launch runs, from the policy.
pub fn warnings(policy: &Policy) {
    for note in policy.notes.iter().filter(|note| note.topic == Topic::Warning) {
        tell(format_args!(
            "pinfold: {}: {}",
            visible(&note.subject),
            visible(&note.text)
        ));
    }
}

/// What a promise that may be missing came to, in the mode that is in force.
pub fn promises(policy: &Policy) {
    let missing = missing(policy);
    for (promise, why) in &missing {
        tell(format_args!(
            "pinfold: reduced mode, without {}: {why}",
            promise.full_name()
        ));
    }
    let kept = policy
        .weakened
        .iter()
        .filter(|kept| !missing.iter().any(|(promise, _)| promise == *kept));
    for promise in kept {
        tell(format_args!(
            "pinfold: {} may be missing, and is not: all of it is enforced here",
            promise.full_name()
        ));
    }
}

/// A package cache that is not warm.
fn tell_unlayered(cache: &AbsPath) {
    tell(format_args!(
        "pinfold: {} is empty inside: this machine can lay nothing over it (overlayfs), and unprotected it is not shown",
        visible(cache.as_path())
    ));
}

/// A service of the host that the command looked for before it failed.
fn tell_sought(service: &Sought) {
    let at = service.socket.as_ref().map(|path| format!(" at {}", visible(path)));
    let Sought { name, why, grant, .. } = service;
    tell(format_args!(
        "pinfold: the command needs {name}, which is not there inside{}: {why}",
        at.unwrap_or_default()
    ));
    tell(format_args!(
        "  {}",
        grant
            .as_deref()
            .unwrap_or("there is no way to it from inside; run that part yourself, outside")
    ));
}

/// One line in one write; a reader that is gone changes nothing.
fn say_status(status: &mut File, event: serde_json::Value) {
    let _ = status.write_all(format!("{event}\n").as_bytes());
}

/// The same with `us`: microseconds since this process entered `main`, on the monotonic clock.
fn timed(mut event: serde_json::Value, begun: Instant) -> serde_json::Value {
    let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    if let Some(event) = event.as_object_mut() {
        event.insert("us".into(), us.into());
    }
    event
}

fn event(progress: &Progress<'_>) -> serde_json::Value {
    use serde_json::json;
    match progress {
        Progress::Resolved(_) => json!({"event": "resolved"}),
        Progress::Held {
            launch,
            first,
            command,
            given,
            policy,
        } => {
            let missing = missing(policy).into_iter().map(|(promise, _)| promise);
            let missing: Vec<Promise> = missing.collect();
            json!({
                "event": "held", "launch": launch.as_str(), "first": first, "command": command, "given": given,
                "mode": policy.mode(), "missing": missing,
            })
        }
        Progress::Verified(report) => json!({"event": "verified", "report": report}),
        Progress::Released => json!({"event": "released"}),
        Progress::Ended(exit) => {
            let signal = match exit {
                Exit::Signal(number) => Some(*number),
                _ => None,
            };
            json!({"event": "ended", "status": exit.status(), "signal": signal})
        }
        Progress::Changed(changes, name) => {
            json!({"event": "changed", "paths": changes.paths(), "changes": changes, "kept": name})
        }
    }
}

fn show_plan(wish: &Wish, argv: Vec<OsString>, setting: &Setting, as_json: bool) -> Outcome {
    let (policy, ops) = dry_run(wish, argv, setting)?;
    if as_json {
        say_json(&serde_json::json!({"policy": explain(&policy), "plan": ops}));
        return Ok(ExitCode::SUCCESS);
    }
    for op in &ops {
        say(describe(op));
    }
    Ok(ExitCode::SUCCESS)
}
