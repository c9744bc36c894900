//! A terminal pane for a test: a pseudo-terminal with a person at it who types and reads.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::termios::{Termios, tcgetattr};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// A pane and the program that has it as its own terminal.
pub struct Pane {
    master: OwnedFd,
    /// Kept open, so that the modes can be read after everything in the pane has ended.
    slave: OwnedFd,
    pub child: Guarded,
    seen: Vec<u8>,
    /// How much of `seen` was already looked at.
    read: usize,
}

/// The modes of a terminal, in a form that can be compared and shown.
pub fn modes(terminal: &OwnedFd) -> String {
    let Termios {
        input_flags,
        output_flags,
        control_flags,
        local_flags,
        control_chars,
        ..
    } = tcgetattr(terminal).unwrap();
    format!("{input_flags:?} {output_flags:?} {control_flags:?} {local_flags:?} {control_chars:?}")
}

pub fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl Pane {
    /// Starts a program in a session of its own with a new terminal as all of its streams.
    pub fn new(command: &Command, size: &Winsize) -> Pane {
        let OpenptyResult { master, slave } = openpty(size, None).unwrap();
        fcntl(&master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        fcntl(&master, FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC)).unwrap();
        fcntl(&slave, FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC)).unwrap();
        let mut started = Command::new("setsid");
        started
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear();
        started
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("TERM", "xterm");
        started.current_dir(command.get_current_dir().unwrap());
        let stream = || slave.try_clone().unwrap();
        let child = started
            .stdin(stream())
            .stdout(stream())
            .stderr(stream())
            .spawn()
            .unwrap();
        Pane {
            master,
            slave,
            child: Guarded(child),
            seen: Vec::new(),
            read: 0,
        }
    }

    pub fn modes(&self) -> String {
        modes(&self.slave)
    }

    /// The terminal as a stream of another program.
    pub fn stream(&self) -> std::process::Stdio {
        self.slave.try_clone().unwrap().into()
    }

    /// Where the pane's terminal stands on the host, as in `/dev/pts/7`.
    pub fn terminal(&self) -> std::path::PathBuf {
        nix::unistd::ttyname(&self.slave).unwrap()
    }

    pub fn resize(&self, size: &Winsize) {
        pinfold::sys::terminal::set_size(&self.master, size).unwrap();
    }

    pub fn write(&self, bytes: &[u8]) {
        let end = Instant::now() + Duration::from_secs(10);
        let mut rest = bytes;
        while !rest.is_empty() {
            match nix::unistd::write(&self.master, rest) {
                Ok(count) => rest = &rest[count..],
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
            assert!(Instant::now() < end, "the pane takes no more keys");
        }
    }

    fn fill(&mut self) {
        let mut bytes = [0; 65536];
        while let Ok(count @ 1..) = nix::unistd::read(&self.master, &mut bytes) {
            self.seen.extend_from_slice(&bytes[..count]);
        }
    }

    /// Reads until this text has come, and goes on after it. What came before it is returned.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let end = Instant::now() + Duration::from_secs(20);
        // What was searched already is not searched again, but for the beginning of the text at its end.
        let mut searched = self.read;
        loop {
            self.fill();
            let from = searched.saturating_sub(text.len()).max(self.read);
            searched = self.seen.len();
            let fresh = &self.seen[self.read..];
            if let Some(at) = self.seen[from..]
                .windows(text.len())
                .position(|window| window == text.as_bytes())
            {
                let before = String::from_utf8_lossy(&self.seen[self.read..from + at]).into_owned();
                self.read = from + at + text.len();
                return before;
            }
            assert!(
                Instant::now() < end,
                "{text:?} did not come; the pane shows {:?}",
                String::from_utf8_lossy(fresh)
            );
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Waits for the program's end; what the pane has shown since the last look comes back.
    #[track_caller]
    pub fn finish(&mut self) -> (ExitStatus, String) {
        let end = Instant::now() + Duration::from_secs(20);
        let status = loop {
            self.fill();
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < end,
                "still running; the pane shows {:?}",
                String::from_utf8_lossy(&self.seen[self.read..])
            );
            std::thread::sleep(Duration::from_millis(3));
        };
        self.fill();
        (status, String::from_utf8_lossy(&self.seen[self.read..]).into_owned())
    }
}

impl Pane {
    /// The pane goes away, as when its window is closed; its program is left to notice.
    pub fn hang_up(self) -> Guarded {
        self.child
    }
}

/// A child that does not outlive its test.
pub struct Guarded(pub Child);

impl std::ops::Deref for Guarded {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl std::ops::DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
