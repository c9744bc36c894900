//! Puts back a cover that somebody outside took away.
//!
//! Whoever replaces a protected file on the host, as `git config` does by a rename, takes its mount away in every mount
//! namespace. A tiny process of ours waits outside for that; for each cover it makes one that enters the sandbox's user
//! and mount namespaces, mounts the file that stands there now over itself, read-only, and ends.

use super::jailed::Jailed;
use super::layers::descriptors;
use crate::base::AbsPath;
use crate::sys::mount::{self, Attributes};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::MntFlags;
use nix::sched::CloneFlags;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::sys::wait::{WaitStatus, waitpid};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Mutex;

/// No path is longer (PATH_MAX).
const LONGEST: usize = 4096 + 1;

/// What is asked for, as the first byte of a request; the path follows.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Deed {
    Cover = b'c',
    Uncover = b'u',
}

/// The supervisor's end.
#[derive(Debug)]
pub struct Mender {
    socket: Mutex<OwnedFd>,
    pid: nix::unistd::Pid,
}

impl Mender {
    /// Forks the process that waits. The caller has one thread.
    pub fn open(jailed: &Jailed) -> nix::Result<Mender> {
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        match crate::sys::clone::fork()? {
            None => {
                drop(ours);
                let _ = attend(jailed.leash.pidfd(), &theirs);
                crate::sys::clone::leave(0)
            }
            Some(pid) => Ok(Mender {
                socket: Mutex::new(ours),
                pid: nix::unistd::Pid::from_raw(pid),
            }),
        }
    }

    /// Covers the file at this path inside.
    pub fn cover(&self, at: &AbsPath) -> nix::Result<()> {
        self.ask(Deed::Cover, at)
    }

    /// Takes a cover away that went along with a file which was renamed outside.
    pub fn uncover(&self, at: &AbsPath) -> nix::Result<()> {
        self.ask(Deed::Uncover, at)
    }

    /// Ends the process; it is reaped when this is dropped.
    pub fn end(&self) {
        let _ = nix::sys::signal::kill(self.pid, Signal::SIGKILL);
    }

    fn ask(&self, deed: Deed, at: &AbsPath) -> nix::Result<()> {
        let socket = self.socket.lock().map_err(|_| Errno::EIO)?;
        let request = [&[deed as u8], at.as_path().as_os_str().as_bytes()].concat();
        crate::sys::descriptor::send(socket.as_fd(), &request, &[])?;
        let mut answer = [0; 1];
        match crate::sys::descriptor::receive(socket.as_fd(), &mut answer)?.length {
            1 if answer[0] == 0 => Ok(()),
            1 => Err(Errno::from_raw(answer[0].into())),
            _ => Err(Errno::EPIPE),
        }
    }
}

impl Drop for Mender {
    fn drop(&mut self) {
        self.end();
        let _ = waitpid(self.pid, None);
    }
}

fn attend(first: &OwnedFd, socket: &OwnedFd) -> nix::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    nix::unistd::setsid()?;
    let null = nix::fcntl::open("/dev/null", OFlag::O_RDWR, Mode::empty())?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    descriptors::apply(&[socket.as_raw_fd(), first.as_raw_fd()])?;
    let mut request = [0; LONGEST];
    loop {
        let length = crate::sys::descriptor::receive(socket.as_fd(), &mut request)?.length;
        let Some((deed, path)) = request[..length].split_first() else {
            return Ok(());
        };
        let path = Path::new(OsStr::from_bytes(path));
        let answer = match crate::sys::clone::fork()? {
            None => {
                let done = carry_out(first, *deed, path);
                crate::sys::clone::leave(done.err().map_or(0, |errno| errno as i32))
            }
            Some(pid) => match waitpid(nix::unistd::Pid::from_raw(pid), None)? {
                WaitStatus::Exited(_, code) => u8::try_from(code).unwrap_or(u8::MAX),
                _ => u8::MAX,
            },
        };
        crate::sys::descriptor::send(socket.as_fd(), &[answer], &[])?;
    }
}

fn carry_out(first: &OwnedFd, deed: u8, path: &Path) -> nix::Result<()> {
    crate::sys::pidfd::enter(first, CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    if deed == Deed::Uncover as u8 {
        return nix::mount::umount2(path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW);
    }
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let root = nix::fcntl::open("/", flags, Mode::empty())?;
    let below = path.strip_prefix("/").map_err(|_| Errno::EINVAL)?;
    let place = mount::open_beneath(&root, below)?;
    if SFlag::from_bits_truncate(fstat(&place)?.st_mode & SFlag::S_IFMT.bits()) != SFlag::S_IFREG {
        return Err(Errno::EINVAL);
    }
    let tree = mount::clone_tree(&place)?;
    let attributes = Attributes {
        read_only: true,
        no_devices: true,
    };
    mount::set_attributes_below(&tree, attributes)?;
    mount::attach(tree, place)
}
