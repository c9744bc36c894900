//! Where Pinfold keeps its files: found once, from the environment that it is given.

use super::Environ;
use super::fault::{Explain, Kind};
use super::path::{AbsPath, PathError};
use super::text::visible;
use nix::sys::stat::Mode;
use nix::unistd::{Uid, User};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirsError {
    #[error("user {0} has no home folder: HOME is not set and there is no such user")]
    NoHome(Uid),
    #[error("{variable}: {source}")]
    Variable { variable: &'static str, source: PathError },
    #[error("{} belongs to another user", visible(.0))]
    NotOurs(PathBuf),
    #[error("{} can be changed by other users", visible(.0))]
    Exposed(PathBuf),
    #[error("{} is not a folder", visible(.0))]
    NotFolder(PathBuf),
    #[error("{} is a link that leads nowhere", visible(.0))]
    Dangling(PathBuf),
    #[error("cannot use the folder {}: {source}", visible(path))]
    Io { path: PathBuf, source: io::Error },
}

impl Explain for DirsError {
    fn kind(&self) -> Kind {
        match self {
            DirsError::NotOurs(_) | DirsError::Exposed(_) => Kind::Permission,
            DirsError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Kind::Permission,
            _ => Kind::Config,
        }
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            DirsError::NoHome(_) => "set HOME to an absolute path".to_owned(),
            DirsError::Variable { variable, .. } => format!("set {variable} to an absolute path, or unset it"),
            DirsError::NotOurs(_) => "use a folder of your own (HOME and the XDG_* variables say which)".to_owned(),
            DirsError::Exposed(path) => format!("run `chmod go-w` on {}", visible(path)),
            DirsError::NotFolder(_) | DirsError::Dangling(_) => "move it out of the way".to_owned(),
            DirsError::Io { .. } => "point the XDG_* variables to folders that you can write".to_owned(),
        })
    }
}

/// The four folders, links resolved, so that whether one lies in a workspace can be told from its path. `runtime` exists
/// and is private; the others may still have to be made with [`make`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// Profiles and settings: HERDR_PLUGIN_CONFIG_DIR, else XDG_CONFIG_HOME/pinfold, else ~/.config/pinfold.
    pub config: AbsPath,
    /// Records and logs: HERDR_PLUGIN_STATE_DIR, else XDG_STATE_HOME/pinfold, else ~/.local/state/pinfold.
    pub state: AbsPath,
    /// Installed agents: XDG_DATA_HOME/pinfold, else ~/.local/share/pinfold.
    pub data: AbsPath,
    /// Sockets: XDG_RUNTIME_DIR/pinfold if that is ours alone, else /tmp/pinfold-UID. Short, for socket paths.
    pub runtime: AbsPath,
}

impl Dirs {
    /// Finds the folders of user `uid`. Relative paths, folders of others, and folders that others can change are
    /// errors; an unusable XDG_RUNTIME_DIR only leads to the fallback.
    pub fn resolve(env: &Environ, uid: Uid) -> Result<Dirs, DirsError> {
        let place = |plugin: Option<&'static str>, xdg: &'static str, below_home: &str| {
            if let Some(path) = plugin.map(|name| absolute(env, name)).transpose()?.flatten() {
                return located(path.as_path(), uid);
            }
            let base = match absolute(env, xdg)? {
                Some(path) => path.as_path().to_owned(),
                None => home(env, uid)?.as_path().join(below_home),
            };
            located(&base.join("pinfold"), uid)
        };
        Ok(Dirs {
            config: place(Some("HERDR_PLUGIN_CONFIG_DIR"), "XDG_CONFIG_HOME", ".config")?,
            state: place(Some("HERDR_PLUGIN_STATE_DIR"), "XDG_STATE_HOME", ".local/state")?,
            data: place(None, "XDG_DATA_HOME", ".local/share")?,
            runtime: runtime(env, uid, Path::new("/tmp"))?,
        })
    }
}

/// Makes a folder and what is missing above it, 0700 each; one that exists is left as it is.
pub fn make(path: &AbsPath) -> Result<(), DirsError> {
    let failed = |source| DirsError::Io {
        path: path.as_path().to_owned(),
        source,
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed)
}

fn variable<'a>(env: &'a Environ, name: &str) -> Option<&'a OsString> {
    env.get(OsStr::new(name)).filter(|value| !value.is_empty())
}

fn absolute(env: &Environ, name: &'static str) -> Result<Option<AbsPath>, DirsError> {
    let path = variable(env, name).map(AbsPath::new).transpose();
    path.map_err(|source| DirsError::Variable { variable: name, source })
}

