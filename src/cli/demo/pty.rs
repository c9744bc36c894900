//! A pseudo-terminal of the demonstration's own: it needs none of the person's.

use super::DemoError;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::pty::Winsize;
use nix::sys::stat::Mode;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;

const SIZE: Winsize = Winsize {
    ws_row: 40,
    ws_col: 120,
    ws_xpixel: 0,
    ws_ypixel: 0,
};
const CHUNK: usize = 16 << 10;

/// Both ends.
#[derive(Debug)]
pub struct Pty {
    master: OwnedFd,
    slave: File,
    /// Its number in `/dev/pts`.
    pub number: u32,
}

/// What a read gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    Bytes(Vec<u8>),
    Nothing,
    /// Nobody has the other end open any more.
    Closed,
}

impl Pty {
    /// A terminal of 120 columns and 40 lines; nothing that is executed inherits it by accident.
    pub fn open() -> Result<Pty, DemoError> {
        let make = || {
            let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
            let master = open("/dev/ptmx", flags, Mode::empty())?;
            let number = crate::sys::terminal::unlock(&master)?;
            let slave = open(format!("/dev/pts/{number}").as_str(), flags, Mode::empty())?;
            crate::sys::terminal::set_size(&slave, &SIZE)?;
            fcntl(&master, FcntlArg::F_SETFL(OFlag::O_RDWR | OFlag::O_NONBLOCK))?;
            Ok(Pty {
                master,
                slave: slave.into(),
                number,
            })
        };
        make().map_err(DemoError::Pty)
    }

    /// The program's end, for one of its standard streams.
    pub fn stream(&self) -> Result<Stdio, DemoError> {
        self.slave
            .try_clone()
            .map(Stdio::from)
            .map_err(|error| DemoError::Pty(nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or_default())))
    }

    /// What to poll for output.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// Types.
    pub fn write(&self, keys: &[u8]) -> Result<(), DemoError> {
        nix::unistd::write(&self.master, keys).map(drop).map_err(DemoError::Pty)
    }

    /// Takes what the program wrote, without waiting.
    pub fn read(&self) -> Read {
        use nix::errno::Errno;
        let mut bytes = vec![0; CHUNK];
        match nix::unistd::read(&self.master, &mut bytes) {
            Ok(0) => Read::Closed,
            Ok(count) => {
                bytes.truncate(count);
                Read::Bytes(bytes)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Read::Nothing,
            Err(_) => Read::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_program_on_it_has_a_terminal_of_its_own_with_a_size() {
        let pty = Pty::open().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "tty; stty size; : >/dev/tty && echo controlled"]);
        command.stdin(pty.stream().unwrap());
        let output = crate::sys::terminal::lead_session(&mut command).output().unwrap();
        let expected = format!("/dev/pts/{}\n40 120\ncontrolled\n", pty.number);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }

    #[test]
    fn a_program_without_a_terminal_cannot_lead_a_session_on_it() {
        let mut command = Command::new("/bin/true");
        command.stdin(Stdio::null());
        assert!(crate::sys::terminal::lead_session(&mut command).status().is_err());
    }
}
