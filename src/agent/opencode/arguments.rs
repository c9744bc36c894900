//! Which of a person's arguments a sandboxed OpenCode client may get.

use crate::agent::AgentError;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

const STANDALONE: &[u8] = b"--standalone";
/// Long options, without dashes, that would undo the join, the password or the two sandboxes. `url` is how 1.x's
/// parser names the positional one.
const REFUSED_OPTIONS: &[(&str, &str)] = &[
    ("server", "the client must meet this launch's own server"),
    ("url", "the client must meet this launch's own server"),
    ("standalone", "it would run tools beside the screen, in one sandbox"),
    (
        "password",
        "the password is made for each launch and never stands in an argument",
    ),
    ("username", "the user name is fixed"),
    ("hostname", "the server listens on its own loopback only"),
    ("port", "the port is chosen for each launch"),
    ("mdns", "the server must not be announced"),
    ("mdnsdomain", "the server must not be announced"),
    ("cors", "no web page may use the server"),
    ("service", "the host's service is never used"),
    ("stdio", "the two sides meet on a port"),
];
/// `-p` and `-u` are the password and the user name; either may hide in a group such as `-cp`.
const REFUSED_LETTERS: &[u8] = b"pu";
/// Words that turn the client into something else, wherever they stand.
const REFUSED_COMMANDS: &[&str] = &["attach", "serve", "service", "run", "web", "acp", "api"];

/// Whether the word is `--standalone`, with a value or without.
pub(super) fn is_standalone(word: &OsStr) -> bool {
    word.as_bytes()
        .strip_prefix(STANDALONE)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
}

/// Refuses the first of a person's arguments that is not for a sandboxed client.
pub(super) fn refuse(agent: &'static str, user: &[OsString]) -> Result<(), AgentError> {
    let first_is_bare = user.first().filter(|word| !word.as_bytes().starts_with(b"-"));
    let reason = |word: &OsString| match first_is_bare {
        Some(first) if first == word => Some("folders and commands are fixed for each launch"),
        _ => refusal(word),
    };
    match user.iter().find_map(|word| Some((word, reason(word)?))) {
        Some((word, reason)) => Err(AgentError::Argument {
            agent,
            argument: option_of(word),
            reason,
        }),
        None => Ok(()),
    }
}

/// Why one word is refused, or nothing.
fn refusal(word: &OsStr) -> Option<&'static str> {
    let bytes = word.as_bytes();
    if bytes == b"--" {
        return Some("nothing may follow it");
    }
    if let Some(long) = bytes.strip_prefix(b"--") {
        let name = option_name(long);
        return REFUSED_OPTIONS
            .iter()
            .find(|(refused, _)| *refused == name)
            .map(|(_, reason)| *reason);
    }
    if let Some(short) = bytes.strip_prefix(b"-") {
        let letters = short.split(|b| *b == b'=').next().unwrap_or_default();
        let refused = letters.iter().any(|letter| REFUSED_LETTERS.contains(letter));
        return refused.then_some("the password and the user name are made for each launch");
    }
    let command = REFUSED_COMMANDS.iter().any(|command| word == *command);
    command.then_some("folders and commands are fixed for each launch")
}

/// An option's name as the parser of 1.x would read it: without value, key, `no-`, dashes or capitals.
fn option_name(long: &[u8]) -> String {
    let name = long.split(|b| matches!(b, b'=' | b'.')).next().unwrap_or_default();
    let name = name.strip_prefix(b"no-").unwrap_or(name);
    name.iter()
        .filter(|b| **b != b'-')
        .map(|b| char::from(b.to_ascii_lowercase()))
        .collect()
}

/// The word without its value, which may be a password.
fn option_of(word: &OsStr) -> OsString {
    let bytes = word.as_bytes();
    let end = match bytes {
        [b'-', b'-', ..] => bytes.iter().position(|b| *b == b'=').unwrap_or(bytes.len()),
        [b'-', ..] => bytes.len().min(2),
        _ => bytes.len(),
    };
    OsStr::from_bytes(&bytes[..end]).to_owned()
}
