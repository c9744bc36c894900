//! Where a test's sessions live: a tmux of its own, or a terminal of its own.

use crate::place::{LIMIT, Place, pinfold};
use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A tmux server of one place, with one window in which a shell runs. Ended with its value.
pub struct Tmux<'a> {
    place: &'a Place,
}

impl<'a> Tmux<'a> {
    pub fn start(place: &'a Place) -> Tmux<'a> {
        let tmux = Tmux { place };
        let said = tmux.run(["new-session", "-d", "-s", "main", "-x", "200", "-y", "50", "/bin/sh"]);
        assert!(said.1, "{}", said.0);
        tmux
    }

    fn tmux(&self) -> Command {
        let mut command = self.place.command("tmux");
        command.args(["-L", "e2e", "-f", "/dev/null"]);
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> (String, bool) {
        let output = self.tmux().args(words).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            String::from_utf8_lossy(&said).trim_end().to_owned(),
            output.status.success(),
        )
    }

    /// `pinfold` with these words, in a process that is in the tmux as far as it can tell.
    pub fn pinfold(&self) -> Command {
        let socket = self
            .run(["display-message", "-p", "-t", "main:0.0", "#{socket_path},#{pid},0"])
            .0;
        let mut command = self.place.command(pinfold());
        command.env("TMUX", socket).env("TMUX_PANE", "%0");
        command
    }

    pub fn screen(&self, pane: &str) -> String {
        self.run(["capture-pane", "-p", "-t", pane]).0
    }

    pub fn panes(&self) -> Vec<String> {
        self.run(["list-panes", "-a", "-F", "#{pane_id}"])
            .0
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// The pane of a recorded session, `%N`.
    pub fn pane_of(session: &serde_json::Value) -> String {
        session["paneId"]
            .as_str()
            .unwrap()
            .rsplit(':')
            .next()
            .unwrap()
            .to_owned()
    }

    #[track_caller]
    pub fn shows(&self, pane: &str, text: &str) {
        let start = Instant::now();
        while !self.screen(pane).contains(text) {
            assert!(
                start.elapsed() < LIMIT,
                "never shown: {text:?} in {}",
                self.screen(pane)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output();
    }
}

/// A terminal whose session is led by one command. The command is killed with its value.
pub struct Terminal {
    master: File,
    pub slave: File,
    seen: Arc<Mutex<Vec<u8>>>,
    closed: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    pub leader: Option<Child>,
}

impl Terminal {
    /// A terminal of 100 columns, in which nothing runs.
    pub fn open() -> Terminal {
        Terminal::sized(100, 30)
    }

    pub fn sized(columns: u16, rows: u16) -> Terminal {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(&size, None).unwrap();
        for fd in [&pty.master, &pty.slave] {
            nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC)).unwrap();
        }
        let master = File::from(pty.master);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let closed = Arc::new(AtomicBool::new(false));
        let (copy, kept, end) = (master.try_clone().unwrap(), Arc::clone(&seen), Arc::clone(&closed));
        let reader = std::thread::spawn(move || read(copy, &kept, &end));
        Terminal {
            master,
            slave: File::from(pty.slave),
            seen,
            closed,
            reader: Some(reader),
            leader: None,
        }
    }

    /// Runs a command as the leader of the terminal's session. `setsid` becomes the command: one process.
    pub fn lead(&mut self, place: &Place, words: &[&OsStr]) -> i32 {
        let mut command = place.command("setsid");
        let stream = || self.slave.try_clone().unwrap();
        command
            .arg("-c")
            .args(words)
            .stdin(stream())
            .stdout(stream())
            .stderr(stream());
        let child = command.spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        self.leader = Some(child);
        pid
    }

    /// The leader's exit status.
    #[track_caller]
    pub fn status(&mut self) -> Option<i32> {
        let mut child = self.leader.take().unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                self.settle();
                return status.code();
            }
            if start.elapsed() > LIMIT {
                // What it left running must not hold the terminal of the next test.
                let _ = child.kill();
                panic!("it did not end: {:?}", self.text());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Until the reader has seen what was written last.
    fn settle(&self) {
        loop {
            let before = self.text().len();
            std::thread::sleep(Duration::from_millis(60));
            if self.text().len() == before {
                return;
            }
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    pub fn write(&self, bytes: &[u8]) {
        (&self.master).write_all(bytes).unwrap();
    }

    #[track_caller]
    pub fn shows(&self, text: &str) {
        let start = Instant::now();
        while !self.text().contains(text) {
            assert!(start.elapsed() < LIMIT, "never shown: {text:?} in {:?}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The modes as `stty -g` writes them.
    pub fn modes(&self) -> String {
        let output = Command::new("stty")
            .arg("-g")
            .stdin(self.slave.try_clone().unwrap())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// As a window that is closed: the kernel hangs up.
    pub fn close(self) -> Option<Child> {
        let mut this = self;
        this.leader.take()
    }
}

/// Until the terminal is closed: no copy of the master may stay open then.
fn read(mut master: File, seen: &Mutex<Vec<u8>>, closed: &AtomicBool) {
    let mut piece = [0; 4096];
    while !closed.load(Ordering::Relaxed) {
        let mut polled = [PollFd::new(master.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, 20u8).is_ok_and(|count| count > 0) {
            match master.read(&mut piece) {
                Ok(count @ 1..) => seen.lock().unwrap().extend_from_slice(&piece[..count]),
                _ => return,
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(mut child) = self.leader.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.closed.store(true, Ordering::Relaxed);
        let _ = self.reader.take().map(JoinHandle::join);
    }
}
