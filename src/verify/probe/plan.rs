//! What the doctor tries: every known way out, with the promise that should stop it.

use crate::base::Pid;
use crate::policy::Promise;
use serde::Serialize;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

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
    /// The folder that holds it, which might be renamed away.
    pub protected_folder: Option<PathBuf>,
    /// A folder that is granted for writing.
    pub writable: Option<PathBuf>,
    /// A file of one's own that is granted for writing.
    pub writable_file: Option<PathBuf>,
    /// A file of the binary's, the profiles' or the state's, out of reach.
    pub own: Option<PathBuf>,
    /// A listening socket outside, with a path.
    pub socket: Option<PathBuf>,
    /// A listening abstract socket outside: its name.
    pub abstract_name: Option<OsString>,
    /// A TCP listener on the host's loopback.
    pub tcp: Option<SocketAddr>,
    /// A UDP echo on the host's loopback.
    pub udp: Option<SocketAddr>,
    /// An address and port outside that no rule allows, and that answers.
    pub forbidden: Option<SocketAddr>,
    /// A process of the same user outside.
    pub process: Option<Pid>,
    /// A terminal outside, for example `/dev/pts/3`.
    pub terminal: Option<PathBuf>,
    /// Names of variables that only the launcher has.
    pub tokens: Vec<OsString>,
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
    #[serde(skip)]
    pub args: Vec<OsString>,
}

fn planned(promise: Promise, name: &'static str, attempt: &'static str, args: Vec<OsString>) -> Planned {
    let control = if attempt == "http-proxy" {
        "connect-tcp"
    } else {
        attempt
    };
    Planned {
        name,
        promise,
        attempt,
        control,
        args,
    }
}

/// Everything to try on these targets, by promise. Each must fail inside, and its control outside must succeed.
pub fn escape_set(targets: &Targets) -> Vec<Planned> {
    let mut set = files(targets);
    set.extend(network(targets));
    set.extend(processes(targets));
    set.extend(kernel());
    set
}

fn files(targets: &Targets) -> Vec<Planned> {
    use Promise::{Files, OutOfReach, Protected};
    let mut set = Vec::new();
    let beside = |path: &PathBuf, name: &str| path.join(name).into_os_string();
    if let Some(secret) = targets.secret.clone().map(PathBuf::into_os_string) {
        set.push(planned(
            Files,
            "read a file that is not granted",
            "read",
            vec![secret.clone()],
        ));
        set.push(planned(
            Files,
            "write to a file that is not granted",
            "write",
            vec![secret.clone()],
        ));
        if let Some(writable) = &targets.writable {
            let link = beside(writable, ".pinfold-probe-link");
            set.push(planned(
                Files,
                "link a file that is not granted",
                "link",
                vec![secret, link],
            ));
        }
    }
    if let Some(folder) = &targets.folder {
        let file = beside(folder, ".pinfold-probe");
        set.push(planned(
            Files,
            "list a folder that is not granted",
            "list",
            vec![folder.clone().into()],
        ));
        set.push(planned(
            Files,
            "make a file where nothing is granted",
            "create",
            vec![file],
        ));
    }
    if let Some(protected) = targets.protected.clone().map(PathBuf::into_os_string) {
        set.push(planned(
            Protected,
            "write to a protected file",
            "write",
            vec![protected],
        ));
    }
    if let Some(folder) = &targets.protected_folder {
        let mut away = folder.clone().into_os_string();
        away.push(".pinfold-probe");
        let file = beside(folder, ".pinfold-probe");
        set.push(planned(
            Protected,
            "rename a protected folder away",
            "rename",
            vec![folder.clone().into(), away],
        ));
        set.push(planned(
            Protected,
            "make a file in a protected folder",
            "create",
            vec![file],
        ));
    }
    if let Some(writable) = &targets.writable {
        let node = beside(writable, ".pinfold-probe-node");
        set.push(planned(Files, "make a device node", "mknod", vec![node]));
    }
    if let Some(file) = targets.writable_file.clone().map(PathBuf::into_os_string) {
        set.push(planned(Files, "set a set-user-id bit", "chmod-suid", vec![file]));
    }
    if let Some(own) = targets.own.clone().map(PathBuf::into_os_string) {
        set.push(planned(OutOfReach, "write to Pinfold's own files", "write", vec![own]));
    }
    set
}

