//! How changes of folders are noticed: told by the kernel (inotify(7)), or looked for again and again where it has no
//! room for that.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::time::Duration;

/// More folders than this are not watched: a person's own programs need some of the kernel's room too.
const MOST: usize = 4096;
/// How often everything is looked at where nothing is told.
const POLLED: Duration = Duration::from_millis(50);
/// How often in any case: file systems of other machines tell of nothing.
const ANYWAY: Duration = Duration::from_secs(5);

/// Who wants to know of one folder: places by the name that each waits for.
type Waiting = HashMap<OsString, HashSet<usize>>;

/// Where changes are noticed.
pub struct Notices {
    /// Nothing where everything is looked at again and again.
    kernel: Option<Inotify>,
    waiting: HashMap<WatchDescriptor, Waiting>,
}

impl Drop for Notices {
    /// To close what has watches takes the kernel many milliseconds, as it waits for every reader of them on the
    /// machine (synchronize_srcu), and nobody needs to wait for that at the end of a launch.
    fn drop(&mut self) {
        if let Some(kernel) = self.kernel.take() {
            // If that is refused it is closed here and now.
            let _ = crate::sys::descriptor::close_later(kernel.into());
        }
    }
}

/// What was noticed.
#[derive(Debug, PartialEq, Eq)]
pub enum Noticed {
    /// Look at everything.
    Everything,
    /// Something appeared at or left the name that this place waits for.
    At(usize),
    /// The name that this place waits for was removed.
    Removed(usize),
    /// Nobody wants to know any more.
    Done,
}

impl Notices {
    pub fn new() -> Notices {
        let kernel = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok();
        Notices {
            kernel,
            waiting: HashMap::new(),
        }
    }

    #[cfg(test)]
    pub fn without_the_kernel() -> Notices {
        Notices {
            kernel: None,
            waiting: HashMap::new(),
        }
    }

    /// Whether everything is looked at again and again.
    pub fn polls(&self) -> bool {
        self.kernel.is_none()
    }

    /// Tells of this folder's `name` from now on. Where the kernel has no room, everything is polled from now on.
    pub fn watch(&mut self, folder: BorrowedFd<'_>, name: &std::ffi::OsStr, place: usize) -> nix::Result<()> {
        let Some(kernel) = &self.kernel else { return Ok(()) };
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_ONLYDIR;
        // By descriptor: the folder that was opened, whatever stands at its name by now.
        let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let watched = if self.waiting.len() < MOST {
            kernel.add_watch(path.as_str(), flags)
        } else {
            Err(Errno::ENOSPC)
        };
        match watched {
            Ok(watch) => {
                let waiting = self.waiting.entry(watch).or_default();
                waiting.entry(name.to_owned()).or_default().insert(place);
                Ok(())
            }
            Err(Errno::ENOSPC | Errno::EMFILE | Errno::ENOMEM) => {
                self.kernel = None;
                self.waiting.clear();
                Ok(())
            }
            Err(errno) => Err(errno),
        }
    }

    /// Waits until something is noticed or `done` is closed.
    pub fn wait(&mut self, done: BorrowedFd<'_>) -> nix::Result<Vec<Noticed>> {
        let mut polled = vec![PollFd::new(done, PollFlags::POLLIN)];
        polled.extend(
            self.kernel
                .iter()
                .map(|kernel| PollFd::new(kernel.as_fd(), PollFlags::POLLIN)),
        );
        let pause = if self.kernel.is_some() { ANYWAY } else { POLLED };
        match poll(&mut polled, PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX)) {
            Err(Errno::EINTR) => return Ok(Vec::new()),
            other => other?,
        };
        let is_done = polled[0].any() == Some(true);
        let mut noticed = match &self.kernel {
            None => vec![Noticed::Everything],
            Some(kernel) => match kernel.read_events() {
                Ok(events) => self.told(events),
                // Nothing was told for long, or the end has come, at which everything is looked at anyway.
                Err(Errno::EAGAIN) => Vec::from_iter((!is_done).then_some(Noticed::Everything)),
                Err(Errno::EINTR) => Vec::new(),
                Err(errno) => return Err(errno),
            },
        };
        noticed.extend(is_done.then_some(Noticed::Done));
        Ok(noticed)
    }

    fn told(&mut self, events: Vec<InotifyEvent>) -> Vec<Noticed> {
        let mut noticed = Vec::new();
        for event in events {
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                noticed.push(Noticed::Everything);
            } else if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                self.waiting.remove(&event.wd);
            } else if let Some(places) = event.name.and_then(|name| self.waiting.get(&event.wd)?.get(&name)) {
                let removed = event.mask.contains(AddWatchFlags::IN_DELETE);
                let told = |place: &usize| {
                    if removed {
                        Noticed::Removed(*place)
                    } else {
                        Noticed::At(*place)
                    }
                };
                noticed.extend(places.iter().map(told));
            }
        }
        noticed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::fd::OwnedFd;

    #[test]
    fn tells_of_the_name_and_of_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = OwnedFd::from(std::fs::File::open(folder.path()).unwrap());
        let (done, _wish) = nix::unistd::pipe().unwrap();
        let mut notices = Notices::new();
        notices.watch(file.as_fd(), OsStr::new("x"), 7).unwrap();
        std::fs::write(folder.path().join("y"), "").unwrap();
        assert_eq!(notices.wait(done.as_fd()).unwrap(), []);
        std::fs::write(folder.path().join("x"), "").unwrap();
        assert_eq!(notices.wait(done.as_fd()).unwrap(), [Noticed::At(7)]);
        std::fs::remove_file(folder.path().join("x")).unwrap();
        assert_eq!(notices.wait(done.as_fd()).unwrap(), [Noticed::Removed(7)]);
    }

    #[test]
    fn polls_where_the_kernel_has_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let file = OwnedFd::from(std::fs::File::open(folder.path()).unwrap());
        let (done, _wish) = nix::unistd::pipe().unwrap();
        let mut notices = Notices::without_the_kernel();
        notices.watch(file.as_fd(), OsStr::new("x"), 7).unwrap();
        assert!(notices.polls());
        assert_eq!(notices.wait(done.as_fd()).unwrap(), [Noticed::Everything]);
    }
}
