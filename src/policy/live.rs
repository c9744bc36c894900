//! The real host.

use super::host::{Host, HostKind};
use crate::base::AbsPath;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

/// Answers from the file system and the process's own environment, read once when it is made.
#[derive(Debug, Clone)]
pub struct LiveHost {
    environment: Vec<(OsString, OsString)>,
    home: Option<PathBuf>,
}

impl LiveHost {
    /// Reads the environment of this process.
    pub fn new() -> LiveHost {
        LiveHost {
            environment: std::env::vars_os().collect(),
            home: std::env::home_dir().filter(|home| home.is_absolute()),
        }
    }
}

impl LiveHost {
    /// The same host with more variables in the launcher's environment, so that their way inside can be tried.
    pub fn with_variables(mut self, variables: Vec<(OsString, OsString)>) -> LiveHost {
        self.environment.extend(variables);
        self
    }
}

impl Default for LiveHost {
    fn default() -> Self {
        LiveHost::new()
    }
}

impl Host for LiveHost {
    fn kind(&self, path: &AbsPath) -> io::Result<HostKind> {
        let kind = fs::symlink_metadata(path)?.file_type();
        Ok(if kind.is_dir() {
            HostKind::Dir
        } else if kind.is_file() {
            HostKind::File
        } else if kind.is_symlink() {
            HostKind::Link
        } else if kind.is_socket() {
            HostKind::Socket
        } else if kind.is_char_device() || kind.is_block_device() {
            HostKind::Device
        } else {
            HostKind::Other
        })
    }

    fn read_link(&self, path: &AbsPath) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    fn list(&self, path: &AbsPath) -> io::Result<Vec<OsString>> {
        let mut names = fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn read_small(&self, path: &AbsPath, limit: u64) -> io::Result<Vec<u8>> {
        // Non-blocking, so that a pipe put in the file's place cannot hold the launch.
        let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits())
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        match u64::try_from(bytes.len()) {
            Ok(length) if length <= limit => Ok(bytes),
            _ => Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("larger than {limit} bytes"),
            )),
        }
    }

    fn name_count(&self, path: &AbsPath) -> io::Result<u64> {
        fs::symlink_metadata(path).map(|meta| meta.nlink())
    }

    fn uid(&self) -> u32 {
        fs::metadata("/proc/self").map(|meta| meta.uid()).unwrap_or(u32::MAX)
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        self.environment.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abs(path: &std::path::Path) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    #[test]
    fn tells_kinds_apart_without_following_the_last_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "x").unwrap();
        std::os::unix::fs::symlink("f", dir.path().join("l")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
        let host = LiveHost::new();
        let kind = |name: &str| host.kind(&abs(&dir.path().join(name))).unwrap();
        assert_eq!(
            (kind("f"), kind("l"), kind("s")),
            (HostKind::File, HostKind::Link, HostKind::Socket)
        );
        assert_eq!(host.kind(&abs(dir.path())).unwrap(), HostKind::Dir);
        assert_eq!(host.list(&abs(dir.path())).unwrap(), ["f", "l", "s"]);
    }

    #[test]
    fn reads_small_files_only_and_never_through_a_link_or_pipe() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "1234").unwrap();
        std::os::unix::fs::symlink("f", dir.path().join("l")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("p"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let host = LiveHost::new();
        assert_eq!(host.read_small(&abs(&dir.path().join("f")), 4).unwrap(), b"1234");
        assert!(host.read_small(&abs(&dir.path().join("f")), 3).is_err());
        assert!(host.read_small(&abs(&dir.path().join("l")), 4).is_err());
        assert!(host.read_small(&abs(&dir.path().join("p")), 4).is_err());
    }
}
