//! PID 1 of the sandbox: applies the plan up to the command's own part, then reaps, relays stops and the exit, and
//! ends with the supervisor. When it ends, the kernel ends everything inside; in reduced mode it does so itself first.

use super::freeze::{Frozen, freeze};
use super::{Inside, NO_OP, Stream, command, descendants};
use crate::policy::Mode;
use crate::sandbox::gate::{self, Report, Request};
use crate::sandbox::layers::seccomp::Mediated;
use crate::sandbox::layers::{capabilities, descriptors, limits, mounts, namespaces, network, privileges};
use crate::sandbox::plan::Op;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

type Step<T> = Result<T, (u16, Errno)>;

/// A pseudo-terminal of the sandbox: the supervisor's side, which is handed out, and the command's.
struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
}

/// Never returns: ends in the exit of the namespace's first process.
pub fn run(inside: &Inside<'_>) -> ! {
    // A panic must neither print into the command's streams nor run on into the copied frames of the supervisor.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| live(inside)));
    if inside.mode() == Mode::Reduced {
        descendants::end_all();
    }
    let failure = match outcome {
        Ok(Ok(())) => crate::sys::clone::leave(0),
        Ok(Err(failure)) => failure,
        Err(_) => (NO_OP, Errno::ENOTRECOVERABLE),
    };
    let (op, errno) = failure;
    let _ = gate::send(&inside.control, Report::Failed { op, errno }, &[]);
    crate::sys::clone::leave(125)
}

fn live(inside: &Inside<'_>) -> Step<()> {
    let general = |errno| (NO_OP, errno);
    match inside.mode() {
        Mode::Full => nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(general)?,
        // It outlives a killed supervisor for as long as it takes to end everything below it.
        Mode::Reduced => nix::sys::prctl::set_child_subreaper(true).map_err(general)?,
    }
    stat::umask(stat::Mode::empty());
    let (terminal, handed_out) = prepare(inside)?;
    let child = crate::sys::clone::fork().map_err(general)?;
    let Some(child) = child else {
        let slave = terminal.as_ref().map(|terminal| &terminal.slave);
        command::run(inside, slave)
    };
    std::mem::forget(handed_out);
    let child = Pid::from_raw(child);
    // The command's side stays open here, so that the supervisor sees its end only with the end of the sandbox.
    let slave = terminal.map(|terminal| terminal.slave);
    if let Some(slave) = &slave {
        // Both sides do this, so that it has happened whichever runs first.
        let _ = nix::unistd::setpgid(child, child);
        let _ = nix::unistd::tcsetpgrp(slave, child);
    }
    let seccomp = inside.position(|op| matches!(op, Op::Seccomp));
    let keep: Vec<RawFd> = std::iter::once(&inside.control)
        .chain(&slave)
        .map(AsRawFd::as_raw_fd)
        .collect();
    descriptors::apply(&keep).map_err(general)?;
    detach_streams().map_err(general)?;
    inside.filters.install(Mediated::No).map_err(|errno| (seccomp, errno))?;
    gate::send(&inside.control, Report::Tending, &[]).map_err(general)?;
    tend(inside, child).map_err(general)
}

/// The plan up to the fork; what is handed out has then been sent.
fn prepare(inside: &Inside<'_>) -> Step<(Option<Terminal>, Vec<OwnedFd>)> {
    for (index, op) in inside.ops.iter().enumerate() {
        identity(op).map_err(|errno| (u16::try_from(index).unwrap_or(u16::MAX), errno))?;
    }
    if inside.mode() == Mode::Full {
        network::free_low_ports();
        mounts::apply(inside.ops, &inside.files)?;
    }
    nix::unistd::setsid().map_err(|errno| (NO_OP, errno))?;
    let mut terminal = None;
    let mut handed_out = Vec::new();
    for (index, op) in inside.ops.iter().enumerate() {
        let at = |errno| (u16::try_from(index).unwrap_or(u16::MAX), errno);
        match op {
            Op::Loopback => {
                network::loopback().map_err(at)?;
                // The first thing that is handed out, whatever else is.
                handed_out.push(network::diag().map_err(at)?);
            }
            Op::Inlet { port } => handed_out.push(network::inlet(*port).map_err(at)?),
            Op::Terminal => terminal = Some(open_terminal(inside.mode()).map_err(at)?),
            Op::Limits(_) => limits::apply(&inside.limits(), inside.memory_each).map_err(at)?,
            Op::DropCapabilities => capabilities::apply().map_err(at)?,
            Op::NoNewPrivileges => privileges::apply().map_err(at)?,
            Op::CloseDescriptors => descriptors::apply(&kept(inside, terminal.as_ref(), &handed_out)).map_err(at)?,
            _ => {}
        }
    }
    let master = terminal.iter().map(|terminal| terminal.master.as_raw_fd());
    let given: Vec<RawFd> = handed_out.iter().map(AsRawFd::as_raw_fd).chain(master).collect();
    gate::send(&inside.control, Report::Prepared, &given).map_err(|errno| (NO_OP, errno))?;
    block_signals().map_err(|errno| (NO_OP, errno))?;
    Ok((terminal, handed_out))
}

