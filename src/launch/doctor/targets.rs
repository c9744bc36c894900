//! What stands outside to be reached. A process of its own holds it (threads and sandboxes do not go together), makes the
//! controls, and takes everything away when its standard input ends, however the doctor ended.

use super::stage::StageError;
use crate::base::AbsPath;
use crate::verify::probe::Try;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::stat::Mode;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the targets are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Holds all files; see [`Layout`].
    pub folder: AbsPath,
    pub abstract_name: String,
    pub tcp: SocketAddr,
    pub udp: SocketAddr,
    /// On an address that is not loopback; nothing on a host without a network.
    pub forbidden: Option<SocketAddr>,
    pub terminal: Option<String>,
}

/// The files, as both sides know them.
pub struct Layout;

impl Layout {
    pub const WORKSPACE: &'static str = "workspace";
    pub const OUTSIDE: &'static str = "outside";
    pub const SECRET: &'static str = "outside/secret";
    pub const SOCKET: &'static str = "outside/socket";
    /// Sockets of the host within the grant: seen, and still out of reach.
    pub const SOCKET_WITHIN: &'static str = "workspace/socket";
    pub const DATAGRAMS: &'static str = "workspace/datagrams";
    pub const FILE: &'static str = "workspace/file";
    pub const CONFIG: &'static str = "workspace/.git/config";
    pub const HOOKS: &'static str = "workspace/.git/hooks";
    const FOLDERS: [&'static str; 6] = [
        "workspace",
        "workspace/.git",
        "workspace/.git/hooks",
        "workspace/.git/objects",
        "workspace/.git/refs",
        "outside",
    ];
    const FILES: [(&'static str, &'static str); 4] = [
        ("outside/secret", "not for the sandbox\n"),
        ("workspace/file", "a file\n"),
        ("workspace/.git/HEAD", "ref: refs/heads/main\n"),
        (
            "workspace/.git/config",
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
        ),
    ];
}

/// The folder; gone when dropped.
struct Folder(AbsPath);

impl Folder {
    fn make() -> Result<Folder, StageError> {
        let made = nix::unistd::mkdtemp(&std::env::temp_dir().join("pinfold-doctor-XXXXXX")).map_err(StageError::io)?;
        let made = made.canonicalize().map_err(StageError::Io)?;
        let folder = Folder(AbsPath::new(made).map_err(|_| StageError::io(nix::errno::Errno::EINVAL))?);
        for name in Layout::FOLDERS {
            std::fs::create_dir(folder.0.as_path().join(name)).map_err(StageError::Io)?;
        }
        for (name, content) in Layout::FILES {
            std::fs::write(folder.0.as_path().join(name), content).map_err(StageError::Io)?;
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes the targets, says where they are in one line of JSON, answers each line of attempts with a line of what they
/// met, and ends with its input. `program` is Pinfold's own.
pub fn serve(program: &Path) -> Result<(), StageError> {
    let (terminal, _terminals) = own_terminal().unzip();
    let folder = Folder::make()?;
    let _socket = UnixListener::bind(folder.0.as_path().join(Layout::SOCKET)).map_err(StageError::Io)?;
    let _within = UnixListener::bind(folder.0.as_path().join(Layout::SOCKET_WITHIN)).map_err(StageError::Io)?;
    let _datagrams = UnixDatagram::bind(folder.0.as_path().join(Layout::DATAGRAMS)).map_err(StageError::Io)?;
    let abstract_name = format!("pinfold-doctor-{:032x}", rand::rng().random::<u128>());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).map_err(StageError::Io)?;
    let _abstract = UnixListener::bind_addr(&address).map_err(StageError::Io)?;
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(StageError::Io)?;
    let udp = echo().map_err(StageError::Io)?;
    let forbidden = beyond_loopback();
    let _planted = plant_descriptor().map_err(StageError::io)?;
    let addresses = Addresses {
        folder: folder.0.clone(),
        abstract_name,
        tcp: tcp.local_addr().map_err(StageError::Io)?,
        udp,
        forbidden: forbidden.as_ref().and_then(|listener| listener.local_addr().ok()),
        terminal,
    };
    say(&serde_json::to_string(&addresses).map_err(StageError::Json)?)?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(StageError::Io)?;
        let _: Vec<Try> = serde_json::from_str(&line).map_err(StageError::Json)?;
        say(&attempt(program, &line)?)?;
    }
    Ok(())
}

fn say(line: &str) -> Result<(), StageError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(StageError::Io)
}

/// Makes the attempts in a process of their own, which must not be the target of its own signals and traces.
fn attempt(program: &Path, batch: &str) -> Result<String, StageError> {
    let mut child = Command::new(program)
        .args(["probe", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(StageError::Io)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(batch.as_bytes()).map_err(StageError::Io)?;
    }
    let output = child.wait_with_output().map_err(StageError::Io)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A terminal whose session this process leads. Its number is not 0: that one is the sandbox's own inside.
fn own_terminal() -> Option<(String, Vec<OwnedFd>)> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    nix::unistd::setsid().ok()?;
    let mut kept = Vec::new();
    let number = loop {
        let master = nix::fcntl::open("/dev/ptmx", flags, Mode::empty()).ok()?;
        let number = crate::sys::terminal::unlock(&master).ok()?;
        kept.push(master);
        if number > 0 {
            break number;
        }
    };
    let path = format!("/dev/pts/{number}");
    let slave = nix::fcntl::open(path.as_str(), flags, Mode::empty()).ok()?;
    crate::sys::terminal::make_controlling(&slave).ok()?;
    kept.push(slave);
    Some((path, kept))
}

/// Answers datagrams for as long as this process lives.
fn echo() -> std::io::Result<SocketAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = socket.local_addr()?;
    let work = move || {
        let mut buffer = [0; 64];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(buffer.get(..length).unwrap_or_default(), from);
        }
    };
    std::thread::Builder::new().name("echo".into()).spawn(work)?;
    Ok(address)
}

/// A listener on this host's address towards others. The kernel names it when a datagram socket is connected to an
/// address of the documentation (RFC 5737); nothing is sent.
fn beyond_loopback() -> Option<TcpListener> {
    let towards = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    towards.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let own = towards.local_addr().ok()?.ip();
    TcpListener::bind((own, 0)).ok()
}

/// A descriptor that an exec would hand on, if nobody closed it.
pub fn plant_descriptor() -> nix::Result<OwnedFd> {
    let planted = nix::fcntl::open("/dev/null", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    fcntl(&planted, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(planted)
}
