//! Words for a person or a script: results on stdout, one failure on stderr. A closed pipe is not an error of ours.

use crate::base::Fault;
use serde::Serialize;
use std::io::Write as _;

/// Prints lines to stdout.
pub fn say(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// Prints raw bytes to stdout.
pub fn say_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes);
    let _ = out.flush();
}

/// Prints a value as indented JSON to stdout.
pub fn say_json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => say(text),
        Err(error) => tell(format_args!(
            "pinfold: the answer could not be written as JSON ({error})"
        )),
    }
}

/// Prints a line to stderr.
pub fn tell(text: impl std::fmt::Display) {
    let mut out = std::io::stderr().lock();
    let _ = writeln!(out, "{text}");
}

/// The one place where a failure is printed.
pub fn fail(fault: &Fault, as_json: bool) {
    if as_json {
        say_json(&serde_json::json!({
            "ok": false, "errorKind": fault.kind().word(), "message": fault.to_string(), "hint": fault.hint(),
        }));
    }
    tell(format_args!("pinfold: {fault}"));
    if let Some(hint) = fault.hint() {
        tell(format_args!("  {hint}"));
    }
}
