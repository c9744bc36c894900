//! Mounts: a new root in memory that shows what is granted and nothing else (mount_namespaces(7), pivot_root(2)).
//!
//! Every source is opened and cloned first, in the host's view and following no link, so that nothing mounted later
//! can stand in its way. Then the new root is put together, and the old one goes.

mod overlays;
mod queues;

use crate::base::AbsPath;
use crate::policy::{Access, FileKind};
use crate::sandbox::plan::{CANARY, Op};
use crate::sys::mount::{self, Attributes};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags};
use nix::sys::stat::{Mode, fstat};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Where the new root is put together: every system has it, and nothing of ours needs the old one any more by then.
const STAGE: &str = "/proc";
/// Bytes of the root in memory: folders, links and small files only.
const ROOT_SIZE: u64 = 16 << 20;
/// Nodes of the host's /dev that are harmless and needed.
pub const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Global parts of /proc that root could write to in spite of the namespaces: they become read-only.
pub const PROC_READ_ONLY: [&str; 5] = ["sys", "irq", "bus", "fs", "acpi"];
/// Files of /proc that tell about or change the whole machine: they become empty.
pub const PROC_COVERED: [&str; 14] = [
    "sysrq-trigger",
    "kcore",
    "keys",
    "timer_list",
    "kallsyms",
    "kpagecount",
    "kpageflags",
    "kpagecgroup",
    "pagetypeinfo",
    "vmallocinfo",
    "slabinfo",
    "iomem",
    "ioports",
    "allocinfo",
];

/// A failure with the operation's number in the plan.
pub type Step<T> = Result<T, (u16, Errno)>;

