//! Which files the host may execute or trust: `profiles/executed.json`, and what the policy protects in the workspace,
//! at any depth. Pure.

use crate::base::AbsPath;
use crate::policy::Policy;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Stands for every folder that git takes for a git folder, whatever its name.
const GIT: &str = "@git";

/// One kind of file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    except: Option<String>,
    /// Never a folder.
    #[serde(default)]
    file: bool,
    /// Content that says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinary: Option<String>,
    pub reason: String,
}

/// A folder that is treated differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Folder {
    path: String,
    why: String,
}

/// All kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kinds {
    entries: Vec<Kind>,
    skip: Vec<Folder>,
    late: Vec<Folder>,
    missed: Vec<Folder>,
}

/// When a folder is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Soon,
    Late,
    Never,
}

impl Kinds {
    /// The shipped ones.
    pub fn shipped() -> Result<Kinds, serde_json::Error> {
        serde_json::from_str(include_str!("../../../profiles/executed.json"))
    }

    /// With what the policy protects in its root: the same names mean the same in every folder of it.
    pub fn of(policy: &Policy) -> Result<Kinds, serde_json::Error> {
        let mut kinds = Kinds::shipped()?;
        let below = |path: &AbsPath| {
            let below = path.as_path().strip_prefix(policy.root.as_ref()?.as_path()).ok()?;
            below
                .to_str()
                .map(str::to_owned)
                .filter(|text| !text.is_empty() && !text.contains('*'))
        };
        for protected in &policy.protected {
            if let Some(path) = below(&protected.path).filter(|path| !Path::new(path).starts_with(".git")) {
                kinds.entries.push(Kind {
                    path,
                    except: None,
                    file: false,
                    ordinary: None,
                    reason: protected.reason.clone(),
                });
            }
        }
        Ok(kinds)
    }

    /// What should still be there after a launch, below the workspace, and why.
    pub fn missed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.missed
            .iter()
            .map(|folder| (folder.path.as_str(), folder.why.as_str()))
    }

    /// The kind of a file, whose names below the granted folder are these; `git` counts the names up to the git folder
    /// that holds it.
    pub fn of_file(&self, names: &[OsString], git: Option<usize>) -> Option<&Kind> {
        self.entries.iter().find(|kind| {
            let excepted = kind
                .except
                .as_ref()
                .zip(names.last())
                .is_some_and(|(except, name)| fits(except, name));
            let shortest = if kind.file { names.len() } else { 1 };
            stands_in(&kind.path, names, git, shortest) && !excepted
        })
    }

    /// Whether it is one that says nothing, though it stands where others would.
    pub fn is_excepted(&self, names: &[OsString], git: Option<usize>) -> bool {
        self.entries.iter().any(|kind| {
            let excepted = kind
                .except
                .as_ref()
                .zip(names.last())
                .is_some_and(|(except, name)| fits(except, name));
            excepted && stands_in(&kind.path, names, git, 1)
        })
    }

    /// When a folder is looked at.
    pub fn turn(&self, names: &[OsString], git: Option<usize>) -> Turn {
        let ends_in = |folder: &&Folder| {
            let wanted: Vec<&str> = folder.path.split('/').collect();
            ends(&wanted, names, git)
        };
        if self.skip.iter().any(|folder| ends_in(&folder)) {
            Turn::Never
        } else if self.late.iter().any(|folder| ends_in(&folder)) {
            Turn::Late
        } else {
            Turn::Soon
        }
    }
}

/// Whether a pattern names the file or a folder that holds it.
fn stands_in(pattern: &str, names: &[OsString], git: Option<usize>, shortest: usize) -> bool {
    let wanted: Vec<&str> = pattern.split('/').collect();
    (shortest..=names.len()).any(|end| ends(&wanted, &names[..end], git))
}

/// Whether names end in the wanted ones.
fn ends(wanted: &[&str], names: &[OsString], git: Option<usize>) -> bool {
    let (in_git, wanted) = match wanted {
        [first, rest @ ..] if *first == GIT => (true, rest),
        all => (false, all),
    };
    let Some(start) = names.len().checked_sub(wanted.len()) else {
        return false;
    };
    (!in_git || git == Some(start))
        && wanted
            .iter()
            .zip(&names[start..])
            .all(|(wanted, name)| fits(wanted, name))
}

/// One name against a pattern with at most one `*`.
fn fits(pattern: &str, name: &OsStr) -> bool {
    let name = name.as_bytes();
    match pattern.split_once('*') {
        None => pattern.as_bytes() == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len()
                && name.starts_with(start.as_bytes())
                && name.ends_with(end.as_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Vec<OsString> {
        path.split('/').map(OsString::from).collect()
    }

    #[test]
    fn tells_what_the_host_may_execute_from_ordinary_files() {
        let kinds = Kinds::shipped().unwrap();
        for (path, git, is_one) in [
            ("package.json", None, true),
            ("a/b/package.json", None, true),
            ("a/package.json5", None, false),
            (".github/workflows/ci.yml", None, true),
            (".github/README.md", None, false),
            ("v/.git/hooks/pre-commit", Some(2), true),
            ("v/.git/hooks/pre-commit.sample", Some(2), false),
            ("v/hooks/pre-commit", None, false),
            ("odd/config", Some(1), true),
            ("odd/config", None, false),
            ("odd/sub/config", Some(1), false),
            ("sub/.git", None, true),
            ("src/main.rs", None, false),
            ("rules.mk", None, true),
        ] {
            assert_eq!(kinds.of_file(&names(path), git).is_some(), is_one, "{path}");
        }
    }

    #[test]
    fn looks_at_what_tools_fill_last_and_at_objects_never() {
        let kinds = Kinds::shipped().unwrap();
        for (path, git, turn) in [
            ("src", None, Turn::Soon),
            ("a/node_modules", None, Turn::Late),
            ("a/.git/objects", Some(2), Turn::Never),
            ("objects", None, Turn::Soon),
        ] {
            assert_eq!(kinds.turn(&names(path), git), turn, "{path}");
        }
    }

    #[test]
    fn every_kind_and_folder_has_its_reason() {
        let kinds = Kinds::shipped().unwrap();
        assert!(
            kinds
                .entries
                .iter()
                .all(|kind| !kind.reason.is_empty() && !kind.path.is_empty())
        );
        assert!(
            kinds
                .skip
                .iter()
                .chain(&kinds.late)
                .chain(&kinds.missed)
                .all(|folder| !folder.why.is_empty())
        );
    }
}
