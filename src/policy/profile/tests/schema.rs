//! The published schema and the reader say the same.

use super::super::keys::Keys;
use super::*;
use serde_json::{Value, json};

/// As much of JSON Schema as the published one uses; an unknown word is a defect of this test.
fn fits(schema: &Value, value: &Value, root: &Value) -> bool {
    let number = |word: &str| schema.get(word).and_then(Value::as_u64);
    for word in schema.as_object().unwrap().keys() {
        let known = [
            "$ref",
            "$schema",
            "$defs",
            "title",
            "description",
            "anyOf",
            "type",
            "enum",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "minLength",
            "minimum",
            "maximum",
            "pattern",
        ];
        assert!(known.contains(&word.as_str()), "{word}");
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.strip_prefix("#/$defs/").unwrap();
        assert!(root["$defs"].get(name).is_some(), "no definition of {name}");
        return fits(&root["$defs"][name], value, root);
    }
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array)
        && !any.iter().any(|one| fits(one, value, root))
    {
        return false;
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.contains(value)
    {
        return false;
    }
    let is = |kind: &str| match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind)) {
        return false;
    }
    match value {
        Value::String(text) => {
            let pattern = schema.get("pattern").and_then(Value::as_str);
            text.len() as u64 >= number("minLength").unwrap_or(0)
                && pattern.is_none_or(|pattern| matches(pattern, text))
        }
        Value::Number(n) => {
            let n = n.as_f64().unwrap();
            schema.get("minimum").is_none_or(|least| n >= least.as_f64().unwrap())
                && schema.get("maximum").is_none_or(|most| n <= most.as_f64().unwrap())
        }
        Value::Array(list) => schema
            .get("items")
            .is_none_or(|items| list.iter().all(|one| fits(items, one, root))),
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let required = schema.get("required").and_then(Value::as_array);
            let others = schema.get("additionalProperties");
            required.is_none_or(|names| names.iter().all(|name| map.contains_key(name.as_str().unwrap())))
                && map
                    .iter()
                    .all(|(name, value)| match properties.and_then(|p| p.get(name)) {
                        Some(property) => fits(property, value, root),
                        None => match others {
                            Some(Value::Bool(false)) => false,
                            Some(schema @ Value::Object(_)) => fits(schema, value, root),
                            _ => true,
                        },
                    })
        }
        _ => true,
    }
}

/// The patterns of the table.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern {
        "^[^/]+$" => !text.is_empty() && !text.contains('/'),
        "^0*[1-9][0-9]*[KMG]?$" => {
            let digits = text.strip_suffix(['K', 'M', 'G']).unwrap_or(text);
            digits.parse::<u64>().is_ok_and(|number| number > 0)
        }
        "^[0-9]+([.][0-9]{1,3})?$" => crate::policy::parse_processors(text).is_some(),
        promise if promise.starts_with("^([Pp][1-7]|files|") => text.parse::<crate::policy::Promise>().is_ok(),
        other => panic!("{other}"),
    }
}

fn both(value: &Value) -> (bool, bool) {
    static SCHEMA: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| schema().unwrap());
    let schema = &*SCHEMA;
    (fits(schema, value, schema), load_one(&value.to_string()).is_ok())
}

/// `{"a": {"b": value}}` for `a.b`.
fn at(key: &str, value: Value) -> Value {
    let names = key.rsplit('.');
    names.fold(value, |inner, name| json!({name: inner}))
}

