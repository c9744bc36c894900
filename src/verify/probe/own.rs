//! What the process itself was given.

use super::Tried;
use std::ffi::OsString;

/// Looks for the variables that are named, or lists the names of all.
pub fn environment(names: &[OsString]) -> (Tried, String) {
    let all = std::env::vars_os().map(|(name, _)| name);
    let found: Vec<_> = all.filter(|name| names.is_empty() || names.contains(name)).collect();
    seen(found.iter().map(|name| name.to_string_lossy().into_owned()).collect())
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
