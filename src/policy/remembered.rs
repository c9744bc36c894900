//! One look at each path: within one resolution, a path that is asked about again is what it was the first time.

use super::host::{Host, HostKind};
use crate::base::AbsPath;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// What was seen, or the error number.
type Seen = Result<HostKind, i32>;

/// A host whose answers about kinds are kept. Every granted path is followed from the root on, so that most questions
/// are about the same few folders.
pub(super) struct Remembered<'a> {
    host: &'a dyn Host,
    kinds: RefCell<HashMap<AbsPath, Seen>>,
}

impl<'a> Remembered<'a> {
    pub fn new(host: &'a dyn Host) -> Remembered<'a> {
        Remembered {
            host,
            kinds: RefCell::default(),
        }
    }
}

impl Host for Remembered<'_> {
    fn kind(&self, path: &AbsPath) -> io::Result<HostKind> {
        if let Some(seen) = self.kinds.borrow().get(path) {
            return seen.map_err(io::Error::from_raw_os_error);
        }
        let looked = self.host.kind(path);
        let seen = match &looked {
            Ok(kind) => Some(Ok(*kind)),
            Err(error) => error.raw_os_error().map(Err),
        };
        if let Some(seen) = seen {
            self.kinds.borrow_mut().insert(path.clone(), seen);
        }
        looked
    }
    fn read_link(&self, path: &AbsPath) -> io::Result<PathBuf> {
        self.host.read_link(path)
    }
    fn list(&self, path: &AbsPath) -> io::Result<Vec<OsString>> {
        self.host.list(path)
    }
    fn read_small(&self, path: &AbsPath, limit: u64) -> io::Result<Vec<u8>> {
        self.host.read_small(path, limit)
    }
    fn name_count(&self, path: &AbsPath) -> io::Result<u64> {
        self.host.name_count(path)
    }
    fn uid(&self) -> u32 {
        self.host.uid()
    }
    fn home(&self) -> Option<PathBuf> {
        self.host.home()
    }
    fn environment(&self) -> Vec<(OsString, OsString)> {
        self.host.environment()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::LiveHost;

    #[test]
    fn looks_once_at_what_is_there_and_at_what_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let [file, gone] = ["f", "g"].map(|name| AbsPath::new(dir.path().join(name)).unwrap());
        std::fs::write(&file, "x").unwrap();
        let live = LiveHost::new();
        let host = Remembered::new(&live);
        let kinds = || [&file, &gone].map(|path| host.kind(path).map_err(|error| error.kind()));
        let first = kinds();
        assert_eq!(first, [Ok(HostKind::File), Err(io::ErrorKind::NotFound)]);
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&gone).unwrap();
        assert_eq!(kinds(), first);
        assert_eq!(live.kind(&gone).unwrap(), HostKind::Dir, "control");
    }
}
