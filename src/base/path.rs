//! Absolute paths without `.` or `..`; bytes, not text.

use super::text::visible;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

/// Why a path was not taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PathError {
    #[error("{0:?} is not an absolute path")]
    Relative(PathBuf),
    #[error("{0:?} has a `..` in it")]
    Parent(PathBuf),
    #[error("{0:?} has a NUL byte in it")]
    Nul(PathBuf),
}

/// An absolute path with no `.`, `..`, doubled or trailing slash or NUL. It may still name a link, or nothing.
///
/// There is one spelling of each, so that paths are compared as bytes: a launch compares thousands of pairs.
#[derive(Debug, Clone, Eq, PartialOrd, Ord)]
pub struct AbsPath(PathBuf);

impl PartialEq for AbsPath {
    fn eq(&self, other: &AbsPath) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Hash for AbsPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl AbsPath {
    /// Checks and normalises without touching the file system.
    pub fn new(path: impl AsRef<Path>) -> Result<AbsPath, PathError> {
        let path = path.as_ref();
        if !path.is_absolute() {
            return Err(PathError::Relative(path.to_owned()));
        }
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(PathError::Nul(path.to_owned()));
        }
        let below = path.as_os_str().as_bytes().strip_prefix(b"/").unwrap_or_default();
        let mut names = below.split(|byte| *byte == b'/');
        if names.clone().any(|name| name == b"..") {
            return Err(PathError::Parent(path.to_owned()));
        }
        let is_plain = below.is_empty() || names.all(|name| !name.is_empty() && name != b".");
        Ok(AbsPath(if is_plain {
            path.to_owned()
        } else {
            path.components().filter(|c| *c != Component::CurDir).collect()
        }))
    }
    /// `/`.
    pub fn root() -> AbsPath {
        AbsPath(PathBuf::from("/"))
    }
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
    /// This path with one more name (no slash, not `..`).
    pub fn join(&self, name: impl AsRef<OsStr>) -> Result<AbsPath, PathError> {
        AbsPath::new(self.0.join(name.as_ref()))
    }
    /// Whether this is `other` or lies below it, by whole components.
    pub fn is_within(&self, other: &AbsPath) -> bool {
        let rest = self.bytes().strip_prefix(other.bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || other.bytes() == b"/")
    }
    /// The folder above, or nothing for `/`.
    pub fn parent(&self) -> Option<AbsPath> {
        self.0.parent().map(|p| AbsPath(p.to_owned()))
    }
    fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }
    /// This path without its leading slash: what is opened below a new root.
    pub fn below_root(&self) -> &Path {
        let below = self.bytes().strip_prefix(b"/");
        below.map_or(&self.0, |below| Path::new(OsStr::from_bytes(below)))
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl std::fmt::Display for AbsPath {
    /// For a person: control and hidden characters and bytes that are not UTF-8 are escaped, so it is no path to open.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&visible(&self.0))
    }
}

/// A path in JSON: its text, or `{"bytes": "<hexadecimal>"}` when it is not UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes { bytes: String },
}

impl Serialize for AbsPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => Written::Bytes {
                bytes: super::ids::hex(self.0.as_os_str().as_bytes()),
            }
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AbsPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = match Written::deserialize(deserializer)? {
            Written::Text(text) => OsString::from(text),
            Written::Bytes { bytes } => OsString::from_vec(unhex(&bytes).ok_or_else(|| {
                serde::de::Error::custom("the bytes of a path are pairs of lower-case hexadecimal digits")
            })?),
        };
        AbsPath::new(PathBuf::from(path)).map_err(serde::de::Error::custom)
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_utf8_path_is_a_plain_string_in_json() {
        let path = AbsPath::new("/a b/ü").unwrap();
        assert_eq!(serde_json::to_string(&path).unwrap(), "\"/a b/ü\"");
    }

    #[test]
    fn another_path_is_its_bytes_in_json() {
        let path = AbsPath::new(OsStr::from_bytes(b"/p\nq \xff")).unwrap();
        assert_eq!(serde_json::to_string(&path).unwrap(), r#"{"bytes":"2f700a7120ff"}"#);
        assert_eq!(path.to_string(), "/p\\nq \\xff");
    }

    #[test]
    fn refuses_json_that_is_no_absolute_path() {
        for json in [
            r#""a""#,
            r#""/a/../b""#,
            r#""/a\u0000""#,
            r#"{"bytes":"2"}"#,
            r#"{"bytes":"2F"}"#,
            r#"{"bytes":"61"}"#,
            "3",
        ] {
            assert!(serde_json::from_str::<AbsPath>(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn bytes_compare_as_components_do(one in "/([a./-]{0,6})", other in "/([a./-]{0,6})") {
            if let (Ok(a), Ok(b)) = (AbsPath::new(&one), AbsPath::new(&other)) {
                prop_assert_eq!(a == b, a.as_path() == b.as_path());
                prop_assert_eq!(a.is_within(&b), a.as_path().starts_with(b.as_path()));
                prop_assert_eq!(a.as_path(), Path::new(&one));
                prop_assert_eq!(a.below_root(), a.as_path().strip_prefix("/").unwrap());
                let again = AbsPath::new(a.as_path()).unwrap();
                prop_assert_eq!(again.as_path().as_os_str(), a.as_path().as_os_str());
            }
        }

        #[test]
        fn every_path_survives_json(bytes in proptest::collection::vec(1u8.., 0..40)) {
            let mut raw = b"/".to_vec();
            raw.extend(bytes);
            if let Ok(path) = AbsPath::new(OsStr::from_bytes(&raw)) {
                let json = serde_json::to_string(&path).unwrap();
                prop_assert_eq!(serde_json::from_str::<AbsPath>(&json).unwrap(), path);
            }
        }
    }
}
