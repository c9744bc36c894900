//! The thread whose call is decided: its memory, its descriptors, its files. Everything is read fresh, nothing is trusted.

use super::request::Area;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use std::cell::OnceCell;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// Largest sockaddr (struct sockaddr_storage).
const LARGEST: u64 = 128;

/// `PATH_MAX`, and what no page is smaller than.
const LONGEST_PATH: usize = 4096;
const PAGE: u64 = 4096;

/// A waiting thread.
#[derive(Debug)]
pub struct Caller {
    tid: i32,
    numbers: OnceCell<Numbers>,
}

/// How the sandbox's own PID namespace numbers a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    pub process: i32,
    pub thread: i32,
}

/// The last caller's descriptor, kept because the next call is mostly the same thread's. It stands for the thread and not
/// for its number: once that thread is gone, nothing can be got through it.
#[derive(Debug, Default)]
pub struct Last(Option<(i32, OwnedFd)>);

impl Caller {
    /// The thread with this id, as the supervisor numbers it.
    pub fn new(tid: i32) -> Caller {
        Caller {
            tid,
            numbers: OnceCell::new(),
        }
    }

    /// One copy of an address.
    pub fn address(&self, area: Area) -> Result<Vec<u8>, Errno> {
        if area.length > LARGEST {
            return Err(Errno::EINVAL);
        }
        self.area(area)
    }

    /// One copy of an area whose length is known to be small.
    pub fn area(&self, area: Area) -> Result<Vec<u8>, Errno> {
        self.memory(area.pointer, usize::try_from(area.length).map_err(|_| Errno::EFAULT)?)
    }

    /// One copy of a piece of its memory.
    pub fn memory(&self, pointer: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        if length == 0 {
            return Ok(bytes);
        }
        let base = usize::try_from(pointer).map_err(|_| Errno::EFAULT)?;
        let remote = [RemoteIoVec { base, len: length }];
        let read = process_vm_readv(Pid::from_raw(self.tid), &mut [IoSliceMut::new(&mut bytes)], &remote)?;
        if read == length { Ok(bytes) } else { Err(Errno::EFAULT) }
    }

    /// One copy of a path, which ends with a NUL byte.
    pub fn text(&self, pointer: u64) -> Result<Vec<u8>, Errno> {
        let mut text = Vec::new();
        // Up to the end of each page: what lies behind the text may be no memory at all.
        while text.len() < LONGEST_PATH {
            let at = pointer.checked_add(text.len() as u64).ok_or(Errno::EFAULT)?;
            let length = usize::try_from(PAGE - at % PAGE).map_err(|_| Errno::EFAULT)?;
            let piece = self.memory(at, length.min(LONGEST_PATH - text.len()))?;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                text.extend(piece.iter().take(end));
                return Ok(text);
            }
            text.extend(piece);
        }
        Err(Errno::ENAMETOOLONG)
    }

    /// Writes into its memory, where the call that it made says that the kernel would.
    pub fn write(&self, pointer: u64, bytes: &[u8]) -> Result<(), Errno> {
        let base = usize::try_from(pointer).map_err(|_| Errno::EFAULT)?;
        let remote = [RemoteIoVec { base, len: bytes.len() }];
        let written = process_vm_writev(Pid::from_raw(self.tid), &[IoSlice::new(bytes)], &remote)?;
        if written == bytes.len() {
            Ok(())
        } else {
            Err(Errno::EFAULT)
        }
    }

    /// A duplicate of one of its descriptors: the same open file, so its flags and its fate are the caller's.
    pub fn descriptor(&self, number: RawFd, last: &mut Last) -> Result<OwnedFd, Errno> {
        if let Last(Some((tid, thread))) = last {
            if *tid == self.tid {
                match crate::sys::pidfd::duplicate(thread, number) {
                    Err(Errno::ESRCH) => {}
                    other => return other,
                }
            }
        }
        let thread = self.thread()?;
        let duplicate = crate::sys::pidfd::duplicate(&thread, number);
        *last = Last(Some((self.tid, thread)));
        duplicate
    }

    /// The thread, or its process where the kernel knows no descriptor for a thread.
    pub fn thread(&self) -> Result<OwnedFd, Errno> {
        match crate::sys::pidfd::open_thread(self.tid) {
            Err(Errno::EINVAL) => crate::sys::pidfd::open(self.leader()?),
            other => other,
        }
    }

    /// The thread group's leader, which shares the descriptors of every ordinary thread.
    fn leader(&self) -> Result<i32, Errno> {
        last_number(&self.status()?, b"Tgid:")
    }

    /// How the sandbox numbers the caller.
    pub fn numbers(&self) -> Result<Numbers, Errno> {
        if let Some(known) = self.numbers.get() {
            return Ok(*known);
        }
        let status = self.status()?;
        let numbers = Numbers {
            process: last_number(&status, b"NStgid:")?,
            thread: last_number(&status, b"NSpid:")?,
        };
        Ok(*self.numbers.get_or_init(|| numbers))
    }

    fn status(&self) -> Result<Vec<u8>, Errno> {
        std::fs::read(format!("/proc/{}/status", self.tid)).map_err(|_| Errno::ESRCH)
    }

    /// The path from the root on, as the caller means it, for messages.
    pub fn absolute(&self, path: &Path) -> Result<PathBuf, Errno> {
        if path.is_absolute() {
            return Ok(path.to_owned());
        }
        let workdir = std::fs::read_link(format!("/proc/{}/cwd", self.tid)).map_err(|_| Errno::ESRCH)?;
        Ok(workdir.join(path))
    }

    /// `root` or `cwd` of the caller.
    pub fn open(&self, name: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_DIRECTORY;
        nix::fcntl::open(format!("/proc/{}/{name}", self.tid).as_str(), flags, Mode::empty())
    }

    /// The table of the caller's mounts.
    pub fn mountinfo(&self) -> String {
        format!("/proc/{}/mountinfo", self.tid)
    }
}

