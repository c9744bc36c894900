//! Capabilities: all five sets empty, and no way to fill them (capabilities(7)).

/// For this process and all that it starts.
pub fn apply() -> nix::Result<()> {
    crate::sys::capability::drop_all()
}
