//! What stands outside to be reached, and the controls: every command run out here first.

use super::DemoError;
use super::area::Area;
use super::attempt::{Aims, Attempt, Typing};
use super::met::{Met, marked};
use super::pty::Pty;
use crate::base::{Pid, ProcessRecord, Secret};
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// 1 where TIOCSTI works for whoever holds a terminal; absent before Linux 6.2, where it always does.
const TYPING: &str = "/proc/sys/dev/tty/legacy_tiocsti";

/// Listeners, a process and a terminal of the host, for as long as this value lives.
#[derive(Debug)]
pub struct Outside {
    loopback: TcpListener,
    sockets: [UnixListener; 2],
    terminal: Pty,
    /// A shell with the words of a server that listens, which ends with the pipe to it.
    process: Child,
    aims: Aims,
}

impl Outside {
    /// Makes them.
    pub fn make(area: &Area, tmux: Option<PathBuf>) -> Result<Outside, DemoError> {
        let files = |path: &Path| {
            let path = path.to_owned();
            move |source| DemoError::Files { path, source }
        };
        let listening = |source| DemoError::Listen { source };
        let loopback = TcpListener::bind(("127.0.0.1", 0)).map_err(listening)?;
        let port = loopback.local_addr().map_err(listening)?.port();
        let path = area.multiplexer();
        let socket = UnixListener::bind(&path).map_err(files(&path))?;
        let abstract_name = format!("pinfold-demo-{}", crate::base::LaunchId::fresh().as_str());
        let address = SocketAddr::from_abstract_name(&abstract_name).map_err(listening)?;
        let sockets = [socket, UnixListener::bind_addr(&address).map_err(listening)?];
        loopback.set_nonblocking(true).map_err(listening)?;
        sockets
            .iter()
            .try_for_each(|socket| socket.set_nonblocking(true))
            .map_err(listening)?;
        let secret = Secret::fresh().reveal().to_owned();
        let process = stand_in(area, port, &secret)?;
        let terminal = Pty::open()?;
        let aims = Aims {
            loopback: port,
            abstract_name,
            tmux,
            process: record(&process)?,
            secret,
            terminal: terminal.number,
            typing: typing(),
        };
        Ok(Outside {
            loopback,
            sockets,
            terminal,
            process,
            aims,
        })
    }

    /// Where they are.
    pub fn aims(&self) -> &Aims {
        &self.aims
    }

    /// Runs an attempt out here, in the project, on a terminal.
    pub fn control(&self, attempt: &Attempt, area: &Area, folder: &Path) -> Result<Met, DemoError> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(marked(&attempt.command)).current_dir(folder);
        command
            .env_clear()
            .envs(area.environment().iter().cloned())
            .envs(self.server());
        command
            .stdin(self.terminal.stream()?)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let output = crate::sys::terminal::lead_session(&mut command).output();
        let output = output.map_err(|source| DemoError::Files {
            path: "/bin/sh".into(),
            source,
        })?;
        Ok(Met::of(&String::from_utf8_lossy(&output.stdout)))
    }

    /// What a tool of OpenCode finds in its environment: here it names the stand-in.
    fn server(&self) -> [(&'static str, OsString); 2] {
        let pid = self.aims.process.pid.to_string();
        [
            ("OPENCODE_PID", pid.into()),
            ("OPENCODE_SERVER_PASSWORD", "this-stands-in-for-a-password".into()),
        ]
    }

    /// Who has come since the last call: connections to any of the listeners.
    pub fn visitors(&self) -> usize {
        let tcp = std::iter::from_fn(|| self.loopback.accept().ok()).count();
        let unix = self
            .sockets
            .iter()
            .map(|socket| std::iter::from_fn(|| socket.accept().ok()).count());
        tcp + unix.sum::<usize>()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // It waits for us on a pipe, and would end with us anyway.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// It reads from a pipe that only we hold. Its words are those of a server on our port, its environment has the secret.
fn stand_in(area: &Area, port: u16, secret: &str) -> Result<Child, DemoError> {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "read -r end; exit 0", "opencode", "serve", "--port"])
        .arg(port.to_string());
    command
        .env_clear()
        .envs(area.environment().iter().cloned())
        .env("STAND_IN", secret);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().map_err(|source| DemoError::Files {
        path: "/bin/sh".into(),
        source,
    })
}

fn record(process: &Child) -> Result<ProcessRecord, DemoError> {
    let pid = i32::try_from(process.id()).ok().and_then(Pid::new);
    let record = pid.and_then(|pid| ProcessRecord::of(pid).ok());
    record.ok_or(DemoError::StandIn)
}

fn typing() -> Typing {
    match std::fs::read_to_string(TYPING) {
        Ok(text) if text.trim() == "0" => Typing::Refused,
        _ => Typing::Allowed,
    }
}

/// The socket of the tmux that this runs in, if it is one.
pub fn tmux(variable: Option<&OsString>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::FileTypeExt as _;
    let path = variable?.as_bytes().split(|byte| *byte == b',').next()?;
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
    path.metadata()
        .is_ok_and(|found| found.file_type().is_socket())
        .then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Promise;

    #[test]
    fn a_control_runs_in_the_folder_and_on_a_terminal_and_visitors_are_counted() {
        let environ = std::env::vars_os().collect();
        let area = Area::make(&environ, Path::new("/p"), None).unwrap();
        let outside = Outside::make(&area, None).unwrap();
        let control = |command: &str| {
            let attempt = Attempt {
                name: "x",
                promise: Promise::Files,
                command: command.into(),
            };
            outside.control(&attempt, &area, Path::new("/usr")).unwrap()
        };
        assert_eq!(
            control("test \"$(pwd)\" = /usr && test -t 0 && : >/dev/tty"),
            Met::Worked
        );
        assert_eq!(control("false"), Met::Denied("it found nothing".into()));
        assert_eq!(outside.visitors(), 0);
        let _tcp = std::net::TcpStream::connect(("127.0.0.1", outside.aims().loopback)).unwrap();
        let _unix = std::os::unix::net::UnixStream::connect(area.multiplexer()).unwrap();
        assert_eq!((outside.visitors(), outside.visitors()), (2, 0));
    }

    #[test]
    fn only_a_socket_that_is_there_is_a_tmux() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _listener = UnixListener::bind(&socket).unwrap();
        let mut value = socket.clone().into_os_string();
        value.push(",77,0");
        assert_eq!(tmux(Some(&value)), Some(socket));
        for text in ["", "/etc/passwd,1,0", "/nowhere,1,0"] {
            assert_eq!(tmux(Some(&text.into())), None, "{text}");
        }
        assert_eq!(tmux(None), None);
    }
}
