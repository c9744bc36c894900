//! no_new_privs: no exec gives anything back (Documentation/userspace-api/no_new_privs.rst).

/// For this process and all that it starts.
pub fn apply() -> nix::Result<()> {
    nix::sys::prctl::set_no_new_privs()
}
