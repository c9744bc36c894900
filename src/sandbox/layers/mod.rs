//! One file per layer: what the child does to itself. For each there is a check of the same name in `verify`.

pub mod capabilities;
pub mod descriptors;
pub mod landlock;
pub mod limits;
pub mod mounts;
pub mod namespaces;
pub mod network;
pub mod privileges;
pub mod seccomp;

/// The error number behind an I/O error.
fn errno_of(error: std::io::Error) -> nix::errno::Errno {
    error
        .raw_os_error()
        .map_or(nix::errno::Errno::EIO, nix::errno::Errno::from_raw)
}
