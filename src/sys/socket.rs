//! connect(2) with an address as it came, byte for byte.

use std::os::fd::{AsFd, AsRawFd};

/// Connects `socket` to the address in `bytes` (a sockaddr of any family, at most 128 bytes).
pub fn connect(socket: impl AsFd, bytes: &[u8]) -> nix::Result<()> {
    let mut storage = [0_u64; 16];
    let room = size_of_val(&storage);
    let length = bytes.len().min(room);
    // SAFETY: both regions are at least `length` bytes long and do not overlap; any bytes are valid u64s.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.as_mut_ptr().cast::<u8>(), length) };
    let length = libc::socklen_t::try_from(length).map_err(|_| nix::errno::Errno::EINVAL)?;
    // SAFETY: `storage` is aligned for any sockaddr and holds `length` bytes; the kernel only reads it.
    super::check(unsafe { libc::connect(socket.as_fd().as_raw_fd(), storage.as_ptr().cast(), length) }.into()).map(drop)
}
