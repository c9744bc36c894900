//! One process's folder in /proc, held open so that a later process with the same number is never read in its place.

use super::status::Status;
use super::{ReadError, Reading};
use crate::base::Pid;
use crate::sys::object::{Object, object_at};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::Mode;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

/// An open `/proc/PID` or `/proc/PID/task/TID`.
#[derive(Debug)]
pub struct Entry {
    folder: OwnedFd,
}

fn failed(what: &'static str) -> impl Fn(Errno) -> ReadError {
    move |errno| match errno {
        Errno::ESRCH | Errno::ENOENT => ReadError::Ended,
        errno => ReadError::Unreadable { what, errno },
    }
}

impl Entry {
    /// Opens `/proc/PID`.
    pub fn open(pid: Pid) -> Reading<Entry> {
        Entry::at(nix::fcntl::AT_FDCWD, &format!("/proc/{pid}"))
    }

    /// Opens our own, which is what every other is compared with.
    pub fn own() -> Reading<Entry> {
        Entry::at(nix::fcntl::AT_FDCWD, "/proc/self")
    }

    /// Opens one thread of this process.
    pub fn thread(&self, thread: i32) -> Reading<Entry> {
        Entry::at(self.folder.as_fd(), &format!("task/{thread}"))
    }

    fn at(base: BorrowedFd<'_>, path: &str) -> Reading<Entry> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        openat(base, path, flags, Mode::empty())
            .map(|folder| Entry { folder })
            .map_err(failed("its folder in /proc"))
    }

    /// The bytes of one file below.
    pub fn read(&self, what: &'static str) -> Reading<Vec<u8>> {
        self.read_at(what, what)
    }

    /// At most so many bytes of one file below. How long `cmdline` and `environ` are is the process's own decision
    /// (PR_SET_MM_MAP, prctl(2)): without a bound it would have the checker read all of its memory.
    pub fn read_some(&self, what: &'static str, most: usize) -> Reading<Vec<u8>> {
        let file = self.open_below(what).map_err(failed(what))?;
        read_up_to(&file, most).map_err(failed(what))
    }

    /// The bytes of a file below whose name is not a constant; errors name `what`.
    pub fn read_at(&self, what: &'static str, path: &str) -> Reading<Vec<u8>> {
        let file = self.open_below(path).map_err(failed(what))?;
        read_up_to(&file, usize::MAX).map_err(failed(what))
    }

    fn open_below(&self, path: &str) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        openat(&self.folder, path, flags, Mode::empty())
    }

    /// The text of one link below, as bytes.
    pub fn link(&self, what: &'static str) -> Reading<Vec<u8>> {
        readlinkat(&self.folder, what)
            .map(OsStringExt::into_vec)
            .map_err(failed(what))
    }

    /// The text of one link of a process that is not held open.
    pub fn link_of(pid: Pid, what: &'static str) -> Reading<Vec<u8>> {
        nix::fcntl::readlink(format!("/proc/{pid}/{what}").as_str())
            .map(OsStringExt::into_vec)
            .map_err(failed(what))
    }

    /// The text of a link whose name is not a constant, below `what`.
    pub fn link_below(&self, what: &'static str, path: &CStr) -> Reading<Vec<u8>> {
        readlinkat(&self.folder, path)
            .map(OsStringExt::into_vec)
            .map_err(failed(what))
    }

    /// What a path below refers to, through its links.
    pub fn object(&self, what: &'static str, path: &CStr) -> Reading<Object> {
        object_at(self.folder.as_fd(), path)
            .map_err(|e| failed(what)(Errno::from_raw(e.raw_os_error().unwrap_or_default())))
    }

    /// The numbers that name the entries of a folder below (`fd`, `task`); anything else in it is passed over.
    pub fn numbers(&self, what: &'static str) -> Reading<Vec<i32>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        numbers(Dir::openat(&self.folder, what, flags, Mode::empty()), what)
    }

    /// Whether the process is gone by now, or will run nothing any more.
    pub fn has_ended(&self) -> bool {
        self.is_over(|status| status.is_dead() && status.threads <= 1)
    }

    /// The same of one thread.
    pub fn thread_has_ended(&self) -> bool {
        self.is_over(Status::is_dead)
    }

    fn is_over(&self, judge: impl Fn(&Status) -> bool) -> bool {
        match self.read("status").and_then(|bytes| Status::parse(&bytes)) {
            Ok(status) => judge(&status),
            Err(error) => error == ReadError::Ended,
        }
    }
}

/// Plain reads until there is no more: files of /proc have no size that could be asked for first.
fn read_up_to(file: &OwnedFd, most: usize) -> Result<Vec<u8>, Errno> {
    const STEP: usize = 4096;
    let mut bytes = vec![0; STEP];
    let mut filled = 0;
    while filled < most {
        match nix::unistd::read(file, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        if filled == bytes.len() {
            bytes.resize(filled + filled.max(STEP), 0);
        }
    }
    bytes.truncate(filled.min(most));
    Ok(bytes)
}

fn numbers(folder: nix::Result<Dir>, what: &'static str) -> Reading<Vec<i32>> {
    let mut found = Vec::new();
    for item in folder.map_err(failed(what))? {
        let item = item.map_err(failed(what))?;
        found.extend(item.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(found)
}

/// Every process that /proc lists.
pub fn pids() -> Reading<Vec<Pid>> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let all = numbers(Dir::open("/proc", flags, Mode::empty()), "/proc")?;
    Ok(all.into_iter().filter_map(Pid::new).collect())
}

/// A path below an entry, made from a number.
pub fn numbered(prefix: &str, number: i32) -> CString {
    // A formatted number holds no NUL, so the empty path stands for nothing that happens.
    CString::new(format!("{prefix}{number}")).unwrap_or_default()
}
