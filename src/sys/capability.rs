//! Giving up every capability (capabilities(7)).

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;
/// SECBIT_NOROOT, SECBIT_NO_SETUID_FIXUP, SECBIT_NO_CAP_AMBIENT_RAISE, each with its lock: no exec and no change of
/// user id gives a capability back.
const SECUREBITS: libc::c_ulong = 0b1100_1111;
/// The highest number that the kernel's two words can hold.
const LAST: libc::c_ulong = 63;

/// Empties the bounding, ambient, inheritable, permitted and effective sets of this process for good.
pub fn drop_all() -> nix::Result<()> {
    for cap in 0..=LAST {
        // SAFETY: prctl with plain integers.
        let ret = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, cap, 0, 0, 0) };
        match super::check(ret.into()) {
            Ok(_) => {}
            // The first number that this kernel does not know ends the list.
            Err(nix::errno::Errno::EINVAL) if cap > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    // SAFETY: prctl with plain integers.
    super::check(unsafe { libc::prctl(libc::PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) }.into())?;
    let clear = libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong;
    // SAFETY: prctl with plain integers.
    let cleared = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, clear, 0, 0, 0) };
    super::check(cleared.into())?;
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let none = [Data {
        effective: 0,
        permitted: 0,
        inheritable: 0,
    }; 2];
    // SAFETY: a version 3 header with two data words, as capset(2) asks; both live over the call.
    super::check(unsafe { libc::syscall(libc::SYS_capset, std::ptr::from_ref(&header), none.as_ptr()) }).map(drop)
}
