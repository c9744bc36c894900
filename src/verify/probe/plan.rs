//! What the doctor tries: every known way out, with the promise that should stop it.

use super::layers_of;
use crate::base::{Pid, Port};
use crate::policy::Promise;
use serde::Serialize;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What stands outside to be reached: made by whoever asks, and alive while it is tried. The controls need them to be
/// real; what is not there (`None`) is not tried.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// A file outside every grant that the control can read and write.
    pub secret: Option<PathBuf>,
    /// A folder outside every grant.
    pub folder: Option<PathBuf>,
    /// A protected file inside the workspace, for example `.git/config`.
    pub protected: Option<PathBuf>,
    /// A protected folder inside it, for example `.git/hooks`; it, and the one that holds it, might be renamed away.
    pub protected_folder: Option<PathBuf>,
    /// A folder that is granted for writing.
    pub writable: Option<PathBuf>,
    /// A file of one's own that is granted for writing.
    pub writable_file: Option<PathBuf>,
    /// A path in a folder of Pinfold's own (profiles or state, out of reach) where nothing is.
    pub own: Option<PathBuf>,
    /// A listening socket outside, with a path.
    pub socket: Option<PathBuf>,
    /// A listening socket of the host whose file lies in a granted folder.
    pub socket_within: Option<PathBuf>,
    /// A datagram socket of the host, in a granted folder or not.
    pub datagrams: Option<PathBuf>,
    /// A listening abstract socket outside: its name.
    pub abstract_name: Option<OsString>,
    /// A TCP listener on the host's loopback.
    pub tcp: Option<SocketAddr>,
    /// A UDP echo on the host's loopback.
    pub udp: Option<SocketAddr>,
    /// An address and port outside that no rule allows, and that answers.
    pub forbidden: Option<SocketAddr>,
    /// The port that is joined to another sandbox.
    pub joined: Option<Port>,
    /// A process of the same user outside, with a number that no process inside has.
    pub process: Option<Pid>,
    /// A terminal outside, for example `/dev/pts/3`, with a number that none inside has.
    pub terminal: Option<PathBuf>,
    /// Names of variables that only the launcher has.
    pub tokens: Vec<OsString>,
    /// What the sandbox shares with the machine.
    pub shares: Shares,
}

/// What of the machine a sandbox shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shares {
    #[default]
    Nothing,
    /// Its network and IPC, as in reduced mode: what is harmless in namespaces of one's own must not work.
    Namespaces,
}

/// One planned attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// What a person reads.
    pub name: &'static str,
    pub promise: Promise,
    /// The attempt's name.
    pub attempt: &'static str,
    /// The attempt that must succeed outside, with the same arguments: the same one, but for what goes through the
    /// broker, which is asked for directly there.
    pub control: &'static str,
    /// The layers that each stop it.
    pub layers: &'static [&'static str],
    #[serde(skip)]
    pub args: Vec<OsString>,
}

fn planned(promise: Promise, name: &'static str, attempt: &'static str, args: Vec<OsString>) -> Planned {
    let control = if attempt == "http-proxy" {
        "connect-tcp"
    } else {
        attempt
    };
    let layers = layers_of(attempt);
    Planned {
        name,
        promise,
        attempt,
        control,
        layers,
        args,
    }
}

/// Everything to try on these targets, by promise. Each must fail inside, and its control outside must succeed.
pub fn escape_set(targets: &Targets) -> Vec<Planned> {
    let mut set = files(targets);
    set.extend(protected(targets));
    set.extend(sockets(targets));
    set.extend(network(targets));
    set.extend(processes(targets));
    set.extend(terminal(targets));
    set.extend(given(targets));
    set.extend(kernel());
    if targets.shares == Shares::Namespaces {
        set.extend(shared(targets));
    }
    set
}

