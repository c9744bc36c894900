//! JSON in which a key stands once: of two, readers keep one or the other, and a person sees neither fail.

use super::ProfileError;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::fmt;
use std::path::Path;

/// The value in `bytes`.
pub(super) fn value(file: &Path, bytes: &[u8]) -> Result<Value, ProfileError> {
    let twice = RefCell::new(None);
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let root = Strict {
        key: String::new(),
        twice: &twice,
    };
    let read = root.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    read.map_err(|error| match twice.take() {
        Some(key) => ProfileError::Twice {
            file: file.to_owned(),
            key,
            line: error.line(),
            column: error.column(),
        },
        None => ProfileError::NotJson {
            file: file.to_owned(),
            line: error.line(),
            column: error.column(),
            text: reason(&error),
        },
    })
}

/// serde_json's sentence without the place, which stands in its own fields.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map(|(front, _)| front.to_owned())
        .unwrap_or(text)
}

/// Reads one value; `twice` gets the full name of a key that stands there a second time.
struct Strict<'a> {
    key: String,
    twice: &'a RefCell<Option<String>>,
}

impl Strict<'_> {
    fn below(&self, key: String) -> Strict<'_> {
        Strict { key, twice: self.twice }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;
    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self.below(format!("{}[{}]", self.key, values.len())))? {
            values.push(value);
        }
        Ok(values.into())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            let key = if self.key.is_empty() {
                name.clone()
            } else {
                format!("{}.{name}", self.key)
            };
            if map.contains_key(&name) {
                self.twice.replace(Some(key));
                return Err(A::Error::custom("a key stands there twice"));
            }
            let value = object.next_value_seed(self.below(key))?;
            map.insert(name, value);
        }
        Ok(map.into())
    }
}
