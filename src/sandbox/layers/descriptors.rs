//! Descriptors: above 2 only what the launch itself needs until exec, and nothing after it.

use std::os::fd::RawFd;

/// Closes all above 2 but `keep`, and marks those close-on-exec.
pub fn apply(keep: &[RawFd]) -> nix::Result<()> {
    crate::sys::descriptor::close_all_but(keep)?;
    crate::sys::descriptor::close_on_exec_from(3)
}
