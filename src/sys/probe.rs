//! The system calls that an enclosed process tries and that no safe wrapper offers. Each is harmless where it succeeds:
//! it makes nothing that outlives the process and changes nothing outside it.

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// Turns a raw result into the errno, or closes what was opened.
fn opened(result: libc::c_long) -> Result<(), Errno> {
    let raw = i32::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just returned this descriptor to us and nothing else knows its number.
    drop(unsafe { OwnedFd::from_raw_fd(raw) });
    Ok(())
}

/// `io_uring_setup` with one entry.
pub fn io_uring() -> Result<(), Errno> {
    // `struct io_uring_params` is 120 bytes of integers; all zero asks for the defaults.
    let mut params = [0_u64; 15];
    // SAFETY: `params` is as large as the structure that the kernel reads and writes, and outlives the call.
    opened(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1_u32, params.as_mut_ptr()) })
}

/// `bpf(BPF_MAP_CREATE)` of a one-entry array.
pub fn bpf() -> Result<(), Errno> {
    // map_type 2 (array), key_size 4, value_size 4, max_entries 1.
    let attr = [2_u32, 4, 4, 1, 0, 0, 0, 0];
    // SAFETY: `attr` is readable for the length that is passed with it; command 0 only reads it.
    opened(unsafe { libc::syscall(libc::SYS_bpf, 0_i32, attr.as_ptr(), size_of_val(&attr)) })
}

/// `perf_event_open` of a software clock on ourselves, user space only.
pub fn perf() -> Result<(), Errno> {
    // type 1 (software), size 64 (PERF_ATTR_SIZE_VER0), config 0 (cpu clock); bit 5 of the flags word: exclude_kernel.
    let mut attr = [0_u64; 8];
    attr[0] = 1 | (64 << 32);
    attr[5] = 1 << 5;
    // SAFETY: `attr` is readable for the 64 bytes that it names as its own size.
    opened(unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0_i32, -1_i32, -1_i32, 0_u64) })
}

/// `userfaultfd` for user-mode faults only, which needs no privilege.
pub fn userfaultfd() -> Result<(), Errno> {
    const USER_MODE_ONLY: i32 = 1;
    // SAFETY: the call takes no pointer.
    opened(unsafe { libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY | libc::O_CLOEXEC) })
}

/// `keyctl(KEYCTL_GET_KEYRING_ID)` of our own process keyring, made if absent; it dies with the process.
pub fn keyctl() -> Result<(), Errno> {
    const GET_KEYRING_ID: i32 = 0;
    const PROCESS_KEYRING: i32 = -2;
    // SAFETY: the call takes no pointer.
    Errno::result(unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, PROCESS_KEYRING, 1_i32) }).map(drop)
}

/// `unshare(CLONE_NEWUSER)` in a forked child that exits at once, since a process with threads may not do it itself.
pub fn unshare_user() -> Result<(), Errno> {
    // SAFETY: the child makes two system calls that are safe after fork in a threaded process, touches no memory but
    // its own stack and errno, and never returns into this program.
    let child = Errno::result(unsafe { libc::fork() })?;
    if child == 0 {
        // SAFETY: as above; `unshare` and `_exit` take no pointer.
        unsafe {
            let failed = libc::unshare(libc::CLONE_NEWUSER) != 0;
            libc::_exit(if failed { *libc::__errno_location() } else { 0 });
        }
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place for one integer; `child` is our own and is waited for only here.
    while Errno::result(unsafe { libc::waitpid(child, &raw mut status, 0) }) == Err(Errno::EINTR) {}
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, 0) => Ok(()),
        (true, errno) => Err(Errno::from_raw(errno)),
        // A filter that kills instead of answering.
        (false, _) => Err(Errno::EPERM),
    }
}

/// `mount(2)` asking to remount a folder that is no mount point: with the right to mount the kernel answers EINVAL,
/// which counts as success here, and nothing is changed either way.
pub fn mount() -> Result<(), Errno> {
    let flags = libc::MS_REMOUNT | libc::MS_BIND;
    // SAFETY: the target is a NUL-terminated constant; source, type and data may be null for a remount.
    let result = unsafe {
        libc::mount(
            std::ptr::null(),
            c"/proc/self".as_ptr(),
            std::ptr::null(),
            flags,
            std::ptr::null(),
        )
    };
    match Errno::result(result) {
        Ok(_) | Err(Errno::EINVAL) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// `fsopen("tmpfs")`: the newer way to a mount; nothing is attached anywhere.
pub fn mount_new() -> Result<(), Errno> {
    const FSOPEN_CLOEXEC: i32 = 1;
    // SAFETY: the name is a NUL-terminated constant.
    opened(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), FSOPEN_CLOEXEC) })
}