fn home(env: &Environ, uid: Uid) -> Result<AbsPath, DirsError> {
    if let Some(home) = absolute(env, "HOME")? {
        return Ok(home);
    }
    let user = User::from_uid(uid).ok().flatten().ok_or(DirsError::NoHome(uid))?;
    AbsPath::new(user.dir).map_err(|_| DirsError::NoHome(uid))
}

/// Resolves the links of the part that exists, and checks that it is safe to keep files there.
fn located(path: &Path, uid: Uid) -> Result<AbsPath, DirsError> {
    let failed = |source| DirsError::Io {
        path: path.to_owned(),
        source,
    };
    let mut existing = path;
    let real = loop {
        match existing.canonicalize() {
            Ok(real) => break real,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if existing.symlink_metadata().is_ok() {
                    return Err(DirsError::Dangling(existing.to_owned()));
                }
                existing = existing.parent().ok_or_else(|| failed(e))?;
            }
            Err(e) if e.raw_os_error() == Some(libc::ENOTDIR) => return Err(DirsError::NotFolder(path.to_owned())),
            Err(e) => return Err(failed(e)),
        }
    };
    let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
    for folder in real.ancestors() {
        let found = folder.metadata().map_err(failed)?;
        check(folder, &found, uid, folder == real)?;
    }
    let full = if rest.as_os_str().is_empty() {
        real
    } else {
        real.join(rest)
    };
    AbsPath::new(full).map_err(|source| DirsError::Variable {
        variable: "HOME",
        source,
    })
}

/// A folder that others may change could be swapped under us; a sticky one such as /tmp only holds their things too.
/// Group-writable is accepted: many systems give each user a group of their own.
fn check(path: &Path, found: &Metadata, uid: Uid, last: bool) -> Result<(), DirsError> {
    let (owner, mode) = (Uid::from_raw(found.uid()), found.mode());
    // In a user namespace the system's folders belong to the overflow user.
    let system = owner.is_root() || owner.as_raw() == 65_534;
    if !found.is_dir() {
        return Err(DirsError::NotFolder(path.to_owned()));
    }
    if owner != uid && !system {
        return Err(DirsError::NotOurs(path.to_owned()));
    }
    let sticky = mode & 0o1000 != 0 && !(last && owner == uid);
    match mode & 0o002 != 0 && !sticky {
        true => Err(DirsError::Exposed(path.to_owned())),
        false => Ok(()),
    }
}

fn runtime(env: &Environ, uid: Uid, temporary: &Path) -> Result<AbsPath, DirsError> {
    let given = absolute(env, "XDG_RUNTIME_DIR").ok().flatten();
    if let Some(base) = given {
        if let Ok(folder) =
            private(base.as_path(), uid, 0o077).and_then(|_| make_private(&base.as_path().join("pinfold"), uid))
        {
            return Ok(folder);
        }
    }
    make_private(&temporary.join(format!("pinfold-{uid}")), uid)
}

fn make_private(path: &Path, uid: Uid) -> Result<AbsPath, DirsError> {
    let failed = |source: io::Error| DirsError::Io {
        path: path.to_owned(),
        source,
    };
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
        _ => {}
    }
    // Others may have left something in a folder that they could write; one that they could only read is closed to them.
    let folder = private(path, uid, 0o022)?;
    if folder.metadata().map_err(failed)?.mode() & 0o777 != 0o700 {
        nix::sys::stat::fchmod(&folder, Mode::S_IRWXU).map_err(|e| failed(e.into()))?;
    }
    private(path, uid, 0o077)?;
    AbsPath::new(path).map_err(|source| DirsError::Variable {
        variable: "XDG_RUNTIME_DIR",
        source,
    })
}

/// Opens a folder that is no link, is ours, and has none of the mode bits `forbidden`; read from the descriptor itself.
fn private(path: &Path, uid: Uid, forbidden: u32) -> Result<File, DirsError> {
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(libc::ELOOP | libc::ENOTDIR) => DirsError::NotFolder(path.to_owned()),
        _ => DirsError::Io {
            path: path.to_owned(),
            source,
        },
    };
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(failed)?;
    let found = folder.metadata().map_err(failed)?;
    if found.uid() != uid.as_raw() {
        return Err(DirsError::NotOurs(path.to_owned()));
    }
    match found.mode() & forbidden {
        0 => Ok(folder),
        _ => Err(DirsError::Exposed(path.to_owned())),
    }
}

#[cfg(test)]
mod tests;
