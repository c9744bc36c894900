//! Reading files that may not be what they seem: a pipe, a device, a link, or endless.

use super::fault::{Explain, Kind};
use super::text::visible;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{} is not a regular file", visible(.0))]
    NotRegular(PathBuf),
    #[error("{} is larger than {limit} bytes", visible(path))]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("cannot read {}: {source}", visible(path))]
    Io { path: PathBuf, source: io::Error },
}

impl ReadError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, ReadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Explain for ReadError {
    fn kind(&self) -> Kind {
        match self {
            ReadError::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Kind::NotFound,
                io::ErrorKind::PermissionDenied => Kind::Permission,
                _ => Kind::Unknown,
            },
            ReadError::NotRegular(_) | ReadError::TooLarge { .. } => Kind::Config,
        }
    }
}

/// The whole content of a regular file of at most `limit` bytes. A link as the last name is refused, and neither a pipe
/// nor a device is waited for.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let io = |source| ReadError::Io {
        path: path.to_owned(),
        source,
    };
    let mut options = OpenOptions::new();
    let file = open(path, options.read(true))?;
    let mut bytes = Vec::new();
    // One byte more tells a file at the limit from one above it, also when it grows meanwhile.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
    match u64::try_from(bytes.len()) {
        Ok(size) if size <= limit => Ok(bytes),
        _ => Err(ReadError::TooLarge {
            path: path.to_owned(),
            limit,
        }),
    }
}

/// Opens a regular file, or creates it 0600 if the options say so; a link as the last name is refused, and neither a pipe
/// nor a device is waited for.
pub fn open(path: &Path, options: &mut OpenOptions) -> Result<File, ReadError> {
    let io = |source| ReadError::Io {
        path: path.to_owned(),
        source,
    };
    // Looked at before it is opened, because opening a device can already have effects.
    match path.symlink_metadata() {
        Ok(found) if !found.file_type().is_file() => return Err(ReadError::NotRegular(path.to_owned())),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(io(e)),
    }
    let file = options
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(io)?;
    match file.metadata().map_err(io)?.file_type().is_file() {
        true => Ok(file),
        false => Err(ReadError::NotRegular(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn reads_a_file_up_to_the_limit_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, b"12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert!(matches!(read(&path, 4), Err(ReadError::TooLarge { limit: 4, .. })));
    }

    #[test]
    fn refuses_pipes_devices_links_and_folders_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/dev/zero", &link).unwrap();
        for path in [pipe.as_path(), &link, folder.path(), Path::new("/dev/zero")] {
            assert!(matches!(read(path, 10), Err(ReadError::NotRegular(_))), "{path:?}");
        }
    }

    #[test]
    fn says_that_a_file_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&folder.path().join("none"), 10).unwrap_err();
        assert!(error.is_missing());
        assert_eq!(error.kind(), Kind::NotFound);
    }
}
