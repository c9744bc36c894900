//! What the process itself was given.

use super::{Met, Tried};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::ffi::OsString;

/// Looks for the variables that are named, or lists the names of all.
pub fn environment(names: &[OsString]) -> (Tried, String) {
    let all = std::env::vars_os().map(|(name, _)| name);
    let found: Vec<_> = all.filter(|name| names.is_empty() || names.contains(name)).collect();
    seen(found.iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

/// Allows itself a core dump of one byte, and puts the old limit back.
pub fn core_dump() -> Met {
    let (soft, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    // Without room above, the kernel is asked for more: that takes a capability over the whole machine.
    setrlimit(Resource::RLIMIT_CORE, 1, hard.max(1))?;
    setrlimit(Resource::RLIMIT_CORE, soft, hard).map(|()| Tried::Done)
}

/// Asks the kernel whether an exec could add privileges. A set-user-id program to try it on is not on every machine.
pub fn gain_privileges() -> Met {
    if nix::sys::prctl::get_no_new_privs()? {
        Err(Errno::EPERM)
    } else {
        Ok(Tried::Done)
    }
}

/// Lists open descriptors above 2.
pub fn descriptors() -> (Tried, String) {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries,
        Err(error) => return (Tried::from_io(&error), error.to_string()),
    };
    for entry in entries.flatten() {
        let number = entry.file_name().to_string_lossy().into_owned();
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        // The listing's own descriptor shows this very folder.
        let is_listing = target.starts_with("/proc") && target.ends_with("fd");
        if !is_listing && number.parse::<i32>().is_ok_and(|n| n > 2) {
            found.push(format!("{number} {}", target.to_string_lossy()));
        }
    }
    seen(found)
}

fn seen(found: Vec<String>) -> (Tried, String) {
    let tried = if found.is_empty() { Tried::Absent } else { Tried::Done };
    (tried, found.join(", "))
}
