//! Spawning: from a policy and an order to a command that is held at its gate.

use super::door::Door;
use super::gate::{self, Report};
use super::inside::{self, Inside, Stream};
use super::jailed::{Facts, Jailed, Leash};
use super::layers::seccomp::{FilterError, Filters, Mediated};
use super::plan::{Frame, Op, is_mediated, plan};
use crate::base::{AbsPath, Explain, Kind, Pid, Port};
use crate::policy::{Content, Policy};
use crate::sys::clone::Side;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// What to run, beside the policy that it runs under.
#[derive(Debug)]
pub struct Order {
    /// The program (a path inside, or a name looked for on the sandbox's PATH) and its arguments, verbatim.
    pub argv: Vec<OsString>,
    pub streams: [Stream; 3],
    /// Ports of the sandbox's loopback that the supervisor serves.
    pub inlets: Vec<Port>,
    /// Whether the supervisor must be able to connect into the sandbox.
    pub door: Doors,
}

/// Whether a door is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doors {
    None,
    One,
}

/// Why a sandbox could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot enclose the command: {step} failed ({errno})")]
    Step {
        step: String,
        /// The layer that the step belongs to.
        layer: Option<&'static str>,
        errno: Errno,
        hint: Option<String>,
    },
    #[error("cannot enclose the command: the sandbox's first process ended before the command was held")]
    Gone,
    #[error("cannot enclose the command: it was not held within {0} seconds")]
    Slow(u64),
    #[error("an argument or variable has a NUL byte in it")]
    Nul,
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl Explain for SpawnError {
    fn kind(&self) -> Kind {
        match self {
            SpawnError::Nul => Kind::Config,
            _ => Kind::Startup,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            SpawnError::Step { hint, .. } => hint.clone(),
            SpawnError::Gone | SpawnError::Slow(_) => Some("run `pinfold doctor` to see what this kernel gives".into()),
            _ => None,
        }
    }
}

/// Seconds until a sandbox that is not held counts as stuck.
const PATIENCE: u64 = 30;

/// The operations that `spawn` would carry out for this order.
pub fn planned(policy: &Policy, order: &Order) -> Vec<Op> {
    let frame = Frame {
        uid: nix::unistd::geteuid().as_raw(),
        gid: nix::unistd::getegid().as_raw(),
        inlets: order.inlets.clone(),
        terminal: order.streams.iter().any(|stream| matches!(stream, Stream::Terminal)),
    };
    plan(policy, &frame)
}

/// Makes the sandbox and holds the command at its gate. The caller must have a single thread.
pub fn spawn(policy: &Policy, order: Order) -> Result<Jailed, SpawnError> {
    let filters = Filters::compile()?;
    let ops = planned(policy, &order);
    let mediated = mediation(policy);
    let Order {
        argv,
        streams,
        inlets,
        door,
    } = order;
    let ends = Ends::new()?;
    let inside = Inside {
        ops: &ops,
        policy,
        files: files(policy),
        filters: &filters,
        mediated,
        argv: strings(argv)?,
        environment: environment(policy)?,
        path: search_path(policy),
        control: ends.inner_control,
        gate: ends.inner_gate,
        streams,
        umask: umask(),
    };
    let (gate, standard) = (gate_files(&inside), standard(&inside.streams));
    let side = crate::sys::clone::into_namespaces(super::layers::namespaces::all());
    let leash = match side.map_err(|errno| failed(&ops, 0, errno))? {
        Side::Child => {
            drop((ends.control, ends.opener));
            inside::run(&inside)
        }
        Side::Parent { pid, pidfd } => Leash::new(Pid::new(pid).ok_or(SpawnError::Gone)?, pidfd),
    };
    drop(inside);
    let held = await_held(&ends.control, &ops, mediated)?;
    let door = open_door(door, &leash)?;
    let facts = Facts {
        first: leash.first(),
        command: held.command,
        canary: held.canary,
        filters_first: filters.count(Mediated::No),
        filters_command: filters.count(mediated),
        gate,
        standard,
        ops,
    };
    let inlets = inlets.into_iter().zip(held.inlets).collect();
    let (terminal, listener) = (held.terminal, held.listener);
    Ok(Jailed {
        facts,
        leash,
        control: ends.control,
        opener: ends.opener,
        terminal,
        inlets,
        listener,
        door,
    })
}

