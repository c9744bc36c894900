//! Calls on sockets with an address as it came, byte for byte.

use std::os::fd::{AsFd, AsRawFd};

/// Room for a sockaddr of any family, aligned for all of them.
type Storage = [u64; 16];

/// The address in `bytes` (at most 128), and its length.
fn storage(bytes: &[u8]) -> nix::Result<(Storage, libc::socklen_t)> {
    let mut storage: Storage = [0; 16];
    let length = bytes.len().min(size_of_val(&storage));
    // SAFETY: both regions are at least `length` bytes long and do not overlap; any bytes are valid u64s.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.as_mut_ptr().cast::<u8>(), length) };
    let length = libc::socklen_t::try_from(length).map_err(|_| nix::errno::Errno::EINVAL)?;
    Ok((storage, length))
}

/// connect(2) to the address in `bytes`.
pub fn connect(socket: impl AsFd, bytes: &[u8]) -> nix::Result<()> {
    let (storage, length) = storage(bytes)?;
    // SAFETY: `storage` is aligned for any sockaddr and holds `length` bytes; the kernel only reads it.
    super::check(unsafe { libc::connect(socket.as_fd().as_raw_fd(), storage.as_ptr().cast(), length) }.into()).map(drop)
}

/// bind(2) to the address in `bytes`.
pub fn bind(socket: impl AsFd, bytes: &[u8]) -> nix::Result<()> {
    let (storage, length) = storage(bytes)?;
    // SAFETY: as for connect.
    super::check(unsafe { libc::bind(socket.as_fd().as_raw_fd(), storage.as_ptr().cast(), length) }.into()).map(drop)
}

/// The socket's own address as getsockname(2) gives it.
pub fn own_address(socket: impl AsFd) -> nix::Result<Vec<u8>> {
    let mut storage: Storage = [0; 16];
    let room = size_of_val(&storage);
    let mut length = libc::socklen_t::try_from(room).map_err(|_| nix::errno::Errno::EINVAL)?;
    let raw = socket.as_fd().as_raw_fd();
    let place = storage.as_mut_ptr().cast();
    // SAFETY: `storage` is aligned for any sockaddr and as long as `length` says; both live over the call.
    super::check(unsafe { libc::getsockname(raw, place, std::ptr::from_mut(&mut length)) }.into())?;
    let bytes = storage.iter().flat_map(|word| word.to_ne_bytes());
    Ok(bytes.take(length as usize).collect())
}

/// listen(2).
pub fn listen(socket: impl AsFd, backlog: libc::c_int) -> nix::Result<()> {
    // SAFETY: plain integers; the socket lives over the call.
    super::check(unsafe { libc::listen(socket.as_fd().as_raw_fd(), backlog) }.into()).map(drop)
}

/// sendmsg(2) of one piece of data to the address in `bytes` (none if empty), with descriptors; the number of bytes sent.
pub fn send_to(
    socket: impl AsFd,
    bytes: &[u8],
    data: &[u8],
    descriptors: &[std::os::fd::RawFd],
    flags: libc::c_int,
) -> nix::Result<usize> {
    let (mut storage, length) = storage(bytes)?;
    let mut piece = libc::iovec {
        iov_base: data.as_ptr().cast_mut().cast(),
        iov_len: data.len(),
    };
    let room = libc::c_uint::try_from(size_of_val(descriptors)).map_err(|_| nix::errno::Errno::EINVAL)?;
    // SAFETY: the macro only computes.
    let space = usize::try_from(unsafe { libc::CMSG_SPACE(room) }).map_err(|_| nix::errno::Errno::EINVAL)?;
    let mut control = vec![0_u64; space.div_ceil(8)];
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    if length > 0 {
        message.msg_name = storage.as_mut_ptr().cast();
        message.msg_namelen = length;
    }
    message.msg_iov = std::ptr::from_mut(&mut piece);
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = space as _;
        // SAFETY: the control buffer holds one header and `descriptors`, as CMSG_SPACE computed, and is aligned.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(std::ptr::from_ref(&message));
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(room) as _;
            let at = libc::CMSG_DATA(header).cast::<libc::c_int>();
            std::ptr::copy_nonoverlapping(descriptors.as_ptr(), at, descriptors.len());
        }
    }
    // SAFETY: every pointer in `message` leads to something that lives over the call and is as long as it says.
    let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), std::ptr::from_ref(&message), flags) };
    nix::errno::Errno::result(sent).and_then(|sent| usize::try_from(sent).map_err(|_| nix::errno::Errno::EIO))
}