/// The last number of one line of /proc/PID/status: the innermost namespace's where there are several.
fn last_number(status: &[u8], name: &[u8]) -> Result<i32, Errno> {
    let mut lines = status.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(name)).ok_or(Errno::ESRCH)?;
    let text = std::str::from_utf8(line).map_err(|_| Errno::ESRCH)?;
    let last = text.split_ascii_whitespace().next_back().ok_or(Errno::ESRCH)?;
    last.parse().map_err(|_| Errno::ESRCH)
}

/// The low 32 bits as the kernel reads an int argument.
pub fn low_int(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::{Area, Caller, Last, last_number, low_int};
    use nix::errno::Errno;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_line_of_numbers_ends_with_the_sandboxs_own() {
        let status = b"Name:\tx\nTgid:\t812\nNStgid:\t812\t7\nNSpid:\t815\t9\n";
        assert_eq!(last_number(status, b"NStgid:"), Ok(7));
        assert_eq!(last_number(status, b"NSpid:"), Ok(9));
        assert_eq!(last_number(status, b"Tgid:"), Ok(812));
        assert_eq!(last_number(status, b"None:"), Err(Errno::ESRCH));
    }

    #[test]
    fn an_int_is_the_low_half() {
        assert_eq!(low_int(7 | 1 << 40), 7);
        assert_eq!(low_int(0xffff_ffff), -1);
    }

    #[test]
    fn a_threads_descriptor_and_memory_are_read_from_another() {
        let word = *b"a word of this test";
        let file = std::fs::File::open("/dev/null").unwrap();
        let (tid, pointer) = (nix::unistd::gettid().as_raw(), word.as_ptr().expose_provenance() as u64);
        let number = file.as_raw_fd();
        let (name, much) = (c"/a/path", vec![b'x'; 5000]);
        let [path, long] = [name.as_ptr().cast(), much.as_ptr()].map(|at: *const u8| at.expose_provenance() as u64);
        let seen = std::thread::spawn(move || {
            let caller = Caller::new(tid);
            let mut last = Last::default();
            for _ in 0..2 {
                let twin = caller.descriptor(number, &mut last).unwrap();
                assert_ne!(twin.as_raw_fd(), number);
            }
            assert_eq!(caller.descriptor(-1, &mut last).unwrap_err(), Errno::EBADF);
            assert_eq!(caller.address(Area { pointer, length: 129 }), Err(Errno::EINVAL));
            assert_eq!(caller.memory(8, 4), Err(Errno::EFAULT));
            assert_eq!(caller.text(path).as_deref(), Ok(&b"/a/path"[..]));
            assert_eq!(caller.text(long), Err(Errno::ENAMETOOLONG));
            assert_eq!(caller.text(8), Err(Errno::EFAULT));
            caller.memory(pointer, word.len()).unwrap()
        });
        assert_eq!(seen.join().unwrap(), word);
    }
}
