//! What a resolution must know of the host, as a trait, so that it stays pure and tests need no file system.

use crate::base::AbsPath;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// What stands at a path, its last link not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKind {
    Dir,
    File,
    Link,
    Socket,
    Device,
    /// A pipe or anything newer.
    Other,
}

/// The questions that a resolution asks of the host. Nothing here writes.
pub trait Host {
    /// What stands at the path, without following its last component. Errors as `lstat` does.
    fn kind(&self, path: &AbsPath) -> io::Result<HostKind>;
    /// Where the link at the path points, as written in it.
    fn read_link(&self, path: &AbsPath) -> io::Result<PathBuf>;
    /// The names in a folder, sorted by bytes.
    fn list(&self, path: &AbsPath) -> io::Result<Vec<OsString>>;
    /// A whole regular file of at most `limit` bytes; a longer one is an error, a last link is not followed.
    fn read_small(&self, path: &AbsPath, limit: u64) -> io::Result<Vec<u8>>;
    /// How many names the file at the path has (hard links), its last link not followed.
    fn name_count(&self, path: &AbsPath) -> io::Result<u64>;
    /// The effective user.
    fn uid(&self) -> u32;
    /// The home folder: `$HOME`, else the one of the user database.
    fn home(&self) -> Option<PathBuf>;
    /// The whole environment as the launcher found it; a name may stand there twice, the first counts.
    fn environment(&self) -> Vec<(OsString, OsString)>;
}