fn identity(op: &Op) -> nix::Result<()> {
    match op {
        Op::MapIds { uid, gid } => namespaces::map_ids(*uid, *gid),
        Op::Hostname(name) => nix::unistd::sethostname(name),
        _ => Ok(()),
    }
}

fn kept(inside: &Inside<'_>, terminal: Option<&Terminal>, handed_out: &[OwnedFd]) -> Vec<RawFd> {
    let mut keep = vec![inside.control.as_raw_fd(), inside.gate.as_raw_fd()];
    keep.extend(handed_out.iter().map(AsRawFd::as_raw_fd));
    keep.extend(
        terminal
            .into_iter()
            .flat_map(|terminal| [terminal.master.as_raw_fd(), terminal.slave.as_raw_fd()]),
    );
    keep.extend(inside.streams.iter().filter_map(|stream| match stream {
        Stream::File(file) => Some(file.as_raw_fd()),
        Stream::Inherited | Stream::Terminal => None,
    }));
    keep
}

/// A pseudo-terminal of the sandbox's own /dev/pts, or in reduced mode one of the machine's; it becomes this session's.
fn open_terminal(mode: Mode) -> nix::Result<Terminal> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let maker = match mode {
        Mode::Full => "/dev/pts/ptmx",
        Mode::Reduced => "/dev/ptmx",
    };
    let master = nix::fcntl::open(maker, flags, stat::Mode::empty())?;
    let number = crate::sys::terminal::unlock(&master)?;
    let slave = nix::fcntl::open(format!("/dev/pts/{number}").as_str(), flags, stat::Mode::empty())?;
    crate::sys::terminal::make_controlling(&slave)?;
    Ok(Terminal { master, slave })
}

fn block_signals() -> nix::Result<()> {
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)
}

/// Reaps and relays until the command has ended or the supervisor is gone.
fn tend(inside: &Inside<'_>, child: Pid) -> nix::Result<()> {
    let mut wanted = SigSet::empty();
    wanted.add(Signal::SIGCHLD);
    if inside.mode() == Mode::Reduced {
        // The supervisor's word to end, where the end of this process does not end the others.
        wanted.add(Signal::SIGTERM);
    }
    let signals = SignalFd::with_flags(&wanted, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let mut frozen = None;
    loop {
        let mut polled = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(inside.control.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut polled, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        let asked = polled[1].revents().is_some_and(|events| !events.is_empty());
        while let Some(signal) = signals.read_signal()? {
            if signal.ssi_signo == Signal::SIGTERM as u32 {
                return Ok(());
            }
        }
        if let Some(report) = reap(inside, child)? {
            if inside.mode() == Mode::Reduced {
                descendants::end_all();
            }
            return gate::send(&inside.control, report, &[]);
        }
        if asked && !obey(inside, child, &mut frozen)? {
            return Ok(());
        }
    }
}

/// Collects everything that has ended; the command's own end is what is reported.
fn reap(inside: &Inside<'_>, child: Pid) -> nix::Result<Option<Report>> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => return Ok(Some(Report::Exited { code })),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                return Ok(Some(Report::Killed { signal: signal as i32 }));
            }
            Ok(WaitStatus::Stopped(pid, _)) if pid == child => gate::send(&inside.control, Report::Stopped, &[])?,
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(None),
            Err(Errno::EINTR) | Ok(_) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Carries out one request; false when the supervisor is gone.
fn obey(inside: &Inside<'_>, child: Pid, frozen: &mut Option<Frozen>) -> nix::Result<bool> {
    let mut buffer = [0; 8];
    let got = match crate::sys::descriptor::receive(inside.control.as_fd(), &mut buffer) {
        Err(Errno::ECONNRESET) => return Ok(false),
        other => other?,
    };
    if got.length == 0 {
        return Ok(false);
    }
    let signal = match buffer.get(..got.length).and_then(Request::decode) {
        Some(Request::Signal(signal)) => signal,
        Some(Request::Continue) => Signal::SIGCONT,
        Some(Request::Freeze) => {
            let now = frozen.get_or_insert_with(|| freeze(inside.mode()));
            let whole = i32::from(now.whole);
            gate::send(&inside.control, Report::Frozen { whole }, &[])?;
            return Ok(true);
        }
        Some(Request::Thaw) => {
            frozen.take().into_iter().for_each(Frozen::thaw);
            return Ok(true);
        }
        None => return Ok(true),
    };
    // The command leads its own process group; it may already be gone.
    if kill(Pid::from_raw(-child.as_raw()), signal).is_err() {
        let _ = kill(child, signal);
    }
    Ok(true)
}

/// Standard streams belong to the command: while this process held them, a closed pipe would stay open.
fn detach_streams() -> nix::Result<()> {
    let null = nix::fcntl::open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, stat::Mode::empty())?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)
}
