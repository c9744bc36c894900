//! Spawning: from a policy and an order to a command that is held at its gate.

use super::bounds::Bounds;
use super::door::Door;
use super::failure::{SpawnError, failed, step};
use super::given::Given;
use super::group::Group;
use super::held::await_held;
use super::inside::{self, Inside, Stream};
use super::jailed::{Facts, Jailed, Leash};
use super::layers::seccomp::{FilterError, Filters, Mediated, traps};
use super::plan::{Frame, Op, plan};
use crate::base::{AbsPath, Pid, Port};
use crate::policy::{Content, Mode, Policy};
use crate::sys::clone::Side;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, getpeername, getsockopt, setsockopt, socketpair, sockopt,
};
use nix::sys::stat::SFlag;
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
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
    refuse_folders(&order.streams)?;
    let filters = filters(policy)?;
    let ops = planned(policy, &order);
    let Order {
        argv,
        streams,
        inlets,
        door,
    } = order;
    let ends = Ends::new()?;
    let bounds = Bounds::of(&policy.limits)?;
    let inside = Inside {
        ops: &ops,
        policy,
        files: files(policy),
        filters: &filters,
        argv: strings(argv)?,
        environment: environment(policy)?,
        path: search_path(policy),
        control: ends.inner_control,
        gate: ends.inner_gate,
        streams,
        umask: umask(),
        memory_each: bounds.memory_each,
        ignored: super::attend::ignored_from_the_start(),
    };
    let (gate, standard) = (gate_files(&inside), standard(&inside.streams));
    let leash = divide(&inside, bounds.group)?;
    drop(inside);
    let held = await_held(&ends.control, &ops)?;
    let door = open_door(door, policy.mode(), &leash)?;
    let facts = Facts {
        first: leash.first(),
        command: held.command,
        canary: held.canary,
        filters_first: filters.count(Mediated::No),
        filters_command: filters.count(Mediated::Yes),
        gate,
        standard,
        group: leash.group(),
        memory_each: bounds.memory_each,
        given: Given::new(policy.mode(), held.landlock, filters.count(Mediated::Yes), bounds.rows),
        ops,
    };
    let inlets = inlets.into_iter().zip(held.inlets).collect();
    let mediation = Some((held.listener, held.diag));
    let terminal = held.terminal;
    Ok(Jailed {
        facts,
        leash,
        control: ends.control,
        opener: ends.opener,
        terminal,
        inlets,
        mediation,
        door,
    })
}

/// The system call filters of this policy, on this kernel.
fn filters(policy: &Policy) -> Result<Filters, FilterError> {
    let landlock = crate::sys::support::landlock_abi().unwrap_or(0);
    let mode = policy.mode();
    Filters::compile(
        mode,
        traps(mode, policy.datagrams, &policy.network.closed_ports, landlock),
    )
}

/// The clone. In the child this never returns; the supervisor's ends of socket and gate, which the child has a copy of,
/// are closed there with everything else, before the command's process exists.
fn divide(inside: &Inside<'_>, group: Option<Group>) -> Result<Leash, SpawnError> {
    let into = group.as_ref().map(Group::descriptor);
    let mode = inside.policy.mode();
    let side = match mode {
        Mode::Full => crate::sys::clone::into_namespaces(super::layers::namespaces::all(), into),
        Mode::Reduced => {
            // Whoever kills the first process leaves the others to this one.
            nix::sys::prctl::set_child_subreaper(true).map_err(step("becoming a subreaper"))?;
            // Containers that forbid namespaces mostly forbid clone3 as a whole.
            crate::sys::clone::beside()
        }
    };
    match side.map_err(|errno| failed(inside.ops, 0, errno))? {
        Side::Child => {
            if let (Mode::Reduced, Some(group)) = (mode, &group) {
                group.enter().unwrap_or_else(|errno| inside::fail(inside, errno));
            }
            inside::run(inside)
        }
        Side::Parent { pid, pidfd } => {
            let first = Pid::new(pid).ok_or(SpawnError::Gone)?;
            Ok(Leash::new(first, pidfd, mode, group))
        }
    }
}

fn open_door(wanted: Doors, mode: Mode, leash: &Leash) -> Result<Option<Door>, SpawnError> {
    match (wanted, mode) {
        (Doors::None, _) => Ok(None),
        (Doors::One, Mode::Reduced) => Ok(Some(Door::Open)),
        (Doors::One, Mode::Full) => Door::open(leash.pidfd()).map(Some).map_err(step("opening the door")),
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

fn refuse_folders(streams: &[Stream; 3]) -> Result<(), SpawnError> {
    let own = [kind(std::io::stdin()), kind(std::io::stdout()), kind(std::io::stderr())];
    let names = ["standard input", "standard output", "standard error"];
    for (index, ((stream, own), name)) in streams.iter().zip(own).zip(names).enumerate() {
        let kind = match stream {
            Stream::Inherited => own,
            Stream::File(file) => kind(file),
            Stream::Terminal => None,
        };
        if kind == Some(SFlag::S_IFDIR) {
            return Err(SpawnError::Folder(name));
        }
        let plain = match stream {
            Stream::Inherited => match index {
                0 => is_plain_pair(std::io::stdin()),
                1 => is_plain_pair(std::io::stdout()),
                _ => is_plain_pair(std::io::stderr()),
            },
            Stream::File(file) => is_plain_pair(file),
            Stream::Terminal => true,
        };
        if kind == Some(SFlag::S_IFSOCK) && !plain {
            return Err(SpawnError::Socket(name));
        }
    }
    Ok(())
}

/// A connected Unix stream, which leads to its peer and nowhere else. Any other socket from outside, a TCP connection for
/// one, can be connected anew, to wherever the host's network goes.
fn is_plain_pair(socket: impl AsFd) -> bool {
    let is_stream = getsockopt(&socket, sockopt::SockType).is_ok_and(|kind| kind == SockType::Stream);
    is_stream && getpeername::<UnixAddr>(socket.as_fd().as_raw_fd()).is_ok()
}

fn kind(file: impl AsFd) -> Option<SFlag> {
    let mode = nix::sys::stat::fstat(file).ok()?.st_mode;
    Some(SFlag::from_bits_truncate(mode & SFlag::S_IFMT.bits()))
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
