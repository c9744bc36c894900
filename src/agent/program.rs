//! Finds programs on the host without trusting the workspace's word for where they are.

use super::elf::{Image, read_image};
use super::{AgentError, Version};
use crate::base::AbsPath;
use std::env::{join_paths, split_paths};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Where an agent's program may be looked for.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The absolute path that the person's configuration names; then nothing else is tried.
    pub configured: Option<&'a Path>,
    /// The person's `PATH`.
    pub path: Option<&'a OsStr>,
    /// The folder that a sandboxed agent can write; nothing below it is taken.
    pub workspace: Option<&'a AbsPath>,
    /// Pinfold's own data folder.
    pub data: &'a AbsPath,
}

/// Which of the three places a program came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Configured,
    Path,
    /// Pinfold's own installation.
    Own,
}

/// A program for this machine whose version is not certain yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The program itself, links resolved; never a script.
    pub path: AbsPath,
    pub source: Source,
    /// What the package around it says. Without it, run [`super::Agent::version_argv`] in a sandbox.
    pub hint: Option<Version>,
}

impl Candidate {
    /// The program once its version is known.
    pub fn with_version(self, version: Version) -> Program {
        Program {
            path: self.path,
            source: self.source,
            version,
        }
    }
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program itself, links resolved; never a script.
    pub path: AbsPath,
    pub source: Source,
    pub version: Version,
}

/// What stands at a path that somebody wants to run.
pub(super) enum Checked {
    Program(AbsPath),
    /// A script, links resolved.
    Script(AbsPath),
}

/// The entries of `path` that are absolute, exist and lie outside the workspace, links resolved, as a new `PATH`.
pub(super) fn trusted_path(path: &OsStr, workspace: Option<&AbsPath>) -> OsString {
    let entries = split_paths(path)
        .filter(|entry| entry.is_absolute())
        .filter_map(|entry| entry.canonicalize().ok())
        .filter(|entry| !within(entry, workspace));
    // Only a colon could make this fail: an entry that came from a split has none, but its link's target may.
    join_paths(entries.filter(|entry| !entry.as_os_str().as_encoded_bytes().contains(&b':'))).unwrap_or_default()
}

/// Every executable of that name on the trusted part of `path`, the first one first.
pub(super) fn on_path(name: &str, path: &OsStr, workspace: Option<&AbsPath>) -> Vec<PathBuf> {
    let found = which::which_in_all(name, Some(trusted_path(path, workspace)), "/");
    found.map(Iterator::collect).unwrap_or_default()
}

/// Whether the file at `path` can run on this machine; follows links, and refuses what leads into the workspace.
pub(super) fn check(path: &Path, workspace: Option<&AbsPath>) -> Result<Checked, AgentError> {
    let unreadable = |source| AgentError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let wrong = |reason| AgentError::WrongMachine {
        path: path.to_owned(),
        reason,
    };
    let real = path.canonicalize().map_err(unreadable)?;
    if within(path, workspace) || within(&real, workspace) {
        return Err(AgentError::InWorkspace { path: path.to_owned() });
    }
    let metadata = real.metadata().map_err(unreadable)?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(AgentError::NotExecutable { path: path.to_owned() });
    }
    let image = read_image(&real).map_err(unreadable)?;
    let real = AbsPath::new(real).map_err(|error| wrong(error.to_string()))?;
    match image {
        Image::Script => Ok(Checked::Script(real)),
        Image::Foreign(reason) => Err(wrong(reason)),
        Image::Program { loader: Some(loader) } if !loader.exists() => Err(wrong(format!(
            "its loader {loader:?} is not here, so it is for another C library"
        ))),
        Image::Program { .. } => Ok(Checked::Program(real)),
    }
}

fn within(path: &Path, workspace: Option<&AbsPath>) -> bool {
    workspace.is_some_and(|root| path.starts_with(root.as_path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn folder(root: &Path, name: &str) -> PathBuf {
        let path = root.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn script(path: &Path) {
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn never_looks_into_the_workspace_or_relative_entries() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (bin, project) = (folder(&root, "bin"), folder(&root, "project/node_modules/.bin"));
        symlink(&project, root.join("alias")).unwrap();
        for place in [&bin, &project] {
            script(&place.join("opencode"));
        }
        let path = join_paths([Path::new(""), Path::new("."), &project, &root.join("alias"), &bin]).unwrap();
        let workspace = AbsPath::new(root.join("project")).unwrap();
        assert_eq!(on_path("opencode", &path, Some(&workspace)), [bin.join("opencode")]);
        assert_eq!(
            on_path("opencode", &path, None).len(),
            3,
            "the planted one is found without a workspace"
        );
    }

    #[test]
    fn refuses_a_link_that_leads_into_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let project = folder(&root, "project");
        script(&project.join("planted"));
        symlink(project.join("planted"), root.join("opencode")).unwrap();
        let workspace = AbsPath::new(&project).unwrap();
        assert!(matches!(
            check(&root.join("opencode"), Some(&workspace)),
            Err(AgentError::InWorkspace { .. })
        ));
        assert!(matches!(check(&root.join("opencode"), None), Ok(Checked::Script(_))));
    }

    #[test]
    fn says_what_is_wrong_with_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let absent = dir.path().join("absent");
        assert!(matches!(check(&absent, None), Err(AgentError::Unreadable { .. })));
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "text").unwrap();
        assert!(matches!(check(&plain, None), Err(AgentError::NotExecutable { .. })));
        std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(check(&plain, None), Ok(Checked::Script(_))));
        std::fs::write(&plain, b"\x7fELF\x01\x01").unwrap();
        assert!(matches!(check(&plain, None), Err(AgentError::WrongMachine { .. })));
        assert!(matches!(check(dir.path(), None), Err(AgentError::NotExecutable { .. })));
    }
}
