//! Folders of the host below a private layer in memory (overlayfs without privileges: Linux 5.11), for package caches:
//! what is there is warm, and what is written to it reaches nobody else.

use super::{STAGE, Step, memory};
use crate::base::AbsPath;
use crate::sandbox::plan::Op;
use crate::sys::mount::{self, Attributes};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::MntFlags;
use nix::sys::stat::{Mode, mkdirat};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};

const PLAIN: Attributes = Attributes {
    read_only: false,
    no_devices: true,
};

/// The detached mounts of all layered folders, by operation.
pub(super) fn sources(ops: &[Op], host: &OwnedFd) -> Step<BTreeMap<usize, Vec<OwnedFd>>> {
    let at = |index: usize| move |errno: Errno| (u16::try_from(index).unwrap_or(u16::MAX), errno);
    let mut found = BTreeMap::new();
    let size = ops.iter().enumerate().find_map(|(index, op)| match op {
        Op::Layers { size } => Some((index, *size)),
        _ => None,
    });
    let Some((index, size)) = size else {
        return Ok(found);
    };
    let stage = Stage::open(size, host).map_err(at(index))?;
    for (index, op) in ops.iter().enumerate() {
        if let Op::Layer { source, .. } = op {
            found.insert(index, vec![stage.layer(index, source, host).map_err(at(index))?]);
        }
    }
    stage.close(host).map_err(at(index))?;
    Ok(found)
}

/// The memory of all layers, while it is mounted somewhere: before Linux 6.15 nothing that is detached can be a layer.
struct Stage {
    memory: OwnedFd,
}

impl Stage {
    fn open(size: u64, host: &OwnedFd) -> nix::Result<Stage> {
        // Layers are named by their descriptors. This folder stays the host's when something is mounted over /proc.
        nix::unistd::chdir("/proc/self/fd")?;
        let memory = memory(size, "0700")?;
        let place = mount::open_beneath(host, STAGE.trim_start_matches('/'))?;
        mount::attach(&memory, place)?;
        Ok(Stage { memory })
    }

    fn close(self, host: &OwnedFd) -> nix::Result<()> {
        nix::unistd::fchdir(host)?;
        nix::mount::umount2(STAGE, MntFlags::MNT_DETACH)
    }

    /// The folder below a layer of its own; where the kernel does not lay one over it, an empty one.
    fn layer(&self, index: usize, source: &AbsPath, host: &OwnedFd) -> nix::Result<OwnedFd> {
        let lower = mount::open_beneath(host, source.below_root())?;
        let number = lower.as_raw_fd();
        let [upper, work] = ["upper", "work"].map(|name| format!("{name}-{index}"));
        for folder in [&upper, &work] {
            mkdirat(&self.memory, folder.as_str(), Mode::S_IRWXU)?;
        }
        let layers = self.memory.as_raw_fd();
        let [below, above, beside] = [
            number.to_string(),
            format!("{layers}/{upper}"),
            format!("{layers}/{work}"),
        ]
        .map(|text| CString::new(text).map_err(|_| Errno::EINVAL));
        let [below, above, beside] = [below?, above?, beside?];
        let options = [
            (c"lowerdir", below.as_c_str()),
            (c"upperdir", above.as_c_str()),
            (c"workdir", beside.as_c_str()),
            // Whiteouts are noted in attributes that take no privileges.
            (c"userxattr", c""),
        ];
        match mount::new_filesystem(c"overlay", &options, PLAIN) {
            Err(_) => self.empty(&upper),
            made => made,
        }
    }

    fn empty(&self, upper: &str) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = mount::clone_tree(nix::fcntl::openat(&self.memory, upper, flags, Mode::empty())?)?;
        mount::set_attributes(&folder, PLAIN)?;
        Ok(folder)
    }
}
