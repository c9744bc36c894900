//! Finds a profile and what it extends, and merges them.

use super::parse::{Parsed, parse};
use super::shipped::shipped;
use super::{Profile, ProfileError};
use crate::base::AbsPath;
use crate::policy::host::{Host, HostKind};
use crate::policy::walk::{WalkError, walk};
use std::io;
use std::path::{Path, PathBuf};

/// Every profile that extends nothing extends this one, so that none lacks the system, the environment list and the
/// protected paths.
const BASE: &str = "system";
const DEEPEST: usize = 16;
/// Far more than a profile needs; a longer file is a mistake.
const LARGEST: u64 = 1 << 20;

/// Loads the profile `name` and everything that it extends. `name` is a file (absolute, or ending in `.json` and
/// relative to the profile that extends it) or the name of one in `folders` (`NAME.json`, first folder first), else
/// of a shipped one.
pub fn load(name: &str, folders: &[PathBuf], host: &dyn Host) -> Result<Profile, ProfileError> {
    let mut loader = Loader {
        folders,
        host,
        path: Vec::new(),
        done: Vec::new(),
        merged: Profile::default(),
    };
    loader.add(name, None)?;
    super::groups::expand(&mut loader.merged)?;
    Ok(loader.merged)
}

/// The file of the profile `name`, found as [`load`] finds it, and its bytes as they are written. A shipped one is called
/// `shipped:NAME`.
pub fn written(name: &str, folders: &[PathBuf], host: &dyn Host) -> Result<(PathBuf, Vec<u8>), ProfileError> {
    let loader = Loader {
        folders,
        host,
        path: Vec::new(),
        done: Vec::new(),
        merged: Profile::default(),
    };
    loader.find(name, None)
}

struct Loader<'a> {
    folders: &'a [PathBuf],
    host: &'a dyn Host,
    /// Files from the asked-for profile down to the one in hand, with their names.
    path: Vec<(PathBuf, String)>,
    /// Files that are merged already: a parent that two profiles share counts once.
    done: Vec<PathBuf>,
    merged: Profile,
}

impl Loader<'_> {
    fn add(&mut self, name: &str, by: Option<&Path>) -> Result<(), ProfileError> {
        let (file, bytes) = self.find(name, by)?;
        if self.path.iter().any(|(above, _)| *above == file) {
            let chain = self
                .path
                .iter()
                .map(|(_, name)| name.clone())
                .chain([name.to_owned()])
                .collect();
            return Err(ProfileError::Loop { chain });
        }
        if self.path.len() == DEEPEST {
            return Err(ProfileError::Deep(DEEPEST));
        }
        if self.done.contains(&file) {
            return Ok(());
        }
        let Parsed { profile, extends } = parse(name, &file, &bytes)?;
        let is_base = file == shipped_file(BASE);
        let extends = extends.filter(|parents| !parents.is_empty() || is_base);
        let extends = extends.unwrap_or_else(|| if is_base { Vec::new() } else { vec![BASE.to_owned()] });
        self.path.push((file.clone(), name.to_owned()));
        for parent in &extends {
            self.add(parent, Some(&file))?;
        }
        self.path.pop();
        self.done.push(file);
        self.merged = profile.over(std::mem::take(&mut self.merged));
        Ok(())
    }

    fn find(&self, name: &str, by: Option<&Path>) -> Result<(PathBuf, Vec<u8>), ProfileError> {
        let beside = by.and_then(Path::parent).filter(|folder| folder.is_absolute());
        let candidates: Vec<PathBuf> = match (Path::new(name).is_absolute(), name.ends_with(".json")) {
            (true, _) => vec![PathBuf::from(name)],
            (false, true) => beside.map(|folder| folder.join(name)).into_iter().collect(),
            (false, false) => self
                .folders
                .iter()
                .map(|folder| folder.join(format!("{name}.json")))
                .collect(),
        };
        for file in &candidates {
            if let Some(found) = self.read(file)? {
                return Ok(found);
            }
        }
        if let Some(text) = shipped(name) {
            return Ok((shipped_file(name), text.as_bytes().to_vec()));
        }
        let by = self.path.last().map(|(_, name)| name.clone());
        Err(ProfileError::Missing {
            name: name.to_owned(),
            by,
            looked: candidates,
        })
    }

    /// The canonical file and its bytes, or nothing if there is none.
    fn read(&self, file: &Path) -> Result<Option<(PathBuf, Vec<u8>)>, ProfileError> {
        let failed = |source: io::Error| ProfileError::Read {
            file: file.to_owned(),
            source,
        };
        let walked = walk(file, self.host).map_err(|error| match error {
            WalkError::Io { source, .. } => failed(source),
            other => failed(io::Error::new(io::ErrorKind::InvalidInput, other.to_string())),
        })?;
        match walked.kind {
            None => Ok(None),
            Some(HostKind::File) => {
                let bytes = self.host.read_small(&walked.path, LARGEST).map_err(failed)?;
                Ok(Some((AbsPath::as_path(&walked.path).to_owned(), bytes)))
            }
            Some(_) => Err(failed(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ))),
        }
    }
}

fn shipped_file(name: &str) -> PathBuf {
    PathBuf::from(format!("shipped:{name}"))
}
