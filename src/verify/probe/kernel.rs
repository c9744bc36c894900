//! Attempts on the kernel's wider interfaces, and on the terminal.

use super::{Met, Tried};
use crate::sys::probe::{self, Request};
use nix::errno::Errno;
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

/// Types a byte into the terminal on standard input.
pub fn inject() -> Met {
    type_into(Request::Plain)
}

/// The same with a request number whose upper half is not zero.
pub fn inject_high_bits() -> Met {
    type_into(Request::HighBits)
}

fn type_into(request: Request) -> Met {
    match probe::inject(std::io::stdin().as_fd(), request) {
        // The kernel's own refusal where `dev.tty.legacy_tiocsti` is 0 (6.2 and later).
        Err(Errno::EIO) => Ok(Tried::Denied(Errno::EIO as i32)),
        // Standard input is no terminal.
        Err(Errno::ENOTTY) => Ok(Tried::Absent),
        other => done(other),
    }
}
