//! Files that are either the old one or the new one, whatever happens in between.

use super::fault::{Explain, Kind};
use super::ids::hex;
use super::text::visible;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use rand::RngExt as _;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// How the names of temporary files begin; one that is left over belongs to a writer that was killed.
pub const TEMPORARY: &str = ".pinfold-";

/// The step of a save that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Opening the folder.
    Folder,
    /// Creating the temporary file.
    Create,
    /// Writing it.
    Write,
    /// Getting it onto the disk.
    Sync,
    /// Putting it in the place of the old file.
    Rename,
    /// Getting the new name onto the disk; the new content is in place, but may not outlive a power cut.
    SyncFolder,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Folder => "opening its folder",
            Step::Create => "creating the temporary file",
            Step::Write => "writing",
            Step::Sync => "syncing",
            Step::Rename => "renaming the temporary file",
            Step::SyncFolder => "syncing its folder",
        })
    }
}

/// Why a file was not saved; the old content, if any, is still there (but see [`Step::SyncFolder`]).
#[derive(Debug, thiserror::Error)]
#[error("cannot save {}: {step} failed: {source}", visible(path))]
pub struct SaveError {
    /// The file that was to be written.
    pub path: PathBuf,
    /// What failed.
    pub step: Step,
    /// The system's reason.
    pub source: io::Error,
}

impl Explain for SaveError {
    fn kind(&self) -> Kind {
        match self.source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Kind::Permission,
            io::ErrorKind::NotFound => Kind::NotFound,
            _ => Kind::Unknown,
        }
    }
    fn hint(&self) -> Option<String> {
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Some("free some space; the file still has its old content".to_owned())
            }
            _ => None,
        }
    }
}

/// Replaces a file's content, mode 0600: a temporary file in the same folder is written, synced and renamed over it, and
/// the folder synced. A link at `path` is replaced, not followed.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    let failed = |step: Step| {
        move |source: io::Error| SaveError {
            path: path.to_owned(),
            step,
            source,
        }
    };
    let name = path
        .file_name()
        .ok_or_else(|| failed(Step::Create)(io::ErrorKind::InvalidInput.into()))?;
    let parent = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let folder = nix::fcntl::open(parent, flags, Mode::empty()).map_err(|e| failed(Step::Folder)(e.into()))?;
    let (mut file, temporary) = Temporary::create(&folder).map_err(failed(Step::Create))?;
    file.write_all(bytes).map_err(failed(Step::Write))?;
    file.sync_all().map_err(failed(Step::Sync))?;
    temporary.rename(name).map_err(failed(Step::Rename))?;
    sync_folder(folder).map_err(failed(Step::SyncFolder))
}

/// A temporary file that is removed unless it is renamed.
struct Temporary<'a> {
    folder: &'a OwnedFd,
    name: Option<OsString>,
}

impl Temporary<'_> {
    fn create(folder: &OwnedFd) -> io::Result<(File, Temporary<'_>)> {
        let name = OsString::from(format!("{TEMPORARY}{}.tmp", hex(&rand::rng().random::<[u8; 8]>())));
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(folder, name.as_os_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
        Ok((
            File::from(file),
            Temporary {
                folder,
                name: Some(name),
            },
        ))
    }
    fn rename(mut self, to: &OsStr) -> io::Result<()> {
        if let Some(name) = &self.name {
            nix::fcntl::renameat(self.folder, name.as_os_str(), self.folder, to)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // The save's own error is the one to report.
            let _ = unlinkat(self.folder.as_fd(), name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

fn sync_folder(folder: OwnedFd) -> io::Result<()> {
    match File::from(folder).sync_all() {
        // Some network and FUSE file systems cannot sync a folder; there is nothing more to do then.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP)) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
