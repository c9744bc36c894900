//! Attempts on the kernel's wider interfaces, and on the terminal.

use super::{Met, Tried};
use crate::sys::probe::{self, Request};
use nix::errno::Errno;
use std::ffi::OsString;
use std::os::fd::AsFd as _;

fn done(result: Result<(), Errno>) -> Met {
    result.map(|()| Tried::Done)
}

pub fn io_uring() -> Met {
    done(probe::io_uring())
}

pub fn unshare_user() -> Met {
    done(probe::unshare_user())
}

pub fn mount() -> Met {
    done(probe::mount())
}

pub fn mount_new() -> Met {
    done(probe::mount_new())
}

pub fn bpf() -> Met {
    done(probe::bpf())
}

pub fn perf() -> Met {
    done(probe::perf())
}

pub fn userfaultfd() -> Met {
    done(probe::userfaultfd())
}

pub fn keyctl() -> Met {
    done(probe::keyctl())
}

pub fn shared_memory() -> Met {
    done(probe::shared_memory())
}

pub fn message_queue() -> Met {
    done(probe::message_queue())
}

pub fn clone3() -> Met {
    done(probe::clone3())
}

pub fn syslog() -> Met {
    done(probe::syslog())
}

/// Types a byte into a terminal, the one on standard input if none is named.
pub fn inject(terminal: Option<&OsString>) -> Met {
    type_into(terminal, Request::Plain)
}

/// The same with a request number whose upper half is not zero.
pub fn inject_high_bits(terminal: Option<&OsString>) -> Met {
    type_into(terminal, Request::HighBits)
}

fn type_into(terminal: Option<&OsString>, request: Request) -> Met {
    let named = terminal.map(|path| super::files::terminal(path)).transpose()?;
    let input = std::io::stdin();
    let terminal = named.as_ref().map_or(input.as_fd(), |named| named.as_fd());
    match probe::inject(terminal, request) {
        // The kernel's own refusal where `dev.tty.legacy_tiocsti` is 0 (6.2 and later).
        Err(Errno::EIO) => Ok(Tried::Denied(Errno::EIO as i32)),
        // Standard input is no terminal.
        Err(Errno::ENOTTY) => Ok(Tried::Absent),
        other => done(other),
    }
}
