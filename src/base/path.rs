//! Absolute paths without `.` or `..`; bytes, not text.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
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

/// An absolute path with no `.`, `..`, doubled slash or NUL. It may still name a link, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsPath(PathBuf);

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
        if path.components().any(|c| c == Component::ParentDir) {
            return Err(PathError::Parent(path.to_owned()));
        }
        Ok(AbsPath(path.components().filter(|c| *c != Component::CurDir).collect()))
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
        self.0.starts_with(&other.0)
    }
    /// The folder above, or nothing for `/`.
    pub fn parent(&self) -> Option<AbsPath> {
        self.0.parent().map(|p| AbsPath(p.to_owned()))
    }
    /// This path without its leading slash: what is opened below a new root.
    pub fn below_root(&self) -> &Path {
        self.0.strip_prefix("/").unwrap_or(&self.0)
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl std::fmt::Display for AbsPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.display().fmt(f)
    }
}

impl Serialize for AbsPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.to_string_lossy().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AbsPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        AbsPath::new(PathBuf::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
