//! The thread whose connect is decided: its address, its socket, and its view of the files.

use super::diag::SocketFile;
use crate::sys::seccomp::Notification;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// Largest sockaddr (struct sockaddr_storage).
const LARGEST: usize = 128;

/// A waiting caller; everything is read fresh, nothing is trusted.
pub struct Caller {
    tid: i32,
    socket: RawFd,
    pointer: usize,
    length: usize,
}

impl Caller {
    /// From the arguments of connect(2): descriptor, address, length. The kernel looks at their low 32 bits only
    /// where they are ints.
    pub fn of(notification: &Notification) -> Caller {
        let [socket, pointer, length, ..] = notification.args;
        Caller {
            tid: notification.tid,
            socket: low_int(socket),
            pointer: usize::try_from(pointer).unwrap_or(0),
            length: usize::try_from(low_int(length)).unwrap_or(usize::MAX),
        }
    }

    /// One copy of the address.
    pub fn address(&self) -> Result<Vec<u8>, Errno> {
        if self.length > LARGEST {
            return Err(Errno::EINVAL);
        }
        let mut bytes = vec![0; self.length];
        let remote = [RemoteIoVec {
            base: self.pointer,
            len: self.length,
        }];
        let read = process_vm_readv(Pid::from_raw(self.tid), &mut [IoSliceMut::new(&mut bytes)], &remote)?;
        if read == self.length {
            Ok(bytes)
        } else {
            Err(Errno::EFAULT)
        }
    }

    /// A duplicate of the socket: the same open file, so its flags and its fate are the caller's.
    pub fn socket(&self) -> Result<OwnedFd, Errno> {
        let thread = match crate::sys::pidfd::open_thread(self.tid) {
            Err(Errno::EINVAL) => crate::sys::pidfd::open(self.leader()?)?,
            other => other?,
        };
        crate::sys::pidfd::duplicate(thread, self.socket)
    }

    /// The thread group's leader, which shares the descriptors of every ordinary thread.
    fn leader(&self) -> Result<i32, Errno> {
        let status = std::fs::read(format!("/proc/{}/status", self.tid)).map_err(|_| Errno::ESRCH)?;
        let line = status
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(b"Tgid:"));
        let text = line
            .and_then(|line| std::str::from_utf8(line).ok())
            .ok_or(Errno::ESRCH)?;
        text.trim().parse().map_err(|_| Errno::ESRCH)
    }

    /// A socket file as the caller would find it, pinned, and an address that names exactly it.
    pub fn pin(&self, path: &Path) -> Result<(Vec<u8>, OwnedFd), Errno> {
        let root = self.open("root")?;
        let path = self.absolute(path)?;
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT);
        let below = path.strip_prefix("/").unwrap_or(&path);
        let file = openat2(root, below, how)?;
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        let family = u16::try_from(nix::libc::AF_UNIX).map_err(|_| Errno::EINVAL)?;
        let address = [&family.to_ne_bytes()[..], name.as_bytes(), &[0]].concat();
        Ok((address, file))
    }

    /// Which file a pinned socket file is, by the caller's mounts.
    pub fn socket_file(&self, pinned: &OwnedFd) -> Result<SocketFile, Errno> {
        socket_file(pinned, &format!("/proc/{}/mountinfo", self.tid))
    }

    /// The path from the root on, as the caller means it.
    pub fn absolute(&self, path: &Path) -> Result<PathBuf, Errno> {
        Ok(if path.is_absolute() {
            path.to_owned()
        } else {
            self.workdir()?.join(path)
        })
    }

    fn workdir(&self) -> Result<PathBuf, Errno> {
        std::fs::read_link(format!("/proc/{}/cwd", self.tid)).map_err(|_| Errno::ESRCH)
    }

    fn open(&self, name: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_DIRECTORY;
        nix::fcntl::open(format!("/proc/{}/{name}", self.tid).as_str(), flags, Mode::empty())
    }
}

/// Which file this is. stat's device number is not the file system's own everywhere (btrfs gives each subvolume one),
/// but mountinfo's is, and that is what sock_diag compares.
pub fn socket_file(pinned: &OwnedFd, mountinfo: &str) -> Result<SocketFile, Errno> {
    let stat = nix::sys::stat::fstat(pinned)?;
    let info = std::fs::read(format!("/proc/self/fdinfo/{}", pinned.as_raw_fd())).map_err(|_| Errno::EBADF)?;
    let id = info
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"mnt_id:"));
    let id = id.ok_or(Errno::EBADF)?.trim_ascii().to_vec();
    let mounts = std::fs::read(mountinfo).map_err(|_| Errno::ESRCH)?;
    let lines = mounts
        .split(|byte| *byte == b'\n')
        .map(|line| line.split(|byte| *byte == b' '));
    let mut fields = lines.map(|mut fields| (fields.next(), fields.nth(1)));
    let device = fields.find_map(|(mount, device)| device.filter(|_| mount == Some(id.as_slice())));
    let device = device
        .and_then(|device| std::str::from_utf8(device).ok())
        .and_then(|device| device.split_once(':'));
    let (major, minor) = device.ok_or(Errno::EACCES)?;
    let number = |text: &str| text.parse().map_err(|_| Errno::EACCES);
    SocketFile::new(number(major)?, number(minor)?, stat.st_ino).ok_or(Errno::EACCES)
}

/// The low 32 bits as the kernel reads an int argument.
fn low_int(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}
