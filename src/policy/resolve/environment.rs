//! The exact environment of the command.

use super::variables::Variables;
use super::{EnvWish, Request, ResolveError};
use crate::policy::explain::escaped;
use crate::policy::frozen::{Environment, Note, Origin, Topic};
use crate::policy::host::Host;
use crate::policy::profile::{Entry, Profile};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Allowed variables of the host, then the profile's own, then the command line's, then the launch's: the later wins.
/// A deny wins over every allow list, and over nothing that is set by name.
pub(super) fn resolve(
    profile: &Profile,
    request: &Request,
    host: &dyn Host,
    paths: &Variables,
    notes: &mut Vec<Note>,
) -> Result<Environment, ResolveError> {
    let found = first_of_each(host);
    let mut variables: BTreeMap<OsString, (OsString, Origin)> = BTreeMap::new();
    for (name, value) in &found {
        let allowed = profile.allow_vars.iter().find(|entry| fits(&entry.text, name));
        let denied = profile.deny_vars.iter().any(|entry| fits(&entry.text, name));
        if let Some(Entry { origin, .. }) = allowed.filter(|_| !denied) {
            variables.insert(name.clone(), (value.clone(), origin.clone()));
        }
    }
    for set in &profile.set_vars {
        // A `$` that begins no known name stands for itself.
        let value = paths
            .expand(&set.value, &set.origin)
            .map_or_else(|_| OsString::from(&set.value), PathBuf::into_os_string);
        variables.insert(OsString::from(&set.name), (value, set.origin.clone()));
    }
    for wish in &request.env {
        let origin = Origin::command_line("--env");
        let (EnvWish::Pass(name) | EnvWish::Set(name, _)) = wish;
        check_name(name)?;
        let value = match wish {
            EnvWish::Set(_, value) => Some(value),
            EnvWish::Pass(name) => found.get(name),
        };
        match value {
            Some(value) => drop(variables.insert(name.clone(), (value.clone(), origin))),
            None => notes.push(note(Topic::LeftOut, name, "not set here", &origin)),
        }
    }
    for (name, value) in &request.added_env {
        check_name(name)?;
        let origin = Origin {
            source: "agent".to_owned(),
            key: "launch".to_owned(),
            why: None,
        };
        variables.insert(name.clone(), (value.clone(), origin));
    }
    notes.extend(
        variables
            .iter()
            .map(|(name, (_, origin))| note(Topic::Variable, name, "", origin)),
    );
    Ok(Environment(
        variables.into_iter().map(|(name, (value, _))| (name, value)).collect(),
    ))
}

fn note(topic: Topic, name: &OsStr, text: &str, origin: &Origin) -> Note {
    let subject = escaped(&name.to_string_lossy());
    Note {
        topic,
        subject,
        text: text.to_owned(),
        origin: origin.clone(),
    }
}

/// The host's environment with every name once, as `getenv` sees it; `HOME` is the home that paths were resolved with.
fn first_of_each(host: &dyn Host) -> BTreeMap<OsString, OsString> {
    let mut found = BTreeMap::new();
    for (name, value) in host.environment() {
        if check_name(&name).is_ok() {
            found.entry(name).or_insert(value);
        }
    }
    if let Some(home) = host.home() {
        found.insert(OsString::from("HOME"), home.into_os_string());
    }
    found
}

fn check_name(name: &OsStr) -> Result<(), ResolveError> {
    let bytes = name.as_encoded_bytes();
    if bytes.is_empty() || bytes.iter().any(|b| matches!(b, b'=' | 0)) {
        return Err(ResolveError::VariableName(name.to_owned()));
    }
    Ok(())
}

/// Whether a pattern with `*` for any run of bytes fits the whole name.
fn fits(pattern: &str, name: &OsStr) -> bool {
    fn rest(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', behind)) => (0..=name.len()).any(|skipped| rest(behind, &name[skipped..])),
            Some((byte, behind)) => name
                .split_first()
                .is_some_and(|(first, after)| first == byte && rest(behind, after)),
        }
    }
    rest(pattern.as_bytes(), name.as_encoded_bytes())
}
