//! The JSON Schema of profiles and their reference for people, both from the one table of keys.

use super::ProfileError;
use super::keys::Keys;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The schema: what the reader takes, and no more. What depends on the machine (paths, names, grants that are too broad) is
/// told by `pinfold profile check`.
pub fn schema() -> Result<Value, ProfileError> {
    let keys = Keys::parse()?;
    let mut root = section();
    for (name, key) in &keys.keys {
        let value = json!({"description": key.about, "anyOf": [reference_to(&key.value), {"type": "null"}]});
        put(&mut root, name, value);
    }
    for (name, other) in &keys.aliases {
        let value = keys.keys.get(other).map(|key| reference_to(&key.value));
        let about = format!("another name of {other}");
        put(
            &mut root,
            name,
            json!({"description": about, "anyOf": [value, {"type": "null"}]}),
        );
    }
    for (name, reason) in &keys.ignored {
        put(&mut root, name, json!({"description": format!("not used: {reason}")}));
    }
    for (name, reason) in &keys.refused {
        // What asks for nothing is taken.
        let nothing =
            json!({"enum": [null, false, [], {}], "description": format!("not enforced, so refused: {reason}")});
        if !keys.keys.keys().any(|key| name.starts_with(&format!("{key}."))) {
            put(&mut root, name, nothing);
        }
    }
    let mut defs = Map::new();
    defs.extend(keys.values.clone());
    defs.extend(keys.entries.iter().map(|(name, fields)| (name.clone(), entry(fields))));
    root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    root["title"] = "A profile of Pinfold".into();
    root["$defs"] = defs.into();
    Ok(root)
}

fn section() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {}})
}

fn reference_to(kind: &str) -> Value {
    json!({"$ref": format!("#/$defs/{kind}")})
}

/// Puts a property at its full name; the sections on the way may also be null.
fn put(root: &mut Value, name: &str, value: Value) {
    let mut at = root;
    let mut names = name.split('.').peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            at["properties"][name] = value;
            return;
        }
        let inner = &mut at["properties"][name];
        if inner.is_null() {
            *inner = section();
            inner["type"] = json!(["object", "null"]);
        }
        at = inner;
    }
}

fn entry(fields: &std::collections::BTreeMap<String, String>) -> Value {
    let mut object = section();
    for (name, kind) in fields {
        object["properties"][name.trim_end_matches('?')] = reference_to(kind);
    }
    let required: Vec<&String> = fields.keys().filter(|name| !name.ends_with('?')).collect();
    object["required"] = json!(required);
    object
}

/// The tables of docs/profiles.md.
pub fn reference() -> Result<String, ProfileError> {
    let keys = Keys::parse()?;
    let mut text = String::from("| key | meaning |\n|---|---|\n");
    for (name, key) in &keys.keys {
        let _ = writeln!(text, "| `{name}` | {} |", key.about);
    }
    text.push_str("\n### Other names of the same keys\n\n| key | is |\n|---|---|\n");
    for (name, other) in &keys.aliases {
        let _ = writeln!(text, "| `{name}` | `{other}` |");
    }
    text.push_str("\n### Taken and not used, with a note\n\n| key | why |\n|---|---|\n");
    for (name, reason) in &keys.ignored {
        let _ = writeln!(text, "| `{name}` | {reason} |");
    }
    text.push_str("\n### Refused unless empty\n\n| key | why |\n|---|---|\n");
    for (name, reason) in &keys.refused {
        let _ = writeln!(text, "| `{name}` | {reason} |");
    }
    Ok(text)
}
