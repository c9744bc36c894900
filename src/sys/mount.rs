//! The descriptor-based mount interface (open_tree(2), fsopen(2), move_mount(2): Linux 5.2; mount_setattr(2): 5.12).

use nix::NixPath;
use nix::errno::Errno;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// Attributes to set on a mount, and on all below it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes {
    pub read_only: bool,
    pub no_devices: bool,
}

const AT_RECURSIVE: libc::c_uint = 0x8000;
const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 0x4;
const MOVE_MOUNT_T_EMPTY_PATH: libc::c_uint = 0x40;
const MOUNT_ATTR_RDONLY: u64 = 0x1;
const MOUNT_ATTR_NOSUID: u64 = 0x2;
const MOUNT_ATTR_NODEV: u64 = 0x4;
const FSCONFIG_SET_FLAG: libc::c_uint = 0;
const FSCONFIG_SET_STRING: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// A detached copy of the mount tree at `at` (a descriptor, O_PATH will do), all mounts below included.
pub fn clone_tree(at: impl AsFd) -> nix::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | AT_RECURSIVE | libc::AT_EMPTY_PATH as libc::c_uint | libc::O_CLOEXEC as libc::c_uint;
    // SAFETY: the path is a static empty C string; the descriptor lives over the call.
    super::owned(unsafe { libc::syscall(libc::SYS_open_tree, at.as_fd().as_raw_fd(), c"".as_ptr(), flags) })
}

/// A new file system of `kind` with `options`, detached; nosuid always. An option with an empty value is a flag.
pub fn new_filesystem(kind: &CStr, options: &[(&CStr, &CStr)], attributes: Attributes) -> nix::Result<OwnedFd> {
    // SAFETY: `kind` is a C string that lives over the call. 1 is FSOPEN_CLOEXEC.
    let context = super::owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 1) })?;
    for (key, value) in options {
        let (command, value) = match value.is_empty() {
            true => (FSCONFIG_SET_FLAG, std::ptr::null()),
            false => (FSCONFIG_SET_STRING, value.as_ptr()),
        };
        // SAFETY: the key is a C string that lives over the call; the value is one too, or null for a flag, which has none.
        super::check(unsafe {
            libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, key.as_ptr(), value, 0)
        })?;
    }
    // SAFETY: FSCONFIG_CMD_CREATE takes no key and no value.
    super::check(unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            std::ptr::null::<libc::c_char>(),
            std::ptr::null::<libc::c_char>(),
            0,
        )
    })?;
    // SAFETY: plain integers. 1 is FSMOUNT_CLOEXEC.
    super::owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, bits(attributes)) })
}

/// Sets attributes on the mount at `at` and on every mount below it; nosuid always.
pub fn set_attributes_below(at: impl AsFd, attributes: Attributes) -> nix::Result<()> {
    set(at, attributes, AT_RECURSIVE)
}

/// Sets attributes on the mount at `at` alone; nosuid always.
pub fn set_attributes(at: impl AsFd, attributes: Attributes) -> nix::Result<()> {
    set(at, attributes, 0)
}

fn set(at: impl AsFd, attributes: Attributes, recursive: libc::c_uint) -> nix::Result<()> {
    let attr = MountAttr {
        attr_set: bits(attributes),
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: `attr` is a valid mount_attr of the size given; the path is a static empty C string.
    super::check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_fd().as_raw_fd(),
            c"".as_ptr(),
            recursive | libc::AT_EMPTY_PATH as libc::c_uint,
            std::ptr::from_ref(&attr),
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Attaches a detached mount onto the object that `onto` refers to.
pub fn attach(mount: impl AsFd, onto: impl AsFd) -> nix::Result<()> {
    // SAFETY: both paths are static empty C strings; the descriptors live over the call.
    super::check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            onto.as_fd().as_raw_fd(),
            c"".as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH,
        )
    })
    .map(drop)
}

/// Opens `path` below `dir` as O_PATH; `dir` is the root of the walk, and no component may be a link.
pub fn open_beneath<P: ?Sized + NixPath>(dir: impl AsFd, path: &P) -> nix::Result<OwnedFd> {
    use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_SYMLINKS);
    match openat2(&dir, path, how) {
        // Some containers refuse a call that their filter does not know.
        Err(Errno::ENOSYS | Errno::EPERM) => path.with_nix_path(|path| step_by_step(dir.as_fd(), path.to_bytes()))?,
        other => other,
    }
}

/// The same without openat2: name by name, none of which may be a link.
fn step_by_step(dir: BorrowedFd<'_>, path: &[u8]) -> nix::Result<OwnedFd> {
    use nix::fcntl::{OFlag, openat};
    use nix::sys::stat::{Mode, SFlag, fstat};
    let look = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let mut at = openat(dir, ".", look, Mode::empty())?;
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => continue,
            b".." => return Err(Errno::EXDEV),
            name => at = openat(&at, OsStr::from_bytes(name), look, Mode::empty())?,
        }
        let kind = SFlag::from_bits_truncate(fstat(&at)?.st_mode) & SFlag::S_IFMT;
        if kind == SFlag::S_IFLNK {
            return Err(Errno::ELOOP);
        }
    }
    Ok(at)
}

fn bits(attributes: Attributes) -> u64 {
    let mut bits = MOUNT_ATTR_NOSUID;
    if attributes.read_only {
        bits |= MOUNT_ATTR_RDONLY;
    }
    if attributes.no_devices {
        bits |= MOUNT_ATTR_NODEV;
    }
    bits
}