fn mediation(policy: &Policy) -> Mediated {
    if is_mediated(policy) {
        Mediated::Yes
    } else {
        Mediated::No
    }
}

fn open_door(wanted: Doors, leash: &Leash) -> Result<Option<Door>, SpawnError> {
    match wanted {
        Doors::None => Ok(None),
        Doors::One => Door::open(leash.pidfd()).map(Some).map_err(step("opening the door")),
    }
}

/// Both ends of the control socket and of the gate.
struct Ends {
    control: OwnedFd,
    inner_control: OwnedFd,
    opener: OwnedFd,
    inner_gate: OwnedFd,
}

impl Ends {
    fn new() -> Result<Ends, SpawnError> {
        let failed = step("making the control socket");
        let pair = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC);
        let (control, inner_control) = pair.map_err(&failed)?;
        // The command's process id on the host comes with its message.
        setsockopt(&control, sockopt::PassCred, &true).map_err(&failed)?;
        let pipe = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC);
        let (inner_gate, opener) = pipe.map_err(step("making the gate"))?;
        Ok(Ends {
            control,
            inner_control,
            opener,
            inner_gate,
        })
    }
}

/// The control socket and the gate as the inside holds them.
fn gate_files(inside: &Inside<'_>) -> Vec<(u64, u64)> {
    [identity(&inside.control), identity(&inside.gate)]
        .into_iter()
        .flatten()
        .collect()
}

/// What came out of the sandbox while it was made.
struct Held {
    command: Pid,
    canary: (i32, i32),
    terminal: Option<OwnedFd>,
    inlets: Vec<OwnedFd>,
    listener: Option<OwnedFd>,
}