fn network(targets: &Targets) -> Vec<Planned> {
    use Promise::{Network, Sockets};
    let mut set = Vec::new();
    if let Some(path) = targets.socket.clone().map(PathBuf::into_os_string) {
        set.push(planned(
            Sockets,
            "connect to a socket outside",
            "connect-unix",
            vec![path],
        ));
    }
    if let Some(name) = targets.abstract_name.clone() {
        set.push(planned(
            Sockets,
            "connect to an abstract socket outside",
            "connect-abstract",
            vec![name],
        ));
    }
    if let Some(address) = targets.tcp {
        let text = vec![address.to_string().into()];
        set.push(planned(
            Network,
            "connect to a service on the host's loopback",
            "connect-tcp",
            text.clone(),
        ));
        set.push(planned(
            Network,
            "reach the host's loopback through the proxy",
            "http-proxy",
            text,
        ));
    }
    if let Some(address) = targets.udp {
        set.push(planned(
            Network,
            "send a datagram to the host",
            "udp",
            vec![address.to_string().into()],
        ));
    }
    if let Some(address) = targets.forbidden {
        let text = vec![address.to_string().into()];
        set.push(planned(
            Network,
            "reach what is not allowed through the proxy",
            "http-proxy",
            text.clone(),
        ));
        set.push(planned(
            Network,
            "reach what is not allowed past the proxy",
            "connect-tcp",
            text,
        ));
    }
    set.push(planned(Network, "open a raw socket", "raw-socket", Vec::new()));
    set.push(planned(Network, "open a packet socket", "packet", Vec::new()));
    set.push(planned(
        Network,
        "open a socket to the machine's host",
        "vsock",
        Vec::new(),
    ));
    set.push(planned(
        Network,
        "open a netlink socket beyond routes",
        "netlink",
        Vec::new(),
    ));
    set
}

fn processes(targets: &Targets) -> Vec<Planned> {
    use Promise::{Environment, Processes, Terminal};
    let mut set = Vec::new();
    if let Some(pid) = targets.process {
        let text = vec![pid.to_string().into()];
        set.push(planned(Processes, "signal a process outside", "signal", text.clone()));
        set.push(planned(Processes, "trace a process outside", "ptrace", text.clone()));
        set.push(planned(
            Processes,
            "read the environment of a process outside",
            "read-proc",
            text,
        ));
    }
    if let Some(terminal) = targets.terminal.clone().map(PathBuf::into_os_string) {
        set.push(planned(Terminal, "open a terminal outside", "open-tty", vec![terminal]));
    }
    set.push(planned(Terminal, "type into the terminal", "tiocsti", Vec::new()));
    set.push(planned(
        Terminal,
        "type into the terminal by another number",
        "tiocsti-high",
        Vec::new(),
    ));
    if !targets.tokens.is_empty() {
        set.push(planned(
            Environment,
            "read a token of the launcher",
            "env",
            targets.tokens.clone(),
        ));
    }
    set
}

fn kernel() -> Vec<Planned> {
    let rows = [
        ("make a user namespace", "unshare-user"),
        ("mount something", "mount"),
        ("mount something the newer way", "mount-new"),
        ("set up io_uring", "io-uring"),
        ("load a BPF object", "bpf"),
        ("open a performance counter", "perf"),
        ("handle page faults", "userfaultfd"),
        ("use a keyring", "keyctl"),
        ("change what a crash runs", "core-pattern"),
    ];
    rows.into_iter()
        .map(|(name, attempt)| planned(Promise::Processes, name, attempt, Vec::new()))
        .collect()
}
