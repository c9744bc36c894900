//! The pane's terminal, which the sandbox never holds: raw while a command runs, restored on every way out.

mod modes;
mod relay;

pub use relay::Relay;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use std::io::IsTerminal as _;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The person's terminal while a command has the screen.
#[derive(Debug)]
pub struct Pane {
    /// Our own open file of the terminal: non-blocking without changing it for the shell that shares the other one.
    file: OwnedFd,
    before: Termios,
    raw: bool,
}

impl Pane {
    /// The terminal behind one of the standard streams, if there is one. Nothing is changed yet.
    pub fn find() -> Option<Pane> {
        let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let streams: [(bool, BorrowedFd<'_>); 3] = [
            (stdin.is_terminal(), stdin.as_fd()),
            (stdout.is_terminal(), stdout.as_fd()),
            (stderr.is_terminal(), stderr.as_fd()),
        ];
        let (_, stream) = streams.into_iter().find(|(is_terminal, _)| *is_terminal)?;
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = nix::fcntl::open(path.as_str(), flags, Mode::empty())
            .or_else(|_| stream.try_clone_to_owned())
            .ok()?;
        let before = tcgetattr(&file).ok()?;
        Some(Pane {
            file,
            before,
            raw: false,
        })
    }

    /// Hands keys through unchanged, if this process is in the foreground; a background job must not touch the modes.
    pub fn take(&mut self) {
        let foreground = nix::unistd::tcgetpgrp(&self.file).is_ok_and(|group| group == nix::unistd::getpgrp());
        if !foreground {
            return;
        }
        let mut raw = self.before.clone();
        cfmakeraw(&mut raw);
        self.raw = retry(|| tcsetattr(&self.file, SetArg::TCSADRAIN, &raw)).is_ok();
    }

    /// Puts the modes back as they were.
    pub fn restore(&mut self) {
        if std::mem::take(&mut self.raw) {
            let _ = retry(|| tcsetattr(&self.file, SetArg::TCSADRAIN, &self.before));
        }
    }

    /// Whether keys go to the command.
    pub fn is_taken(&self) -> bool {
        self.raw
    }

    /// Gives the sandbox's terminal the size of this one; a terminal of no size counts as 80 by 24.
    pub fn resize(&self, inner: impl AsFd) {
        let Ok(mut size) = crate::sys::terminal::size(&self.file) else {
            return;
        };
        if size.ws_col == 0 || size.ws_row == 0 {
            (size.ws_col, size.ws_row) = (80, 24);
        }
        let _ = crate::sys::terminal::set_size(inner, &size);
    }

    /// What to poll, read and write.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.restore();
    }
}

fn retry<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}