/// A value of the kind that is taken, and one that is not.
fn examples(kind: &str) -> (Value, Value) {
    match kind {
        "text" => (json!("a"), json!("")),
        "flag" => (json!(true), json!("yes")),
        "count" => (json!(3), json!(-3)),
        "processors" => (json!(1.5), json!("many")),
        "bytes" => (json!("3M"), json!("3T")),
        "workdir" => (json!("write"), json!("all")),
        "mediation" => (json!("off"), json!("some")),
        "names" => (json!(["system"]), json!([1])),
        "groups" => (
            json!(["git_config", {"name": "user_tools", "when": "linux"}]),
            json!([{"nam": "x"}]),
        ),
        "paths" => (
            json!(["/a", {"path": "/b", "why": "w", "optional": true, "when": "macos"}]),
            json!([{"path": "/b", "whyy": "w"}]),
        ),
        "names_with_reason" => (
            json!(["a.test", {"name": "b.test", "why": "w"}, {"domain": "c.test"}]),
            json!([{"why": "w"}]),
        ),
        "ports" => (json!([80, {"port": 81, "why": "w"}]), json!([0])),
        "protected" => (
            json!(["a", {"path": "b", "reason": "r"}, {"path": "c", "absent": "reported"}, {"path": "d", "absent": "refused"}]),
            json!([{"path": "b", "absent": "allowed"}]),
        ),
        "promises" => (json!(["P5", "network"]), json!(["P8"])),
        "cache_list" => (
            json!([{"path": "/x", "from": "/y", "why": "w"}]),
            json!([{"from": "/y"}]),
        ),
        "scratch_list" => (
            json!([{"at": "/x", "size": "1G", "shared": true}]),
            json!([{"size": 1}]),
        ),
        "mount_list" => (
            json!([{"at": "/x", "from": "/y", "access": "read"}]),
            json!([{"from": "/y"}]),
        ),
        "texts_by_name" => (json!({"A": "b"}), json!({"A": 1})),
        other => panic!("no example of {other}"),
    }
}

#[test]
fn schema_and_reader_take_and_refuse_the_same() {
    let keys = Keys::parse().unwrap();
    let kind_of = |key: &str| keys.keys[key].value.clone();
    let used = keys.keys.keys().map(|key| (key.clone(), kind_of(key)));
    let other = keys.aliases.iter().map(|(key, name)| (key.clone(), kind_of(name)));
    for (key, kind) in used.chain(other) {
        let (good, bad) = match key.as_str() {
            "extends" => (json!("system"), json!(3)),
            "pinfold.services" => (json!({"a.pinfold": "127.0.0.1:1"}), json!({"a.pinfold": 1})),
            _ => examples(&kind),
        };
        assert_eq!(both(&at(&key, good.clone())), (true, true), "{key} {good}");
        assert_eq!(both(&at(&key, bad.clone())), (false, false), "{key} {bad}");
        assert_eq!(both(&at(&key, Value::Null)), (true, true), "{key} null");
        assert!(!both(&at(&format!("{key}x"), good)).1, "{key}x");
    }
    for key in keys.ignored.keys() {
        assert_eq!(both(&at(key, json!(["x"]))), (true, true), "{key}");
    }
    for key in keys.refused.keys().filter(|key| !key.ends_with("endpoints")) {
        assert_eq!(both(&at(key, json!(["x"]))), (false, false), "{key}");
        assert_eq!(both(&at(key, json!([]))), (true, true), "{key}");
    }
    for unknown in [
        json!({"filesytem": {}}),
        json!({"filesystem": {"raed": []}}),
        json!({"pinfold": {"x": {}}}),
    ] {
        assert_eq!(both(&unknown), (false, false), "{unknown}");
    }
}

#[test]
fn every_shipped_profile_fits_the_schema() {
    let schema = schema().unwrap();
    for name in shipped_names() {
        let text = super::super::shipped::shipped(name).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert!(fits(&schema, &value, &schema), "{name}");
    }
}

#[test]
fn the_published_copies_are_what_the_table_makes() {
    let published: Value = serde_json::from_str(include_str!("../../../../profiles/schema.json")).unwrap();
    assert!(
        published == schema().unwrap(),
        "write it again: pinfold profile schema > profiles/schema.json"
    );
    let page = include_str!("../../../../docs/profiles.md");
    assert!(
        page.contains(&reference().unwrap()),
        "docs/profiles.md does not hold this:\n{}",
        reference().unwrap()
    );
}

#[test]
fn a_key_that_stands_twice_is_named_with_its_place() {
    for (text, key, line) in [
        ("{\"meta\": {},\n \"meta\": {}}", "meta", 2),
        (r#"{"network": {"block": true, "block": false}}"#, "network.block", 1),
        (
            "{\"filesystem\": {\"read\": [\"/a\",\n {\"path\": \"/b\", \"path\": \"/c\"}]}}",
            "filesystem.read[1].path",
            2,
        ),
        (
            r#"{"environment": {"set_vars": {"A": "1", "A": "2"}}}"#,
            "environment.set_vars.A",
            1,
        ),
    ] {
        match load_one(text) {
            Err(error @ ProfileError::Twice { .. }) => {
                let ProfileError::Twice {
                    key: found, line: at, ..
                } = &error
                else {
                    unreachable!()
                };
                assert_eq!((found.as_str(), *at), (key, line), "{error}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}
