//! Attempts on other processes.

use super::{Met, Tried};
use crate::base::Pid;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::wait::waitpid;
use std::ffi::OsStr;

fn pid(text: &OsStr) -> Result<Pid, Errno> {
    text.to_str()
        .and_then(|text| text.parse().ok())
        .and_then(Pid::new)
        .ok_or(Errno::EINVAL)
}

/// Sends signal 0: the kernel decides as for any signal, and delivers nothing.
pub fn signal(text: &OsStr) -> Met {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid(text)?.get()), None).map(|()| Tried::Done)
}

/// Sets a limit of another process to what it is.
pub fn limit(text: &OsStr) -> Met {
    crate::sys::probe::limit_another(pid(text)?.get()).map(|()| Tried::Done)
}

/// Sets the priority of another process to the lowest.
pub fn renice(text: &OsStr) -> Met {
    crate::sys::probe::renice_another(pid(text)?.get()).map(|()| Tried::Done)
}

/// Attaches as a debugger and lets go again.
pub fn trace(text: &OsStr) -> Met {
    let target = nix::unistd::Pid::from_raw(pid(text)?.get());
    ptrace::seize(target, ptrace::Options::empty())?;
    // Only a stopped process can be let go; should that fail, the kernel does it when we end.
    if ptrace::interrupt(target).is_ok() && waitpid(target, None).is_ok() {
        ptrace::detach(target, None)?;
    }
    Ok(Tried::Done)
}

/// Reads another process's environment, where passwords stand.
pub fn read_environment(text: &OsStr) -> Met {
    super::files::read(OsStr::new(&format!("/proc/{}/environ", pid(text)?)))
}
