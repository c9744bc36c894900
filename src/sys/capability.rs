//! Giving up every capability (capabilities(7)).

#[repr(C)]
#[derive(Clone, Copy)]
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
const OWN: Header = Header {
    version: VERSION_3,
    pid: 0,
};
const NONE: Data = Data {
    effective: 0,
    permitted: 0,
    inheritable: 0,
};
/// SECBIT_NOROOT, SECBIT_NO_SETUID_FIXUP, SECBIT_NO_CAP_AMBIENT_RAISE, each with its lock: no exec and no change of
/// user id gives a capability back.
const SECUREBITS: libc::c_ulong = 0b1100_1111;
/// The highest number that the kernel's two words can hold.
const LAST: libc::c_ulong = 63;

/// Empties the bounding, ambient, inheritable, permitted and effective sets of this process for good. One that has no
/// capability may not empty the bounding set, which then only says what a program's own capabilities could give it:
/// nothing, with no_new_privs.
pub fn drop_all() -> nix::Result<()> {
    match bound() {
        Err(nix::errno::Errno::EPERM) if has_none()? => {}
        other => other?,
    }
    let clear = libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong;
    // SAFETY: prctl with plain integers.
    let cleared = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, clear, 0, 0, 0) };
    super::check(cleared.into())?;
    let none = [NONE; 2];
    // SAFETY: a version 3 header with two data words, as capset(2) asks; both live over the call.
    super::check(unsafe { libc::syscall(libc::SYS_capset, std::ptr::from_ref(&OWN), none.as_ptr()) }).map(drop)
}

/// Whether this process has no capability now.
fn has_none() -> nix::Result<bool> {
    let mut header = OWN;
    let mut now = [NONE; 2];
    // SAFETY: a version 3 header and two data words, as capget(2) asks; the kernel writes no more than these.
    let asked = unsafe { libc::syscall(libc::SYS_capget, std::ptr::from_mut(&mut header), now.as_mut_ptr()) };
    super::check(asked)?;
    Ok(now.iter().all(|data| data.permitted == 0 && data.effective == 0))
}

/// Empties the bounding set, and sees to it that no user id is worth a capability.
fn bound() -> nix::Result<()> {
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
    super::check(unsafe { libc::prctl(libc::PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) }.into()).map(drop)
}
