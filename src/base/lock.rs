//! Locks that the kernel releases when their owner dies, however it dies.

use super::fault::{Explain, Kind};
use super::process::ProcessRecord;
use super::regular::{self, ReadError};
use super::text::visible;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(10);
/// How long a loser looks for the winner's name, which is written just after the lock is taken.
const NAMING: Duration = Duration::from_millis(200);

/// Who holds a lock, as the holder wrote it into the lock file. For messages only: the lock itself is the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub process: ProcessRecord,
    /// Since when.
    pub since: Timestamp,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} since {}", self.process.pid, self.since)
    }
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{} is held by {}", visible(path), holder.as_ref().map_or_else(|| "another process".to_owned(), Holder::to_string))]
    Held { path: PathBuf, holder: Option<Holder> },
    #[error("the file system of {} has no locks: {source}", visible(path))]
    Unsupported { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Open(#[from] ReadError),
    #[error("cannot lock {}: {source}", visible(path))]
    Io { path: PathBuf, source: io::Error },
}

impl Explain for LockError {
    fn kind(&self) -> Kind {
        match self {
            LockError::Held { .. } => Kind::Conflict,
            LockError::Open(error) => error.kind(),
            LockError::Unsupported { .. } | LockError::Io { .. } => Kind::Unknown,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            LockError::Held { .. } => Some("try again when it has ended".to_owned()),
            LockError::Unsupported { .. } => Some("set XDG_STATE_HOME to a folder on a local disk".to_owned()),
            LockError::Open(ReadError::NotRegular(_)) => Some("remove it; a lock is a regular file".to_owned()),
            LockError::Open(_) | LockError::Io { .. } => None,
        }
    }
}

/// An exclusive lock, held as long as this value lives. Dropping it, or the death of the process, releases it.
///
/// The descriptor closes on exec. A child that is forked without exec must close it, or it keeps the lock when its parent
/// is killed.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Takes the lock `<path>.lock`, made 0600 if it is missing, and waits for it at most `wait` of monotonic time
    /// (zero: one try). A link, pipe or device in its place is refused.
    pub fn acquire(path: &Path, wait: Duration) -> Result<FileLock, LockError> {
        let path = lock_path(path);
        let started = Instant::now();
        loop {
            if let Some(lock) = FileLock::attempt(&path)? {
                lock.sign();
                return Ok(lock);
            }
            if started.elapsed() >= wait {
                return Err(LockError::Held {
                    holder: read_holder(&path),
                    path,
                });
            }
            std::thread::sleep(POLL.min(wait));
        }
    }

    /// Removes the lock file and releases the lock. Others that already wait on the removed file notice and start over.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    fn attempt(path: &Path) -> Result<Option<FileLock>, LockError> {
        let io = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        let file = regular::open(path, options.read(true).write(true).create(true).truncate(false))?;
        if let Err(e) = fs2::FileExt::try_lock_exclusive(&file) {
            return match e.raw_os_error() {
                code if code == fs2::lock_contended_error().raw_os_error() => Ok(None),
                Some(libc::EINTR) => Ok(None),
                Some(libc::ENOLCK | libc::EINVAL | libc::ENOTSUP | libc::ENOSYS) => Err(LockError::Unsupported {
                    path: path.to_owned(),
                    source: e,
                }),
                _ => Err(io(e)),
            };
        }
        // The file may have been removed between open and lock; then another may already lock its successor.
        let held = file.metadata().map_err(io)?;
        match path.symlink_metadata() {
            Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => Ok(Some(FileLock {
                file,
                path: path.to_owned(),
            })),
            Ok(_) => Ok(None),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(io(e)),
        }
    }

    /// Writes who we are for the losers' messages. A full disk costs only the name.
    fn sign(&self) {
        let Ok(process) = ProcessRecord::current() else { return };
        let holder = Holder {
            process,
            since: Timestamp::now(),
        };
        let _ = self.write(&serde_json::to_vec(&holder).unwrap_or_default());
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(bytes)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Our name must not stand in a lock that the next holder has not signed yet.
        let _ = self.write(b"");
        // Closing is not enough: a child between fork and exec still has the descriptor.
        let _ = fs2::FileExt::unlock(&self.file);
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".lock");
    PathBuf::from(name)
}

