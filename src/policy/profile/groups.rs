//! Sets of paths by name (`profiles/groups.json`).

use super::keys::nearest;
use super::{Entry, Grant, Profile, ProfileError, Shape};
use crate::policy::frozen::{Access, Note, Origin, Topic};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
struct Table {
    groups: BTreeMap<String, Group>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Group {
    why: Option<String>,
    read: Vec<String>,
    allow: Vec<String>,
    deny: Vec<String>,
    /// Why it is empty here.
    nothing: Option<String>,
    /// Why it cannot be had.
    refused: Option<String>,
}

/// Puts what the profile's groups hold among its grants and denies.
pub(super) fn expand(profile: &mut Profile) -> Result<(), ProfileError> {
    if profile.groups.is_empty() {
        return Ok(());
    }
    let table: Table = serde_json::from_str(include_str!("../../../profiles/groups.json"))
        .map_err(|error| ProfileError::Keys(error.to_string()))?;
    for named in std::mem::take(&mut profile.groups) {
        let Some(group) = table.groups.get(&named.text) else {
            return Err(ProfileError::Group {
                nearest: nearest(&named.text, table.groups.keys().map(String::as_str)),
                name: named.text,
                key: named.origin.key,
                source_name: named.origin.source,
            });
        };
        if let Some(reason) = &group.refused {
            return Err(ProfileError::Refused {
                file: PathBuf::from(&named.origin.source),
                key: format!("{} {}", named.origin.key, named.text),
                reason: reason.clone(),
            });
        }
        if let Some(reason) = &group.nothing {
            profile.notes.push(Note {
                topic: Topic::Differs,
                subject: named.text.clone(),
                text: format!("not used: {reason}"),
                origin: named.origin.clone(),
            });
        }
        let entry = |path: &String| Entry {
            text: path.clone(),
            optional: true,
            origin: Origin {
                why: group.why.clone(),
                key: format!("{} {}", named.origin.key, named.text),
                ..named.origin.clone()
            },
        };
        let grant = |access| {
            move |entry| Grant {
                entry,
                access,
                shape: Shape::Any,
            }
        };
        let read = group.read.iter().map(entry).map(grant(Access::Read));
        profile.grants.extend(read);
        let allow = group.allow.iter().map(entry).map(grant(Access::ReadWrite));
        profile.grants.extend(allow);
        profile.deny.extend(group.deny.iter().map(entry));
    }
    Ok(())
}
