//! Finding the programs that Pinfold itself runs, where nobody inside a sandbox can plant one.

use super::fault::{Explain, Kind};
use super::path::AbsPath;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// No usable program of that name.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{name} is not installed, or only in folders that are not trusted")]
pub struct ProgramError {
    /// The name that was looked for.
    pub name: String,
}

impl Explain for ProgramError {
    fn kind(&self) -> Kind {
        Kind::NotFound
    }
    fn hint(&self) -> Option<String> {
        Some(format!(
            "install {} outside the workspace, in a folder with an absolute entry in PATH",
            self.name
        ))
    }
}

/// The first executable regular file `name` on `path` (a PATH variable), links resolved. Skipped are empty and relative
/// entries, and whatever lies, before or after links are resolved, inside `untrusted`: the agent can write there.
pub fn find(name: &str, path: &OsStr, untrusted: Option<&AbsPath>) -> Result<AbsPath, ProgramError> {
    let missing = || ProgramError { name: name.to_owned() };
    let root = untrusted.map(|root| root.as_path().canonicalize().unwrap_or(root.as_path().to_owned()));
    let trusted = |path: &Path| {
        !root.as_ref().is_some_and(|root| path.starts_with(root))
            && !untrusted.is_some_and(|root| path.starts_with(root.as_path()))
    };
    path.as_bytes()
        .split(|b| *b == b':')
        .map(|entry| Path::new(OsStr::from_bytes(entry)))
        .filter(|entry| entry.is_absolute() && trusted(entry))
        .filter_map(|entry| Some((entry.canonicalize().ok()?, entry.join(name).canonicalize().ok()?)))
        .find(|(folder, file)| trusted(folder) && trusted(file) && is_program(file))
        .and_then(|(_, file)| AbsPath::new(file).ok())
        .ok_or_else(missing)
}

fn is_program(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::fs::symlink;

    fn plant(folder: &Path, mode: u32) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("tool"), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(folder.join("tool"), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn search(entries: &[&Path]) -> OsString {
        std::env::join_paths(entries).unwrap()
    }

    #[test]
    fn takes_the_first_that_can_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (a, b, c) = (base.join("a"), base.join("b"), base.join("c"));
        plant(&a, 0o644);
        plant(&b, 0o755);
        plant(&c, 0o755);
        let found = find("tool", &search(&[&a, &b, &c]), None).unwrap();
        assert_eq!(found.as_path(), b.join("tool"));
    }

    #[test]
    fn never_takes_one_from_the_workspace_by_any_way() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (work, outside, alias) = (base.join("work"), base.join("outside"), base.join("alias"));
        plant(&work.join("bin"), 0o755);
        std::fs::create_dir(&outside).unwrap();
        symlink(work.join("bin"), &alias).unwrap();
        symlink(work.join("bin/tool"), outside.join("tool")).unwrap();
        // A folder of the workspace that links out is in the agent's hand too.
        let trusted = base.join("trusted");
        plant(&trusted, 0o755);
        symlink(&trusted, work.join("out")).unwrap();
        let entries = [work.join("bin"), alias, outside, work.join("out")];
        let path = search(&entries.each_ref().map(|p| p.as_path()));
        let root = AbsPath::new(&work).unwrap();
        assert!(
            find("tool", &path, None).is_ok(),
            "control: without a workspace the first is taken"
        );
        assert_eq!(
            find("tool", &path, Some(&root)),
            Err(ProgramError {
                name: "tool".to_owned()
            })
        );
    }

    #[test]
    fn skips_empty_and_relative_entries() {
        for path in ["", ":", ".", "bin:.:", "src/../bin"] {
            assert!(find("Cargo.toml", OsStr::new(path), None).is_err(), "{path}");
        }
    }
}
