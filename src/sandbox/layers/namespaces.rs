//! Namespaces: nothing of the host's processes, network, IPC, names or mounts can be named (namespaces(7)).

use nix::sched::CloneFlags;
use std::fs::OpenOptions;
use std::io::Write as _;

/// All of them, made in one clone3.
pub fn all() -> CloneFlags {
    CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP
}

/// Maps exactly one user and one group id to themselves (user_namespaces(7)); supplementary groups cannot be changed.
pub fn map_ids(uid: u32, gid: u32) -> nix::Result<()> {
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", &format!("{gid} {gid} 1"))
}

fn write(path: &str, text: &str) -> nix::Result<()> {
    let io = OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    io.map_err(super::errno_of)
}