/// `clone3` without its structure: where the call can be reached the kernel refuses that as invalid, which counts as
/// success here, and makes no process.
pub fn clone3() -> Result<(), Errno> {
    // SAFETY: the kernel looks at the size, which is 0, before it looks at the pointer.
    match Errno::result(unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<libc::clone_args>(), 0_usize) }) {
        Err(Errno::EINVAL) => Ok(()),
        other => other.map(drop),
    }
}

/// `name_to_handle_at` with room for no byte of the handle: `EOVERFLOW` where there is one.
pub fn file_handle(path: &OsStr) -> Result<(), Errno> {
    let path = CString::new(path.as_bytes()).map_err(|_| Errno::EINVAL)?;
    // `struct file_handle`: its size and its type, then no byte.
    let mut handle = [0_u32; 2];
    let mut mount = 0_i32;
    // SAFETY: the path is NUL-terminated; the kernel writes the two words of the handle and one integer, all of which
    // outlive the call.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0_i32,
        )
    })
    .map(drop)
}

/// `syslog` asking for the size of the kernel's log (syslog(2), action 10).
pub fn syslog() -> Result<(), Errno> {
    const SIZE_BUFFER: i32 = 10;
    // SAFETY: this action takes no buffer.
    Errno::result(unsafe { libc::syscall(libc::SYS_syslog, SIZE_BUFFER, std::ptr::null::<u8>(), 0_i32) }).map(drop)
}

/// prlimit(2) of another process, its core limit set to what it is.
pub fn limit_another(pid: i32) -> Result<(), Errno> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a null new limit only asks; the kernel writes one rlimit, which lives over the call.
    Errno::result(unsafe { libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &raw mut limit) })?;
    // SAFETY: the kernel reads one rlimit; a null old one is not written.
    Errno::result(unsafe { libc::prlimit(pid, libc::RLIMIT_CORE, &raw const limit, std::ptr::null_mut()) }).map(drop)
}

/// setpriority(2) of another process to what it is.
pub fn renice_another(pid: i32) -> Result<(), Errno> {
    let pid = libc::id_t::try_from(pid).map_err(|_| Errno::EINVAL)?;
    Errno::clear();
    // SAFETY: plain integers.
    let now = unsafe { libc::getpriority(libc::PRIO_PROCESS, pid) };
    if now == -1 && Errno::last_raw() != 0 {
        return Err(Errno::last());
    }
    // SAFETY: plain integers.
    Errno::result(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, now) }).map(drop)
}

/// A private segment of System V shared memory, made and removed.
pub fn shared_memory() -> Result<(), Errno> {
    const BYTES: usize = 4096;
    // SAFETY: the call takes no pointer.
    let id = Errno::result(unsafe { libc::shmget(libc::IPC_PRIVATE, BYTES, 0o600) })?;
    // SAFETY: removing takes no buffer.
    Errno::result(unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) }).map(drop)
}

/// A POSIX message queue, made and removed.
pub fn message_queue() -> Result<(), Errno> {
    let name = CString::new(format!("/pinfold-probe-{}", std::process::id())).map_err(|_| Errno::EINVAL)?;
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDONLY | libc::O_CLOEXEC;
    let attributes = std::ptr::null_mut::<libc::mq_attr>();
    // SAFETY: the name is a C string that lives over the call; without attributes the kernel takes its own.
    opened(unsafe { libc::mq_open(name.as_ptr(), flags, 0o600_u32, attributes) }.into())?;
    // SAFETY: as above.
    Errno::result(unsafe { libc::mq_unlink(name.as_ptr()) }).map(drop)
}

/// A user attribute of a file, set and removed.
pub fn extended_attribute(path: &OsStr) -> Result<(), Errno> {
    let path = CString::new(path.as_bytes()).map_err(|_| Errno::EINVAL)?;
    let name = c"user.pinfold-probe";
    // SAFETY: both strings live over the call; an empty value is read from nowhere.
    Errno::result(unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), std::ptr::null(), 0, 0) })?;
    // SAFETY: as above.
    Errno::result(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) }).map(drop)
}

/// The flag of a send that connects.
pub const FAST_OPEN: MsgFlags = MsgFlags::from_bits_retain(libc::MSG_FASTOPEN);

/// How the request number of a terminal injection is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    Plain,
    /// With bits above the 32 that the kernel looks at, which a filter that compares 64 bits would miss.
    HighBits,
}

/// `ioctl(TIOCSTI)` of one NUL byte into `terminal`.
pub fn inject(terminal: BorrowedFd<'_>, request: Request) -> Result<(), Errno> {
    let number = match request {
        Request::Plain => libc::TIOCSTI,
        Request::HighBits => libc::TIOCSTI | (1 << 32),
    };
    let byte = 0_u8;
    // SAFETY: the kernel reads one byte at the pointer, which is valid for the call.
    Errno::result(unsafe { libc::syscall(libc::SYS_ioctl, terminal.as_raw_fd(), number, &raw const byte) }).map(drop)
}
