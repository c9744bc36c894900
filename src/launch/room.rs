//! The room of a reduced launch: a folder on disk that stands in for what is private memory in full mode. It goes with
//! the launch; what a killed one left goes with the next.

use crate::base::{AbsPath, Explain, FileLock, Kind, PathError};
use crate::policy::Furniture;
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where rooms stand, below the state folder.
const ROOMS: &str = "rooms";
/// A file in every room, which nothing inside can reach: see `plan::canary`.
const MARK: &str = "canary";

/// A room, locked as long as its launch lives.
#[derive(Debug)]
pub struct Room {
    at: AbsPath,
    lock: Option<FileLock>,
}

/// Why a room could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the launch's room {path} cannot be made ({source})")]
pub struct RoomError {
    path: String,
    source: io::Error,
}

impl Explain for RoomError {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
}

impl Room {
    /// A new empty room of this name below the state folder.
    pub fn make(state: &AbsPath, name: &str) -> Result<Room, RoomError> {
        let rooms = state.as_path().join(ROOMS);
        let path = rooms.join(name);
        let failed = |source: io::Error| RoomError {
            path: crate::base::text::visible(&path),
            source,
        };
        folder(&rooms).map_err(failed)?;
        if !std::fs::symlink_metadata(&rooms).is_ok_and(|found| found.is_dir()) {
            return Err(failed(io::Error::other(
                "the folder of rooms is a link, and is not followed",
            )));
        }
        sweep(&rooms);
        let at = AbsPath::new(&path).map_err(|error: PathError| failed(io::Error::other(error)))?;
        let lock = FileLock::acquire(&path, Duration::ZERO).map_err(|error| failed(io::Error::other(error)))?;
        let room = Room { at, lock: Some(lock) };
        folder(&path).map_err(failed)?;
        // What Landlock must hide, for the command to try; and the mark by which a room is known.
        file(&path.join(MARK)).map_err(failed)?;
        Ok(room)
    }

    /// Where it is.
    pub fn at(&self) -> &AbsPath {
        &self.at
    }

    /// Puts in what the policy wants there; parents come first.
    pub fn furnish(&self, furniture: &[Furniture]) -> Result<(), RoomError> {
        for piece in furniture {
            let (place, made) = match piece {
                Furniture::Folder(at) => (at, folder(at.as_path())),
                Furniture::File(at) => (at, above(at).and_then(|()| file(at.as_path()))),
                Furniture::Link { at, to } => (at, above(at).and_then(|()| link(at.as_path(), to))),
            };
            made.map_err(|source| RoomError {
                path: crate::base::text::visible(place.as_path()),
                source,
            })?;
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next launch.
        let _ = clear(self.at.as_path());
        if let Some(lock) = self.lock.take() {
            let _ = lock.remove();
        }
    }
}

/// Removes the rooms of launches that were killed: folders that have a room's mark and a lock that nobody holds. Whatever
/// else somebody put there stays.
fn sweep(rooms: &Path) {
    for entry in std::fs::read_dir(rooms).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !is_file(&path.join(MARK)) || !is_file(&lock_of(&path)) {
            continue;
        }
        if let Ok(lock) = FileLock::acquire(&path, Duration::ZERO) {
            let _ = clear(&path);
            let _ = lock.remove();
        }
    }
}

/// The lock file that `FileLock::acquire` makes beside a path.
fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// A regular file, and no link to one.
fn is_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Removes a tree that a command may have left with folders closed, as package caches are. Links are not followed.
fn clear(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        other => return other,
    }
    open_up(path)?;
    std::fs::remove_dir_all(path)
}

fn open_up(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(path)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn above(at: &AbsPath) -> io::Result<()> {
    at.parent().map_or(Ok(()), |parent| folder(parent.as_path()))
}

fn file(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path).map(drop)
}

fn link(at: &Path, to: &Path) -> io::Result<()> {
    // A link into a folder that is itself a link stands there already.
    match std::os::unix::fs::symlink(to, at) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &Path) -> AbsPath {
        AbsPath::new(path.canonicalize().unwrap()).unwrap()
    }

    #[test]
    fn holds_what_was_wanted_and_goes_whole() {
        let state = tempfile::tempdir().unwrap();
        let room = Room::make(&at(state.path()), "one").unwrap();
        let path = room.at().as_path().to_owned();
        let inside = |name: &str| AbsPath::new(path.join(name)).unwrap();
        room.furnish(&[
            Furniture::Folder(inside("home/ann")),
            Furniture::Link {
                at: inside("home/ann/.cargo/bin"),
                to: "/home/ann/.cargo/bin".into(),
            },
            Furniture::File(inside("home/ann/.config/.gitignore")),
        ])
        .unwrap();
        assert!(path.join("home/ann/.cargo/bin").is_symlink());
        assert!(path.join("canary").is_file());
        std::fs::create_dir(path.join("closed")).unwrap();
        std::fs::write(path.join("closed/file"), "").unwrap();
        std::fs::set_permissions(path.join("closed"), Permissions::from_mode(0o500)).unwrap();
        drop(room);
        let left: Vec<_> = std::fs::read_dir(state.path().join(ROOMS)).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn a_killed_launchs_room_goes_with_the_next_and_a_live_ones_stays() {
        let state = tempfile::tempdir().unwrap();
        let live = Room::make(&at(state.path()), "live").unwrap();
        let rooms = state.path().join(ROOMS);
        let killed = rooms.join("killed");
        std::fs::create_dir_all(killed.join("home")).unwrap();
        std::fs::write(killed.join(MARK), "").unwrap();
        std::fs::write(lock_of(&killed), "").unwrap();
        let notes = rooms.join("notes");
        std::fs::create_dir(&notes).unwrap();
        std::fs::write(notes.join("precious"), "").unwrap();
        let _next = Room::make(&at(state.path()), "next").unwrap();
        assert!(!killed.exists());
        assert!(notes.join("precious").exists(), "what is no room is nobody's to remove");
        let locks = std::fs::read_dir(state.path().join(ROOMS)).unwrap().flatten();
        assert_eq!(
            locks.filter(|entry| entry.path().is_file()).count(),
            2,
            "one of each live room"
        );
        assert!(live.at().as_path().is_dir());
    }

    #[test]
    fn a_link_in_the_place_of_the_rooms_is_not_followed() {
        let state = tempfile::tempdir().unwrap();
        let precious = state.path().join("precious");
        std::fs::create_dir_all(precious.join("one")).unwrap();
        std::os::unix::fs::symlink(&precious, state.path().join(ROOMS)).unwrap();
        assert!(Room::make(&at(state.path()), "next").is_err());
        assert!(precious.join("one").is_dir());
    }
}