fn await_held(control: &OwnedFd, ops: &[Op], mediated: Mediated) -> Result<Held, SpawnError> {
    let mut prepared: Option<Vec<OwnedFd>> = None;
    let mut tending = false;
    let mut held: Option<(Pid, (i32, i32), Option<OwnedFd>)> = None;
    loop {
        let arrived = next_report(control)?;
        match arrived.report {
            Report::Failed { op, errno } => return Err(failed(ops, op, errno)),
            Report::Prepared => prepared = Some(arrived.descriptors),
            Report::Tending => tending = true,
            Report::Held { before, after } => {
                let command = arrived.sender.and_then(Pid::new).ok_or(SpawnError::Gone)?;
                held = Some((command, (before, after), arrived.descriptors.into_iter().next()));
            }
            _ => return Err(SpawnError::Gone),
        }
        if !tending {
            continue;
        }
        if let Some((command, canary, listener)) = held.take() {
            let mut given = prepared.ok_or(SpawnError::Gone)?.into_iter();
            let terminal = ops.contains(&Op::Terminal).then(|| given.next()).flatten();
            if (mediated == Mediated::Yes) != listener.is_some() {
                return Err(SpawnError::Gone);
            }
            return Ok(Held {
                command,
                canary,
                terminal,
                inlets: given.collect(),
                listener,
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

fn step(name: &'static str) -> impl Fn(Errno) -> SpawnError {
    move |errno| SpawnError::Step {
        step: name.into(),
        layer: None,
        errno,
        hint: advice(None, errno),
    }
}

fn failed(ops: &[Op], op: u16, errno: Errno) -> SpawnError {
    let op = ops.get(usize::from(op));
    let step = op.map_or_else(|| "an unnamed step".into(), describe);
    SpawnError::Step {
        step,
        layer: op.and_then(Op::layer),
        errno,
        hint: advice(op, errno),
    }
}

/// One operation in words, for an error.
pub fn describe(op: &Op) -> String {
    let place = |verb: &str, at: &AbsPath| format!("{verb} {}", crate::base::text::visible(at.as_path().as_os_str()));
    match op {
        Op::Namespaces => "making the namespaces".into(),
        Op::MapIds { .. } => "mapping the user id".into(),
        Op::Hostname(_) => "naming the sandbox".into(),
        Op::Root => "making the new root".into(),
        Op::Scratch { at, .. } | Op::Sealed { at } | Op::File { at, .. } => place("making", at),
        Op::Link { at, .. } => place("linking", at),
        Op::Bind { source, .. } => place("showing", source),
        Op::Proc => "mounting /proc".into(),
        Op::Devices => "making /dev".into(),
        Op::Pin { at, .. } => place("pinning", at),
        Op::Protect { at, .. } => place("protecting", at),
        Op::Mask { at } => place("covering", at),
        Op::Seal => "entering the new root".into(),
        Op::Loopback => "bringing the loopback up".into(),
        Op::Inlet { port } => format!("listening on the sandbox's port {port}"),
        Op::Terminal => "making the sandbox's terminal".into(),
        Op::Limits(_) => "setting limits".into(),
        Op::NoNewPrivileges => "setting no_new_privs".into(),
        Op::DropCapabilities => "dropping capabilities".into(),
        Op::CloseDescriptors => "closing descriptors".into(),
        Op::Landlock => "applying Landlock".into(),
        Op::Seccomp { .. } => "installing the system call filters".into(),
        Op::Gate => "waiting at the gate".into(),
        Op::Exec { workdir } => place("entering", workdir),
    }
}

/// What a person can do about it.
fn advice(op: Option<&Op>, errno: Errno) -> Option<String> {
    let namespaces = matches!(
        op,
        None | Some(Op::Namespaces | Op::MapIds { .. } | Op::Root | Op::Hostname(_) | Op::Loopback)
    );
    match (op, errno) {
        (_, Errno::EPERM | Errno::EACCES | Errno::ENOSPC) if namespaces => Some(
            "this machine does not let you make user namespaces; `pinfold doctor` names the setting to change".into(),
        ),
        (Some(Op::Landlock), Errno::EOPNOTSUPP | Errno::ENOSYS) => {
            Some("this kernel runs without Landlock (5.13 or newer has it, if `landlock` is in its list of security modules)".into())
        }
        (Some(Op::Proc), Errno::EPERM) => Some("a container without a full /proc cannot hold a sandbox of this kind".into()),
        (Some(Op::Bind { .. }), Errno::ENOENT) => Some("the path went away, or became a link, after the policy was resolved".into()),
        (_, Errno::ENOSYS) => Some("this kernel is too old; Linux 5.13 or newer is needed".into()),
        _ => None,
    }
}

/// Device and inode of an open file.
fn identity(file: impl AsFd) -> Option<(u64, u64)> {
    nix::sys::stat::fstat(file).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

/// What the command may have from outside as its streams.
fn standard(streams: &[Stream; 3]) -> Vec<(u64, u64)> {
    let own = [
        identity(std::io::stdin()),
        identity(std::io::stdout()),
        identity(std::io::stderr()),
    ];
    let identities = streams.iter().zip(own).filter_map(|(stream, own)| match stream {
        Stream::Inherited => own,
        Stream::File(file) => identity(file),
        Stream::Terminal => None,
    });
    identities.collect()
}

fn files(policy: &Policy) -> BTreeMap<AbsPath, Vec<u8>> {
    let contents = policy.made.iter().filter_map(|made| match &made.content {
        Content::File(bytes) => Some((made.at.clone(), bytes.clone())),
        _ => None,
    });
    contents.collect()
}

fn strings(argv: Vec<OsString>) -> Result<Vec<CString>, SpawnError> {
    argv.into_iter()
        .map(|word| CString::new(word.into_vec()).map_err(|_| SpawnError::Nul))
        .collect()
}

fn environment(policy: &Policy) -> Result<Vec<CString>, SpawnError> {
    let pairs = policy.environment.0.iter();
    let joined = pairs.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
    joined
        .map(|pair| CString::new(pair).map_err(|_| SpawnError::Nul))
        .collect()
}

fn search_path(policy: &Policy) -> Vec<AbsPath> {
    let path = policy.environment.0.get(std::ffi::OsStr::new("PATH"));
    path.map(|path| {
        std::env::split_paths(path)
            .filter_map(|folder| AbsPath::new(folder).ok())
            .collect()
    })
    .unwrap_or_default()
}

fn umask() -> u32 {
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    nix::sys::stat::umask(mask);
    mask.bits()
}
