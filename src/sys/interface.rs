//! Network interfaces.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::os::fd::AsRawFd;

#[repr(C)]
struct FlagsRequest {
    name: [libc::c_char; libc::IFNAMSIZ],
    flags: libc::c_short,
    padding: [u8; 22],
}

/// Brings `lo` of this network namespace up (netdevice(7)).
pub fn loopback_up() -> nix::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut request = FlagsRequest {
        name: [0; libc::IFNAMSIZ],
        flags: 0,
        padding: [0; 22],
    };
    for (slot, byte) in request.name.iter_mut().zip(*b"lo") {
        *slot = byte as libc::c_char;
    }
    let up = libc::IFF_UP | libc::IFF_RUNNING;
    request.flags = libc::c_short::try_from(up).map_err(|_| nix::errno::Errno::EINVAL)?;
    // SAFETY: `request` has the size and layout of struct ifreq (40 bytes on 64-bit) and lives over the call.
    super::check(
        unsafe {
            libc::ioctl(
                socket.as_raw_fd(),
                libc::SIOCSIFFLAGS as _,
                std::ptr::from_ref(&request),
            )
        }
        .into(),
    )
    .map(drop)
}
