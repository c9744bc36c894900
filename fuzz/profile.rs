//! Profiles: bytes of any kind, and JSON that is nearly a profile.

use crate::harness::Random;
use pinfold::base::AbsPath;
use pinfold::policy::{Host, HostKind};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// A host with one file.
struct OneFile(Vec<u8>);

impl Host for OneFile {
    fn kind(&self, path: &AbsPath) -> io::Result<HostKind> {
        match path.as_path().to_str() {
            Some("/fuzzed.json") => Ok(HostKind::File),
            Some("/") => Ok(HostKind::Dir),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
    fn read_link(&self, _: &AbsPath) -> io::Result<PathBuf> {
        Err(io::ErrorKind::InvalidInput.into())
    }
    fn list(&self, _: &AbsPath) -> io::Result<Vec<OsString>> {
        Ok(Vec::new())
    }
    fn read_small(&self, _: &AbsPath, _: u64) -> io::Result<Vec<u8>> {
        Ok(self.0.clone())
    }
    fn name_count(&self, _: &AbsPath) -> io::Result<u64> {
        Ok(1)
    }
    fn uid(&self) -> u32 {
        1000
    }
    fn home(&self) -> Option<PathBuf> {
        None
    }
    fn environment(&self) -> Vec<(OsString, OsString)> {
        Vec::new()
    }
}

fn loaded(bytes: &[u8]) -> Result<pinfold::policy::Profile, pinfold::policy::ProfileError> {
    pinfold::policy::load("/fuzzed.json", &[], &OneFile(bytes.to_vec()))
}

/// Loads the bytes as they are, or a profile that is made of them.
pub fn load(input: &[u8], random: &mut Random) -> Result<(), String> {
    let bytes = match serde_json::from_slice::<Value>(input) {
        Ok(mut value) if random.below(4) > 0 => {
            for _ in 0..=random.below(3) {
                twist(&mut value, random);
            }
            value.to_string().into_bytes()
        }
        _ => input.to_vec(),
    };
    let (first, again) = (loaded(&bytes), loaded(&bytes));
    match (&first, &again) {
        (Ok(first), Ok(again)) if first == again => {}
        (Err(first), Err(again)) if first.to_string() == again.to_string() => {}
        _ => return Err(format!("not the same twice: {}", bytes.escape_ascii())),
    }
    // A word that no profile knows must not be passed over.
    if let (Ok(_), Ok(Value::Object(mut keys))) = (&first, serde_json::from_slice::<Value>(&bytes)) {
        keys.insert(format!("x{:x}", random.next()), json!(true));
        if loaded(Value::Object(keys).to_string().as_bytes()).is_ok() {
            return Err(format!("an unknown key was passed over in {}", bytes.escape_ascii()));
        }
    }
    Ok(())
}

/// Puts something else somewhere.
fn twist(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(keys) if !keys.is_empty() && random.below(5) > 0 => {
            let at = random.below(keys.len());
            if let Some(inner) = keys.values_mut().nth(at) {
                twist(inner, random);
            }
        }
        Value::Array(list) if !list.is_empty() && random.below(5) > 0 => {
            let at = random.below(list.len());
            twist(&mut list[at], random);
        }
        other => *other = strange(random),
    }
}

fn strange(random: &mut Random) -> Value {
    let texts = [
        "",
        "/",
        "~",
        "$HOME/x",
        "$NONE",
        "a\0b",
        "*",
        "../..",
        "example.com:0",
        "[::1]:99999",
        "\u{202e}x",
        "1e999",
    ];
    match random.below(9) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => json!(random.next()),
        3 => json!(-1),
        4 => json!(1.5e300),
        5 => json!([]),
        6 => Value::Object(Map::new()),
        7 => json!([random.one_of(&texts), { "path": random.one_of(&texts), "name": random.one_of(&texts) }]),
        _ => json!(random.one_of(&texts)),
    }
}
