//! The command's own part: its streams, Landlock, seccomp, the gate, exec.

use super::{Inside, NO_OP, Stream};
use crate::policy::Datagrams;
use crate::sandbox::gate::{self, Report};
use crate::sandbox::layers::seccomp::Mediated;
use crate::sandbox::layers::{descriptors, landlock};
use crate::sandbox::plan::{Op, canary};
use nix::errno::Errno;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, setpgid};
use std::convert::Infallible;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

type Step<T> = Result<T, (u16, Errno)>;

/// Never returns: ends in the exec of the command, or in the exit of this process.
pub fn run(inside: &Inside<'_>, terminal: Option<&OwnedFd>) -> ! {
    if let Err((op, errno)) = hold(inside, terminal) {
        let _ = gate::send(&inside.control, Report::Failed { op, errno }, &[]);
        crate::sys::clone::leave(1)
    }
    if wait_at_gate(inside).is_err() {
        crate::sys::clone::leave(1)
    }
    let Err(errno) = execute(inside);
    let _ = gate::send(&inside.control, Report::NotExecuted { errno }, &[]);
    crate::sys::clone::leave(if errno == Errno::ENOENT { 127 } else { 126 })
}

/// Applies everything that is the command's own, and says that it is held.
fn hold(inside: &Inside<'_>, terminal: Option<&OwnedFd>) -> Step<()> {
    let at = |wanted: fn(&Op) -> bool| {
        let op = inside.position(wanted);
        move |errno| (op, errno)
    };
    lead_group(terminal).map_err(at(|op| matches!(op, Op::Terminal)))?;
    streams(inside, terminal).map_err(at(|op| matches!(op, Op::Terminal)))?;
    let keep = [inside.control.as_raw_fd(), inside.gate.as_raw_fd()];
    descriptors::apply(&keep).map_err(at(|op| matches!(op, Op::CloseDescriptors)))?;
    umask(Mode::from_bits_truncate(inside.umask));
    enter_workdir(inside).map_err(at(|op| matches!(op, Op::Exec { .. })))?;
    crate::sys::clone::default_signals(&inside.ignored).map_err(|errno| (NO_OP, errno))?;
    let on_landlock = at(|op| matches!(op, Op::Landlock));
    let canary = canary(inside.policy).map_err(|_| on_landlock(Errno::EINVAL))?;
    let before = landlock::read_canary(&canary);
    let domain =
        landlock::apply(inside.policy, name_of(terminal).as_deref()).map_err(at(|op| matches!(op, Op::Landlock)))?;
    let after = landlock::read_canary(&canary);
    let on_seccomp = at(|op| matches!(op, Op::Seccomp));
    match inside.policy.datagrams {
        Datagrams::Refused => filter(inside, domain),
        Datagrams::Mediated => filter_by_messenger(inside, domain),
    }
    .map_err(on_seccomp)?;
    gate::send(&inside.control, Report::Held { before, after }, &[]).map_err(|errno| (NO_OP, errno))
}

/// Puts on the filters, and hands out the mediator's listener.
fn filter(inside: &Inside<'_>, domain: ::landlock::RulesetStatus) -> nix::Result<()> {
    let listener = inside.filters.install(Mediated::Yes)?;
    let given: Vec<_> = listener.iter().map(AsRawFd::as_raw_fd).collect();
    // Verification begins with the message after this one: the listener must be gone from here by then, and is.
    gate::send(&inside.control, Report::filtered(domain), &given)
}

/// The same where a send with descriptors is itself decided by whoever has the listener: another process, which has the
/// same descriptors and no filter, hands it out.
fn filter_by_messenger(inside: &Inside<'_>, domain: ::landlock::RulesetStatus) -> nix::Result<()> {
    let (told, tell) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let Some(messenger) = crate::sys::clone::sharing_descriptors()? else {
        let mut number = [0; 4];
        let sent = match nix::unistd::read(&told, &mut number) {
            Ok(4) => gate::send(&inside.control, Report::filtered(domain), &[i32::from_ne_bytes(number)]),
            _ => Err(Errno::EPIPE),
        };
        crate::sys::clone::leave(i32::from(sent.is_err()))
    };
    let listener = inside
        .filters
        .install(Mediated::Yes)
        .and_then(|listener| listener.ok_or(Errno::EINVAL));
    if let Ok(listener) = &listener {
        nix::unistd::write(&tell, &listener.as_raw_fd().to_ne_bytes())?;
    }
    // Closes it for the messenger too, which then ends if it was told nothing.
    drop(tell);
    let ended = nix::sys::wait::waitpid(Pid::from_raw(messenger), None)?;
    listener?;
    match ended {
        nix::sys::wait::WaitStatus::Exited(_, 0) => Ok(()),
        _ => Err(Errno::EPIPE),
    }
}

/// Its own process group in the sandbox's session, so that it can be stopped and continued; without a terminal its own
/// session, so that none can become its.
fn lead_group(terminal: Option<&OwnedFd>) -> nix::Result<()> {
    match terminal {
        Some(slave) => {
            setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
            // All signals are still blocked, so a background process may do this.
            nix::unistd::tcsetpgrp(slave, nix::unistd::getpid())
        }
        None => nix::unistd::setsid().map(drop),
    }
}

fn streams(inside: &Inside<'_>, terminal: Option<&OwnedFd>) -> nix::Result<()> {
    let source = |stream| match stream {
        &Stream::Inherited => None,
        Stream::Terminal => terminal.map(AsFd::as_fd),
        Stream::File(file) => Some(file.as_fd()),
    };
    let [stdin, stdout, stderr] = &inside.streams;
    source(stdin).map_or(Ok(()), nix::unistd::dup2_stdin)?;
    source(stdout).map_or(Ok(()), nix::unistd::dup2_stdout)?;
    source(stderr).map_or(Ok(()), nix::unistd::dup2_stderr)
}

/// The path of an open terminal, for the wall that goes by paths.
fn name_of(terminal: Option<&OwnedFd>) -> Option<PathBuf> {
    let number = terminal?.as_raw_fd();
    std::fs::read_link(format!("/proc/self/fd/{number}")).ok()
}

fn enter_workdir(inside: &Inside<'_>) -> nix::Result<()> {
    nix::unistd::chdir(inside.policy.workdir.as_path())
}

/// One byte means go; the end of the pipe means that the supervisor is gone.
fn wait_at_gate(inside: &Inside<'_>) -> nix::Result<()> {
    let mut byte = [0; 1];
    loop {
        match nix::unistd::read(&inside.gate, &mut byte) {
            Ok(1) => return Ok(()),
            Err(Errno::EINTR) => {}
            _ => return Err(Errno::EPIPE),
        }
    }
}

/// execve; a program without a slash is looked for on the sandbox's PATH, as execvp(3) does.
fn execute(inside: &Inside<'_>) -> Result<Infallible, Errno> {
    let program = inside
        .argv
        .first()
        .filter(|program| !program.is_empty())
        .ok_or(Errno::ENOENT)?;
    if program.as_bytes().contains(&b'/') {
        return nix::unistd::execve(program.as_c_str(), &inside.argv, &inside.environment);
    }
    let mut worst = Errno::ENOENT;
    for folder in &inside.path {
        let path = folder.as_path().join(std::ffi::OsStr::from_bytes(program.as_bytes()));
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
            continue;
        };
        let Err(errno) = nix::unistd::execve(path.as_c_str(), &inside.argv, &inside.environment);
        if !matches!(errno, Errno::ENOENT | Errno::ENOTDIR) {
            worst = errno;
        }
    }
    Err(worst)
}
