//! Reads JSON values by their full key, so that every error can name it.

use super::keys::{Keys, Known, nearest};
use super::{Entry, ProfileError};
use crate::base::Port;
use crate::policy::frozen::{Access, Origin, parse_processors, parse_size};
use serde_json::{Map, Value};
use std::path::Path;

/// One value of a profile and where it stands.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    pub keys: &'a Keys,
    pub file: &'a Path,
    /// The profile's name, for origins.
    pub source: &'a str,
    /// The full key, for example `filesystem.read[2]`.
    pub key: String,
    pub value: &'a Value,
}

impl<'a> Reader<'a> {
    pub fn at(&self, key: String, value: &'a Value) -> Reader<'a> {
        Reader {
            key,
            value,
            ..self.clone()
        }
    }
    pub fn wrong(&self, expected: &'static str) -> ProfileError {
        ProfileError::Wrong {
            file: self.file.to_owned(),
            key: self.key.clone(),
            expected,
        }
    }
    pub fn refused(&self, reason: &str) -> ProfileError {
        ProfileError::Refused {
            file: self.file.to_owned(),
            key: self.key.clone(),
            reason: reason.to_owned(),
        }
    }
    pub fn origin(&self, why: Option<String>) -> Origin {
        Origin {
            source: self.source.to_owned(),
            key: self.key.clone(),
            why,
        }
    }

    pub fn object(&self) -> Result<&'a Map<String, Value>, ProfileError> {
        self.value.as_object().ok_or_else(|| self.wrong("an object"))
    }
    pub fn text(&self) -> Result<&'a str, ProfileError> {
        let text = self
            .value
            .as_str()
            .filter(|text| !text.is_empty() && !text.contains('\0'));
        text.ok_or_else(|| self.wrong("a string that is not empty"))
    }
    pub fn flag(&self) -> Result<bool, ProfileError> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }
    pub fn number(&self) -> Result<u64, ProfileError> {
        self.value.as_u64().ok_or_else(|| self.wrong("a whole number"))
    }
    pub fn port(&self) -> Result<Port, ProfileError> {
        let port = self
            .value
            .as_u64()
            .and_then(|number| u16::try_from(number).ok())
            .and_then(Port::new);
        port.ok_or_else(|| self.wrong("a port from 1 to 65535"))
    }
    pub fn access(&self) -> Result<Access, ProfileError> {
        match self.value.as_str() {
            Some("read") => Ok(Access::Read),
            Some("readwrite") => Ok(Access::ReadWrite),
            _ => Err(self.wrong("`read` or `readwrite`")),
        }
    }
    /// A number of bytes, or a string with `K`, `M` or `G` behind the number.
    pub fn bytes(&self) -> Result<u64, ProfileError> {
        let bytes = self.value.as_u64().filter(|bytes| *bytes > 0);
        let bytes = bytes.or_else(|| self.value.as_str().and_then(parse_size));
        bytes.ok_or_else(|| self.wrong("a size in bytes, or for example \"512M\""))
    }

    /// Thousandths of a processor, from a number or a string of processors.
    pub fn processors(&self) -> Result<u64, ProfileError> {
        let text = match self.value {
            Value::Number(number) => number.to_string(),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        parse_processors(&text).ok_or_else(|| self.wrong("a number of processors, for example 1.5"))
    }

    pub fn list(&self) -> Result<Vec<Reader<'a>>, ProfileError> {
        let values = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        Ok(values
            .iter()
            .enumerate()
            .map(|(i, value)| self.at(format!("{}[{i}]", self.key), value))
            .collect())
    }
    pub fn texts(&self) -> Result<Vec<String>, ProfileError> {
        self.list()?.iter().map(|one| one.text().map(str::to_owned)).collect()
    }

    /// A list whose entries are a string, or an object with `path` or `name` and the reason.
    pub fn entries(&self, kind: &str) -> Result<Vec<Entry>, ProfileError> {
        let mut entries = Vec::new();
        for one in self.list()? {
            if one.applies(kind)? {
                entries.push(one.entry(kind)?);
            }
        }
        Ok(entries)
    }

    /// Whether an entry is for this operating system.
    fn applies(&self, kind: &str) -> Result<bool, ProfileError> {
        let Some(when) = self.value.get("when") else {
            return Ok(true);
        };
        self.fields(kind)?;
        match when.as_str() {
            Some("linux" | "!macos") => Ok(true),
            Some("macos" | "!linux") => Ok(false),
            _ => Err(self.wrong("for `linux` or `macos`, or without `when`")),
        }
    }

    fn entry(&self, kind: &str) -> Result<Entry, ProfileError> {
        if self.value.is_string() {
            return Ok(Entry {
                text: self.text()?.to_owned(),
                optional: false,
                origin: self.origin(None),
            });
        }
        let is_domain = kind == "name" && self.value.get("domain").is_some();
        let fields = self.fields(if is_domain { "domain" } else { kind })?;
        let text = fields
            .get("path")
            .or(fields.get("name"))
            .or(fields.get("domain"))
            .ok_or_else(|| self.wrong("a string or an object with a path or name"))?;
        let why = fields
            .get("why")
            .or(fields.get("reason"))
            .map(|why| why.text())
            .transpose()?;
        let optional = fields.get("optional").map(|optional| optional.flag()).transpose()?;
        Ok(Entry {
            text: text.text()?.to_owned(),
            optional: optional.unwrap_or(false),
            origin: self.origin(why.map(str::to_owned)),
        })
    }

    /// A list of ports: a number, or an object with `port` and `why`.
    pub fn ports(&self) -> Result<Vec<(Port, Origin)>, ProfileError> {
        self.list()?
            .iter()
            .map(|one| {
                if one.value.is_number() {
                    return Ok((one.port()?, one.origin(None)));
                }
                let fields = one.fields("port_with_reason")?;
                let port = fields.get("port").ok_or_else(|| one.wrong("a port from 1 to 65535"))?;
                let why = fields.get("why").map(|why| why.text()).transpose()?;
                Ok((port.port()?, one.origin(why.map(str::to_owned))))
            })
            .collect()
    }

    /// The fields of an entry; a name that its kind does not have is an error.
    pub fn fields(&self, kind: &str) -> Result<Fields<'a>, ProfileError> {
        let known = self.keys.of_entry(kind);
        let object = self.object()?;
        for name in object.keys() {
            if let Known::Refused(reason) = self.keys.look_up(&format!("{}.{name}", without_numbers(&self.key))) {
                let below = self.at(format!("{}.{name}", self.key), self.value);
                return Err(below.refused(reason));
            }
            if !known.contains(&name.as_str()) {
                return Err(ProfileError::UnknownKey {
                    file: self.file.to_owned(),
                    key: format!("{}.{name}", self.key),
                    nearest: nearest(name, known.iter().copied()).map(|near| format!("{}.{near}", self.key)),
                });
            }
        }
        Ok(Fields {
            reader: self.clone(),
            object,
        })
    }
}

/// `filesystem.read[2]` as `filesystem.read`.
fn without_numbers(key: &str) -> &str {
    key.split('[').next().unwrap_or(key)
}

/// The checked fields of one entry.
pub(super) struct Fields<'a> {
    reader: Reader<'a>,
    object: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub fn get(&self, name: &str) -> Option<Reader<'a>> {
        self.object
            .get(name)
            .map(|value| self.reader.at(format!("{}.{name}", self.reader.key), value))
    }
    pub fn has(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }
}