/// Carries out the mount operations of `ops`, from `Root` to `Seal`. `files` are the contents of `Op::File` by path.
pub fn apply(ops: &[Op], files: &BTreeMap<AbsPath, Vec<u8>>) -> Step<()> {
    let at = |index: usize| move |errno: Errno| (u16::try_from(index).unwrap_or(u16::MAX), errno);
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    nix::mount::mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(at(0))?;
    let host = nix::fcntl::open("/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(at(0))?;
    let mut sources = overlays::sources(ops, &host)?;
    for (index, op) in ops.iter().enumerate() {
        if let Some(tree) = source(op, &host).map_err(at(index))? {
            sources.insert(index, tree);
        }
    }
    let mut view: Option<View> = None;
    for (index, op) in ops.iter().enumerate() {
        match (op, view.as_mut()) {
            (Op::Root, _) => view = Some(View::open().map_err(at(index))?),
            (op, Some(view)) => view.apply(op, sources.remove(&index), files).map_err(at(index))?,
            _ => {}
        }
    }
    Ok(())
}

/// The detached tree that an operation attaches later.
fn source(op: &Op, host: &OwnedFd) -> nix::Result<Option<Vec<OwnedFd>>> {
    let tree = |path: &AbsPath, attributes: Attributes| -> nix::Result<OwnedFd> {
        let tree = mount::clone_tree(mount::open_beneath(host, path.below_root())?)?;
        mount::set_attributes_below(&tree, attributes)?;
        Ok(tree)
    };
    let plain = Attributes {
        read_only: false,
        no_devices: true,
    };
    let read_only = Attributes {
        read_only: true,
        no_devices: true,
    };
    Ok(Some(match op {
        Op::Bind {
            source, access, kind, ..
        } => {
            let no_devices = *kind != FileKind::Device;
            vec![tree(
                source,
                Attributes {
                    read_only: *access == Access::Read,
                    no_devices,
                },
            )?]
        }
        Op::Pin { source, .. } => vec![tree(source, plain)?],
        Op::Protect { source, .. } => vec![tree(source, read_only)?],
        Op::Proc => vec![mount::new_filesystem(c"proc", &[], plain)?],
        Op::Devices => {
            let mut trees = Vec::new();
            for node in NODES {
                let path = AbsPath::new(Path::new("/dev").join(node)).map_err(|_| Errno::EINVAL)?;
                trees.push(tree(
                    &path,
                    Attributes {
                        read_only: false,
                        no_devices: false,
                    },
                )?);
            }
            trees
        }
        _ => return Ok(None),
    }))
}

/// The new root while it is put together.
struct View {
    root: OwnedFd,
    /// Device numbers of file systems that exist only inside: only there may places be made.
    own: Vec<u64>,
    /// Mounts that become read-only at the end.
    to_seal: Vec<AbsPath>,
    /// The folder that was opened last: what comes next mostly stands beside it.
    last: Option<Folder>,
}

/// A folder inside, open.
struct Folder {
    at: AbsPath,
    place: OwnedFd,
    /// Whether it is on a file system that exists only inside.
    is_own: bool,
}

impl View {
    fn open() -> nix::Result<View> {
        let stage = nix::fcntl::open(STAGE, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        let root = memory(ROOT_SIZE, "0755")?;
        mount::attach(&root, stage)?;
        let mut view = View {
            own: vec![fstat(&root)?.st_dev],
            root,
            to_seal: Vec::new(),
            last: None,
        };
        view.file(&inside(CANARY)?, b"Reading this file means that Landlock is not on.\n")?;
        Ok(view)
    }

    fn apply(&mut self, op: &Op, source: Option<Vec<OwnedFd>>, files: &BTreeMap<AbsPath, Vec<u8>>) -> nix::Result<()> {
        let first =
            |source: Option<Vec<OwnedFd>>| source.and_then(|trees| trees.into_iter().next()).ok_or(Errno::ENOENT);
        match op {
            Op::Scratch { at, size, shared } => self.scratch(at, *size, if *shared { "1777" } else { "0700" }),
            Op::Sealed { at } => {
                self.to_seal.push(at.clone());
                self.scratch(at, ROOT_SIZE, "0755")
            }
            Op::File { at, .. } => self.file(at, files.get(at).map_or(&[], Vec::as_slice)),
            Op::Link { at, to } => self.link(at, to),
            Op::Bind { target, kind, .. } => {
                let place = self.place(target, *kind == FileKind::Dir)?;
                self.attach(first(source)?, place, target)
            }
            Op::Layer { at, .. } => {
                let place = self.place(at, true)?;
                self.attach(first(source)?, place, at)
            }
            Op::Pin { at, .. } | Op::Protect { at, .. } => {
                let place = mount::open_beneath(&self.root, at.below_root())?;
                self.attach(first(source)?, place, at)
            }
            Op::Mask { at } => self.mask(at),
            Op::Proc => self.proc(&first(source)?),
            Op::Devices => self.devices(source.unwrap_or_default()),
            Op::Seal => self.seal(),
            _ => Ok(()),
        }
    }

    /// Attaches a tree at a place whose path inside is `at`.
    fn attach(&mut self, tree: impl AsFd, place: OwnedFd, at: &AbsPath) -> nix::Result<()> {
        // An open folder would stay the one below the new mount.
        self.last.take_if(|last| last.at.is_within(at));
        mount::attach(tree, place)
    }

    fn scratch(&mut self, at: &AbsPath, size: u64, mode: &str) -> nix::Result<()> {
        let place = self.place(at, true)?;
        let folder = memory(size, mode)?;
        self.own.push(fstat(&folder)?.st_dev);
        self.attach(folder, place, at)
    }

    fn file(&mut self, at: &AbsPath, bytes: &[u8]) -> nix::Result<()> {
        let (folder, name) = self.beside(at)?;
        let file = create(&folder.place, &name)?;
        std::fs::File::from(file).write_all(bytes).map_err(super::errno_of)
    }

    fn link(&mut self, at: &AbsPath, to: &Path) -> nix::Result<()> {
        let (folder, name) = self.beside(at)?;
        match nix::unistd::symlinkat(to, &folder.place, name.as_c_str()) {
            Err(Errno::EEXIST) => Ok(()),
            other => other,
        }
    }

    /// Covers `at` with something empty and unreadable to the point: an empty read-only file or folder.
    fn mask(&mut self, at: &AbsPath) -> nix::Result<()> {
        let Some(place) = if_there(mount::open_beneath(&self.root, at.below_root()))? else {
            return Ok(());
        };
        let is_folder = fstat(&place)?.st_mode & nix::libc::S_IFMT == nix::libc::S_IFDIR;
        let cover = if is_folder {
            memory(4096, "0555")?
        } else {
            self.empty()?
        };
        mount::set_attributes(
            &cover,
            Attributes {
                read_only: true,
                no_devices: true,
            },
        )?;
        self.attach(cover, place, at)
    }

    /// A detached mount of an empty file.
    fn empty(&self) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_CREAT | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = nix::fcntl::openat(&self.root, ".empty", flags, Mode::from_bits_truncate(0o444))?;
        mount::clone_tree(file)
    }

    fn proc(&mut self, proc: &OwnedFd) -> nix::Result<()> {
        let at = inside("/proc")?;
        let place = self.place(&at, true)?;
        self.attach(proc, place, &at)?;
        for name in PROC_READ_ONLY {
            let Some(place) = if_there(mount::open_beneath(proc, name))? else {
                continue;
            };
            let copy = mount::clone_tree(&place)?;
            mount::set_attributes_below(
                &copy,
                Attributes {
                    read_only: true,
                    no_devices: true,
                },
            )?;
            self.attach(copy, place, &at.join(name).map_err(|_| Errno::EINVAL)?)?;
        }
        PROC_COVERED
            .iter()
            .try_for_each(|name| self.mask(&inside(&format!("/proc/{name}"))?))
    }

    fn devices(&mut self, nodes: Vec<OwnedFd>) -> nix::Result<()> {
        let dev = inside("/dev")?;
        self.scratch(&dev, 1 << 20, "0755")?;
        self.to_seal.push(dev);
        for (name, node) in NODES.iter().zip(nodes) {
            let at = inside(&format!("/dev/{name}"))?;
            let place = self.place(&at, false)?;
            self.attach(node, place, &at)?;
        }
        let options = [(c"ptmxmode", c"0666"), (c"mode", c"620")];
        let pts = mount::new_filesystem(c"devpts", &options, Attributes::default())?;
        let at = inside("/dev/pts")?;
        let place = self.place(&at, true)?;
        self.attach(pts, place, &at)?;
        self.scratch(&inside("/dev/shm")?, 1 << 30, "1777")?;
        self.queues()?;
        for (name, to) in [
            ("ptmx", "pts/ptmx"),
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ] {
            self.link(&inside(&format!("/dev/{name}"))?, Path::new(to))?;
        }
        Ok(())
    }

    fn seal(&mut self) -> nix::Result<()> {
        let read_only = Attributes {
            read_only: true,
            no_devices: false,
        };
        for at in &self.to_seal {
            mount::set_attributes(mount::open_beneath(&self.root, at.below_root())?, read_only)?;
        }
        nix::unistd::fchdir(&self.root)?;
        nix::unistd::pivot_root(".", ".")?;
        nix::mount::umount2(".", MntFlags::MNT_DETACH)?;
        nix::unistd::chdir("/")?;
        mount::set_attributes(
            &self.root,
            Attributes {
                read_only: true,
                no_devices: true,
            },
        )
    }

    /// The folder that holds `at`, made if need be, and the last name.
    fn beside(&mut self, at: &AbsPath) -> nix::Result<(&Folder, CString)> {
        let parent = at.parent().ok_or(Errno::EINVAL)?;
        let name = at.as_path().file_name().ok_or(Errno::EINVAL)?;
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::EINVAL)?;
        if self.last.as_ref().is_none_or(|last| last.at != parent) {
            let place = self.place(&parent, true)?;
            let is_own = self.own.contains(&fstat(&place)?.st_dev);
            self.last = Some(Folder {
                at: parent,
                place,
                is_own,
            });
        }
        Ok((self.last.as_ref().ok_or(Errno::EINVAL)?, name))
    }

    /// A place for a mount, made if need be; but never on a file system of the host's.
    fn place(&mut self, at: &AbsPath, is_folder: bool) -> nix::Result<OwnedFd> {
        if at.below_root().as_os_str().is_empty() {
            return mount::open_beneath(&self.root, ".");
        }
        let (folder, name) = self.beside(at)?;
        if folder.is_own {
            let made = if is_folder {
                nix::sys::stat::mkdirat(&folder.place, name.as_c_str(), folder_mode(at)).map(|()| None)
            } else {
                create(&folder.place, &name).map(Some)
            };
            match made {
                Ok(Some(file)) => return Ok(file),
                Ok(None) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        mount::open_beneath(&folder.place, name.as_c_str())
    }
}

/// As the host's folder there: gpg uses no socket in one that others could enter.
fn folder_mode(at: &AbsPath) -> Mode {
    let host = nix::sys::stat::lstat(at.as_path()).map_or(0o755, |stat| stat.st_mode);
    Mode::from_bits_truncate(host & 0o755 | 0o700)
}

/// A new empty file.
fn create(folder: &OwnedFd, name: &CStr) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    nix::fcntl::openat(folder, name, flags, Mode::from_bits_truncate(0o444))
}

/// A folder in memory, detached; nosuid and nodev.
fn memory(size: u64, mode: &str) -> nix::Result<OwnedFd> {
    let size = CString::new(size.to_string()).map_err(|_| Errno::EINVAL)?;
    let mode = CString::new(mode).map_err(|_| Errno::EINVAL)?;
    let options = [(c"size", size.as_c_str()), (c"mode", mode.as_c_str())];
    mount::new_filesystem(
        c"tmpfs",
        &options,
        Attributes {
            read_only: false,
            no_devices: true,
        },
    )
}

fn inside(path: &str) -> nix::Result<AbsPath> {
    AbsPath::new(path).map_err(|_| Errno::EINVAL)
}

/// What is not there needs no cover; any other failure is one.
fn if_there<T>(found: nix::Result<T>) -> nix::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}
