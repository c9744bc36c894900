//! Which socket files belong to sockets of the sandbox: asked of the kernel, in the sandbox's own network namespace
//! (sock_diag(7)). A socket that the host bound is in the host's namespace, wherever its file lies.

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use std::os::fd::{AsRawFd, OwnedFd};

/// A socket file: the file system's device number as the kernel has it (20 bits of minor), and the low 32 bits of the
/// inode number, which is all that sock_diag tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const SHOW_NAME: u32 = 1;
const SHOW_FILE: u32 = 2;
const ATTRIBUTE_NAME: u16 = 0;
const ATTRIBUTE_FILE: u16 = 1;
/// Room for one part of an answer; the kernel makes none longer.
const PART: usize = 32 << 10;

/// A Unix socket that is bound to something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The number by which its open files are known (`socket:[ino]`).
    pub ino: u32,
    pub file: Option<SocketFile>,
    /// An abstract name, without its leading NUL.
    pub name: Option<Vec<u8>>,
}

/// Every bound Unix socket of the namespace of `diag`. `ENOENT`: this kernel cannot tell.
pub fn bound(diag: &OwnedFd) -> Result<Vec<Bound>, Errno> {
    let mut all = Vec::new();
    ask(diag, &request(REQUEST | DUMP, 0), &mut all)?;
    Ok(all)
}

/// The socket with this number, if it is there and bound.
pub fn one(diag: &OwnedFd, ino: u32) -> Result<Option<Bound>, Errno> {
    let mut found = Vec::new();
    match ask(diag, &request(REQUEST, ino), &mut found) {
        Ok(()) => Ok(found.pop().filter(|bound| bound.ino == ino)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn ask(diag: &OwnedFd, request: &[u8], found: &mut Vec<Bound>) -> Result<(), Errno> {
    let raw = diag.as_raw_fd();
    send(raw, request, MsgFlags::empty())?;
    let mut buffer = vec![0; PART];
    loop {
        let length = match recv(raw, &mut buffer, MsgFlags::empty()) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        if read_part(buffer.get(..length).unwrap_or_default(), found)? == Part::Last {
            return Ok(());
        }
    }
}

/// Unix sockets in every state with their names and files, or the one with this number (linux/unix_diag.h).
fn request(flags: u16, ino: u32) -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[0..4].copy_from_slice(&40_u32.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[16] = 1; // AF_UNIX
    bytes[20..24].copy_from_slice(&u32::MAX.to_ne_bytes());
    bytes[24..28].copy_from_slice(&ino.to_ne_bytes());
    bytes[28..32].copy_from_slice(&(SHOW_NAME | SHOW_FILE).to_ne_bytes());
    // Any cookie.
    bytes[32..40].copy_from_slice(&u64::MAX.to_ne_bytes());
    bytes
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    More,
    Last,
}

/// Reads the messages of one datagram.
fn read_part(mut bytes: &[u8], found: &mut Vec<Bound>) -> Result<Part, Errno> {
    let mut part = Part::Last;
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
            SOCK_DIAG_BY_FAMILY => {
                found.extend(socket(message)?);
                // A single answer is not followed by a last one.
                if half(bytes, 6)? & MULTI != 0 {
                    part = Part::More;
                }
            }
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(part)
}

/// Part of an answer in several messages (NLM_F_MULTI).
const MULTI: u16 = 2;

/// One socket with what it is bound to; nothing for one that is not.
fn socket(message: &[u8]) -> Result<Option<Bound>, Errno> {
    let mut bound = Bound {
        ino: word(message, 4)?,
        file: None,
        name: None,
    };
    let mut attributes = message.get(MESSAGE..).unwrap_or_default();
    while attributes.len() >= 4 {
        let length = usize::from(half(attributes, 0)?);
        match half(attributes, 2)? {
            ATTRIBUTE_FILE => {
                let (ino, dev) = (word(attributes, 4)?, word(attributes, 8)?);
                bound.file = Some(SocketFile { dev, ino });
            }
            ATTRIBUTE_NAME => {
                let name = attributes.get(4..length).ok_or(Errno::EBADMSG)?;
                bound.name = name.strip_prefix(&[0]).map(<[u8]>::to_vec);
            }
            _ => {}
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Some(bound).filter(|bound| bound.file.is_some() || bound.name.is_some()))
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
    use super::{Bound, SocketFile, bound, one, read_part};
    use nix::errno::Errno;
    use std::os::fd::AsRawFd as _;
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};

    #[test]
    fn a_bound_socket_is_found_by_its_file_and_a_removed_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        let (major, minor) = (nix::sys::stat::major(meta.dev()), nix::sys::stat::minor(meta.dev()));
        let file = SocketFile::new(major, minor, meta.ino()).unwrap();
        let diag = crate::sandbox::layers::network::diag().unwrap();
        let ask = || bound(&diag).unwrap().into_iter().find(|one| one.file == Some(file));
        let found = ask().unwrap();
        let ino = nix::sys::stat::fstat(&listener).unwrap().st_ino;
        assert_eq!(u64::from(found.ino), ino & 0xffff_ffff);
        assert_eq!(one(&diag, found.ino).unwrap(), Some(found.clone()));
        drop(listener);
        assert_eq!(ask(), None);
        assert_eq!(one(&diag, found.ino).unwrap(), None);
    }

    #[test]
    fn an_abstract_name_is_told_whole() {
        let name = format!("pinfold-diag-{}", std::process::id());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let diag = crate::sandbox::layers::network::diag().unwrap();
        let all = bound(&diag).unwrap();
        assert!(listener.as_raw_fd() > 0 && all.iter().any(|one| one.name.as_deref() == Some(name.as_bytes())));
    }

    #[test]
    fn a_cut_or_lying_answer_is_an_error_and_never_a_file() {
        let mut found: Vec<Bound> = Vec::new();
        let mut lying = [0_u8; 16];
        lying[0..4].copy_from_slice(&400_u32.to_ne_bytes());
        assert_eq!(read_part(&lying, &mut found), Err(Errno::EBADMSG));
        lying[0..4].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(read_part(&lying, &mut found), Err(Errno::EBADMSG));
        let mut refused = [0_u8; 20];
        refused[0..4].copy_from_slice(&20_u32.to_ne_bytes());
        refused[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        refused[16..20].copy_from_slice(&(-2_i32).to_ne_bytes());
        assert_eq!(read_part(&refused, &mut found), Err(Errno::ENOENT));
        assert!(found.is_empty());
    }
}
