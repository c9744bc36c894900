//! Which socket files belong to sockets of the sandbox: asked of the kernel, in the sandbox's own network namespace
//! (sock_diag(7)). A socket that the host bound is in the host's namespace, wherever its file lies.

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};

/// A socket file: the file system's device number as the kernel has it (20 bits of minor), and the low 32 bits of the
/// inode number, which is all that sock_diag tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketFile {
    pub dev: u32,
    pub ino: u32,
}

impl SocketFile {
    /// From a device's major and minor number and a whole inode number.
    pub fn new(major: u64, minor: u64, ino: u64) -> Option<SocketFile> {
        let dev = u32::try_from(major << 20 | minor).ok()?;
        u32::try_from(ino & 0xffff_ffff).ok().map(|ino| SocketFile { dev, ino })
    }
}

const HEADER: usize = 16;
const MESSAGE: usize = 16;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_AND_DUMP: u16 = 0x301;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const SHOW_FILE: u32 = 2;
const ATTRIBUTE_FILE: u16 = 1;

/// Every socket file that a socket of the namespace of `diag` is bound to. `ENOENT`: this kernel cannot tell.
pub fn bound(diag: &OwnedFd) -> Result<BTreeSet<SocketFile>, Errno> {
    let raw = diag.as_raw_fd();
    send(raw, &request(), MsgFlags::empty())?;
    let mut files = BTreeSet::new();
    let mut buffer = vec![0; 32 << 10];
    loop {
        let length = match recv(raw, &mut buffer, MsgFlags::empty()) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        if read_part(buffer.get(..length).unwrap_or_default(), &mut files)? == Part::Last {
            return Ok(files);
        }
    }
}

/// A dump of all Unix sockets in every state, with their files (linux/unix_diag.h).
fn request() -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[0..4].copy_from_slice(&40_u32.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_AND_DUMP.to_ne_bytes());
    bytes[16] = 1; // AF_UNIX
    bytes[20..24].copy_from_slice(&u32::MAX.to_ne_bytes());
    bytes[28..32].copy_from_slice(&SHOW_FILE.to_ne_bytes());
    bytes
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    More,
    Last,
}

/// Reads the messages of one datagram.
fn read_part(mut bytes: &[u8], files: &mut BTreeSet<SocketFile>) -> Result<Part, Errno> {
    while bytes.len() >= HEADER {
        let length = usize::try_from(word(bytes, 0)?).map_err(|_| Errno::EBADMSG)?;
        let kind = half(bytes, 4)?;
        let message = bytes.get(HEADER..length).ok_or(Errno::EBADMSG)?;
        match kind {
            DONE => return Ok(Part::Last),
            ERROR => {
                let errno = i32::from_ne_bytes(word(message, 0)?.to_ne_bytes());
                return Err(Errno::from_raw(errno.wrapping_neg()));
            }
            SOCK_DIAG_BY_FAMILY => files.extend(file_of(message.get(MESSAGE..).unwrap_or_default())?),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Part::More)
}

/// The file among a socket's attributes.
fn file_of(mut attributes: &[u8]) -> Result<Option<SocketFile>, Errno> {
    while attributes.len() >= 4 {
        let length = usize::from(half(attributes, 0)?);
        if half(attributes, 2)? == ATTRIBUTE_FILE {
            return Ok(Some(SocketFile {
                ino: word(attributes, 4)?,
                dev: word(attributes, 8)?,
            }));
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(None)
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Errno> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|bytes| u32::from_ne_bytes(*bytes)).ok_or(Errno::EBADMSG)
}

fn half(bytes: &[u8], at: usize) -> Result<u16, Errno> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|bytes| u16::from_ne_bytes(*bytes)).ok_or(Errno::EBADMSG)
}

#[cfg(test)]
mod tests {
    use super::{SocketFile, bound, read_part};
    use nix::errno::Errno;
    use std::collections::BTreeSet;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_bound_socket_is_found_by_its_file_and_a_removed_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        let (major, minor) = (nix::sys::stat::major(meta.dev()), nix::sys::stat::minor(meta.dev()));
        let file = SocketFile::new(major, minor, meta.ino()).unwrap();
        let ask = || bound(&crate::sandbox::layers::network::diag().unwrap()).unwrap();
        assert!(ask().contains(&file));
        drop(listener);
        assert!(!ask().contains(&file));
    }

    #[test]
    fn a_cut_or_lying_answer_is_an_error_and_never_a_file() {
        let mut files = BTreeSet::new();
        let mut lying = [0_u8; 16];
        lying[0..4].copy_from_slice(&400_u32.to_ne_bytes());
        assert_eq!(read_part(&lying, &mut files), Err(Errno::EBADMSG));
        let mut refused = [0_u8; 20];
        refused[0..4].copy_from_slice(&20_u32.to_ne_bytes());
        refused[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        refused[16..20].copy_from_slice(&(-2_i32).to_ne_bytes());
        assert_eq!(read_part(&refused, &mut files), Err(Errno::ENOENT));
        assert!(files.is_empty());
    }
}