/// The holder's name, if a living process has written it. It may be a moment late, and a killed holder leaves its own.
fn read_holder(path: &Path) -> Option<Holder> {
    let started = Instant::now();
    loop {
        let read = regular::read(path, 4096)
            .ok()
            .and_then(|b| serde_json::from_slice::<Holder>(&b).ok());
        match read {
            Some(holder) if holder.process.is_alive() => return Some(holder),
            _ if started.elapsed() >= NAMING => return None,
            _ => std::thread::sleep(POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn held(error: LockError) -> Option<Holder> {
        match error {
            LockError::Held { holder, .. } => holder,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_second_of_two_is_told_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let first = FileLock::acquire(&path, Duration::ZERO).unwrap();
        let error = FileLock::acquire(&path, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict);
        assert_eq!(held(error).unwrap().process, ProcessRecord::current().unwrap());
        drop(first);
        FileLock::acquire(&path, Duration::ZERO).unwrap();
        assert_eq!(
            std::fs::metadata(folder.path().join("a.lock"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
    }

    #[test]
    fn one_of_many_at_once_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let lock = FileLock::acquire(&path, Duration::from_secs(30)).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        // Removal must not let two in either.
                        lock.remove().unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn waits_no_longer_than_it_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let _first = FileLock::acquire(&path, Duration::ZERO).unwrap();
        let started = Instant::now();
        assert!(FileLock::acquire(&path, Duration::from_millis(100)).is_err());
        assert!((Duration::from_millis(100)..Duration::from_secs(5)).contains(&started.elapsed()));
    }

    #[test]
    fn the_death_of_the_holder_releases_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let lock_file = folder.path().join("a.lock");
        // util-linux's own program takes the same kind of lock, in a process that can be killed.
        let mut holder = std::process::Command::new("flock")
            .args(["--exclusive", "--no-fork"])
            .arg(&lock_file)
            .args(["sh", "-c", "read line"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while FileLock::acquire(&path, Duration::ZERO).is_ok() && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(held(FileLock::acquire(&path, Duration::ZERO).unwrap_err()), None);
        holder.kill().unwrap();
        holder.wait().unwrap();
        FileLock::acquire(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn dropping_it_releases_it_though_a_child_still_has_the_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let lock = FileLock::acquire(&path, Duration::ZERO).unwrap();
        // What a fork leaves in the child: another descriptor of the same open file.
        let _inherited = lock.file.try_clone().unwrap();
        drop(lock);
        FileLock::acquire(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn refuses_a_pipe_a_link_and_a_device_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&folder.path().join("pipe.lock"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/nowhere", folder.path().join("link.lock")).unwrap();
        symlink("/dev/null", folder.path().join("device.lock")).unwrap();
        for path in [pipe, folder.path().join("link"), folder.path().join("device")] {
            let error = FileLock::acquire(&path, Duration::ZERO).unwrap_err();
            assert!(matches!(error, LockError::Open(ReadError::NotRegular(_))), "{error}");
        }
    }

    #[test]
    fn a_dead_holders_name_is_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let lock = FileLock::acquire(&path, Duration::ZERO).unwrap();
        let gone = ProcessRecord {
            start_ticks: 1,
            ..ProcessRecord::current().unwrap()
        };
        let stale = Holder {
            process: gone,
            since: Timestamp::now(),
        };
        lock.write(&serde_json::to_vec(&stale).unwrap()).unwrap();
        assert_eq!(held(FileLock::acquire(&path, Duration::ZERO).unwrap_err()), None);
    }
}