fn word(path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

fn beside(path: &Path, name: &str) -> OsString {
    path.join(name).into_os_string()
}

fn files(targets: &Targets) -> Vec<Planned> {
    let plan = |name, attempt, args| planned(Promise::Files, name, attempt, args);
    let mut set = Vec::new();
    if let Some(secret) = &targets.secret {
        set.push(plan("read a file that is not granted", "read", vec![word(secret)]));
        set.push(plan("write to a file that is not granted", "write", vec![word(secret)]));
        set.push(plan("name a file past its path", "file-handle", vec![word(secret)]));
    }
    if let (Some(secret), Some(writable)) = (&targets.secret, &targets.writable) {
        let link = beside(writable, ".pinfold-probe-link");
        set.push(plan(
            "link a file that is not granted",
            "link",
            vec![word(secret), link],
        ));
    }
    if let Some(folder) = &targets.folder {
        let file = beside(folder, ".pinfold-probe");
        set.push(plan("list a folder that is not granted", "list", vec![word(folder)]));
        set.push(plan("make a file where nothing is granted", "create", vec![file]));
    }
    if let Some(writable) = &targets.writable {
        let node = beside(writable, ".pinfold-probe-node");
        set.push(plan("make a device node", "mknod", vec![node]));
    }
    if let Some(file) = &targets.writable_file {
        set.push(plan("set a set-user-id bit", "chmod-suid", vec![word(file)]));
        set.push(plan(
            "name a granted file past its path",
            "file-handle",
            vec![word(file)],
        ));
    }
    set
}

fn protected(targets: &Targets) -> Vec<Planned> {
    let plan = |name, attempt, args| planned(Promise::Protected, name, attempt, args);
    let away = |path: &Path| {
        let mut away = word(path);
        away.push(".pinfold-probe");
        vec![word(path), away]
    };
    let mut set = Vec::new();
    if let Some(file) = &targets.protected {
        set.push(plan("write to a protected file", "write", vec![word(file)]));
    }
    if let Some(folder) = &targets.protected_folder {
        let file = beside(folder, ".pinfold-probe");
        set.push(plan("make a file in a protected folder", "create", vec![file]));
        set.push(plan("rename a protected folder away", "rename", away(folder)));
        let above = folder.parent().map(away);
        set.extend(above.map(|args| plan("rename the folder above it away", "rename", args)));
    }
    if let Some(own) = &targets.own {
        let name = "make a file in Pinfold's own folder";
        set.push(planned(Promise::OutOfReach, name, "create", vec![word(own)]));
    }
    set
}

fn sockets(targets: &Targets) -> Vec<Planned> {
    let plan = |name, attempt, args| planned(Promise::Sockets, name, attempt, args);
    let mut set = Vec::new();
    if let Some(path) = &targets.socket {
        set.push(plan("connect to a socket outside", "connect-unix", vec![word(path)]));
    }
    if let Some(path) = &targets.socket_within {
        let what = "connect to a socket of the host in the workspace";
        set.push(plan(what, "connect-unix", vec![word(path)]));
    }
    if let Some(path) = &targets.datagrams {
        let what = "send a datagram to a socket of the host";
        set.push(plan(what, "unix-datagram", vec![word(path)]));
        let what = "send a datagram to it from one end of a pair";
        set.push(plan(what, "unix-datagram-pair", vec![word(path)]));
    }
    if let Some(name) = targets.abstract_name.clone() {
        let what = "connect to an abstract socket outside";
        set.push(plan(what, "connect-abstract", vec![name]));
    }
    set
}

fn network(targets: &Targets) -> Vec<Planned> {
    let plan = |name, attempt, args| planned(Promise::Network, name, attempt, args);
    let at = |address: &SocketAddr| vec![address.to_string().into()];
    let mut set = Vec::new();
    if let Some(address) = &targets.tcp {
        let what = "connect to a service on the host's loopback";
        set.push(plan(what, "connect-tcp", at(address)));
        set.push(plan("connect to it by a first send", "fast-open", at(address)));
        let what = "reach the host's loopback through the proxy";
        set.push(plan(what, "http-proxy", at(address)));
    }
    if let Some(address) = &targets.udp {
        set.push(plan("send a datagram to the host", "udp", at(address)));
    }
    if let Some(address) = &targets.forbidden {
        let what = "reach what is not allowed through the proxy";
        set.push(plan(what, "http-proxy", at(address)));
        let what = "reach what is not allowed past the proxy";
        set.push(plan(what, "connect-tcp", at(address)));
    }
    if let Some(port) = targets.joined {
        let what = "connect to the port that is joined to the client";
        set.push(plan(what, "own-port", vec![port.to_string().into()]));
    }
    set.push(plan("open a raw socket", "raw-socket", Vec::new()));
    set.push(plan("open a packet socket", "packet", Vec::new()));
    set.push(plan("open a socket to the machine's host", "vsock", Vec::new()));
    set.push(plan("open a netlink socket beyond routes", "netlink", Vec::new()));
    set
}

fn processes(targets: &Targets) -> Vec<Planned> {
    let Some(pid) = targets.process else { return Vec::new() };
    let plan = |name, attempt| planned(Promise::Processes, name, attempt, vec![pid.to_string().into()]);
    vec![
        plan("signal a process outside", "signal"),
        plan("trace a process outside", "ptrace"),
        plan("read the environment of a process outside", "read-proc"),
        plan("limit a process outside", "limit-another"),
        plan("change the priority of a process outside", "renice-another"),
    ]
}

fn terminal(targets: &Targets) -> Vec<Planned> {
    let plan = |name, attempt, args| planned(Promise::Terminal, name, attempt, args);
    let outside = targets.terminal.as_deref().map(word);
    let mut set: Vec<Planned> = outside
        .map(|path| plan("open a terminal outside", "open-tty", vec![path]))
        .into_iter()
        .collect();
    let own = || vec!["/dev/tty".into()];
    set.push(plan("type into the terminal", "tiocsti", own()));
    let what = "type into the terminal by another number";
    set.push(plan(what, "tiocsti-high", own()));
    set
}

fn given(targets: &Targets) -> Vec<Planned> {
    let plan = |name, attempt, args| planned(Promise::Environment, name, attempt, args);
    let mut set = vec![plan("find a descriptor from outside", "fds", Vec::new())];
    if !targets.tokens.is_empty() {
        set.push(plan("read a token of the launcher", "env", targets.tokens.clone()));
    }
    set
}

fn shared(targets: &Targets) -> Vec<Planned> {
    let mut set = vec![
        planned(
            Promise::Processes,
            "share memory by System V numbers",
            "system-v-memory",
            Vec::new(),
        ),
        planned(Promise::Processes, "make a message queue", "message-queue", Vec::new()),
    ];
    if let Some(file) = &targets.writable_file {
        let what = "set an attribute of a file";
        set.push(planned(Promise::Files, what, "extended-attribute", vec![word(file)]));
    }
    set
}

fn kernel() -> Vec<Planned> {
    let rows = [
        ("make a user namespace", "unshare-user"),
        ("make a process past the filters", "clone3"),
        ("gain privileges by an exec", "gain-privileges"),
        ("mount something", "mount"),
        ("mount something the newer way", "mount-new"),
        ("set up io_uring", "io-uring"),
        ("load a BPF object", "bpf"),
        ("open a performance counter", "perf"),
        ("handle page faults", "userfaultfd"),
        ("use a keyring", "keyctl"),
        ("read the kernel's log", "syslog"),
        ("change what a crash runs", "core-pattern"),
        ("allow itself a core dump", "core-dump"),
    ];
    rows.into_iter()
        .map(|(name, attempt)| planned(Promise::Processes, name, attempt, Vec::new()))
        .collect()
}
