//! Which sockets are the sandbox's own, and which of the host's are granted.

use super::caller::Caller;
use super::diag::{self, Bound, SocketFile};
use crate::base::AbsPath;
use crate::sandbox::inside::start_of;
use crate::sys::object::{Object, object_of};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::collections::HashMap;
use std::fmt;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// How a socket of the sandbox's own is told from one of the host.
pub enum Inside {
    /// By its network namespace: every socket of it was made inside.
    Namespace,
    /// By who holds it open: any of these processes of the sandbox. For a sandbox on the host's network.
    Held(Box<dyn Fn() -> Vec<i32> + Send + Sync>),
}

impl fmt::Debug for Inside {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Inside::Namespace => "Namespace",
            Inside::Held(_) => "Held",
        })
    }
}

/// What a connect leads to.
pub enum Target<'a> {
    File(SocketFile),
    Name(&'a [u8]),
}

/// Answers whether a socket may be reached.
#[derive(Debug)]
pub struct Known {
    granted: Vec<SocketFile>,
    inside: Inside,
    asked: Mutex<Asked>,
}

/// Questions to the kernel, one at a time, and what is remembered of the answers.
#[derive(Debug)]
struct Asked {
    diag: OwnedFd,
    /// The socket that a file was found to belong to. It is asked for again every time: by its number, which is cheap,
    /// and not by going through all.
    files: HashMap<SocketFile, u32>,
    /// Who of the sandbox was found to hold a socket open. It is looked at again every time, and at nobody else.
    holders: HashMap<u32, Holder>,
    /// File systems' own device numbers, by mount and by the number that stat shows.
    devices: HashMap<(u64, u64), (u64, u64)>,
}

/// One open socket of a process of the sandbox, which stays one as long as it lives: nothing leaves it.
#[derive(Debug)]
struct Holder {
    pid: i32,
    start: u64,
    /// Its descriptor, as `/proc/PID/fd/N`.
    link: PathBuf,
}

/// Holders that are remembered; then they are found anew.
const MOST_HOLDERS: usize = 1024;

impl Known {
    /// From what the policy grants, and a sock_diag socket of the sandbox's network namespace.
    pub fn new(granted: &[AbsPath], inside: Inside, diag: OwnedFd) -> Result<Known, Errno> {
        let asked = Asked {
            diag,
            files: HashMap::new(),
            holders: HashMap::new(),
            devices: HashMap::new(),
        };
        Ok(Known {
            granted: granted.iter().map(granted_file).collect::<Result<_, _>>()?,
            inside,
            asked: Mutex::new(asked),
        })
    }

    /// Which file an object of the caller's view is.
    pub fn file(&self, caller: &Caller, pinned: &OwnedFd, object: &Object) -> Result<SocketFile, Errno> {
        let key = (object.mount, object.dev);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let device = match asked.devices.get(&key).filter(|_| object.mount != 0) {
            Some(device) => *device,
            None => device_of(pinned, &caller.mountinfo())?,
        };
        if object.mount != 0 {
            asked.devices.insert(key, device);
        }
        SocketFile::new(device.0, device.1, object.ino).ok_or(Errno::EACCES)
    }

    /// Refuses what is neither granted nor the sandbox's own.
    pub fn permit(&self, target: &Target<'_>) -> Result<(), Errno> {
        if let Target::File(file) = target {
            if self.granted.contains(file) {
                return Ok(());
            }
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let sockets = asked.bound_to(target)?;
        let own = match &self.inside {
            Inside::Namespace => !sockets.is_empty(),
            Inside::Held(processes) => asked.is_held(&sockets, processes),
        };
        if own { Ok(()) } else { Err(Errno::EACCES) }
    }
}

impl Asked {
    /// Whether a process of the sandbox has one of these open.
    fn is_held(&mut self, sockets: &[u32], processes: &dyn Fn() -> Vec<i32>) -> bool {
        let known = |ino: &u32| self.holders.get(ino).is_some_and(|holder| holder.still_holds(*ino));
        if sockets.iter().any(known) {
            return true;
        }
        if sockets.is_empty() {
            return false;
        }
        let Some((ino, holder)) = Holder::find(&processes(), sockets) else {
            return false;
        };
        if self.holders.len() >= MOST_HOLDERS {
            self.holders.clear();
        }
        self.holders.insert(ino, holder);
        true
    }

    /// The sockets that are bound to this now.
    fn bound_to(&mut self, target: &Target<'_>) -> Result<Vec<u32>, Errno> {
        if let Target::File(file) = target {
            if let Some(ino) = self.files.get(file) {
                let still = diag::one(&self.diag, *ino)?.is_some_and(|bound| bound.file == Some(*file));
                if still {
                    return Ok(vec![*ino]);
                }
            }
        }
        let all = diag::bound(&self.diag)?;
        let is_it = |bound: &&Bound| match target {
            Target::File(file) => bound.file == Some(*file),
            Target::Name(name) => bound.name.as_deref() == Some(*name),
        };
        let found: Vec<u32> = all.iter().filter(is_it).map(|bound| bound.ino).collect();
        if let (Target::File(file), Some(ino)) = (target, found.first()) {
            // What is gone is forgotten, so that this does not grow with every socket that there ever was.
            self.files.retain(|_, ino| all.iter().any(|bound| bound.ino == *ino));
            self.files.insert(*file, *ino);
        }
        Ok(found)
    }
}

/// What /proc/PID/fd shows of a socket.
fn shown(ino: u32) -> String {
    format!("socket:[{ino}]")
}

impl Holder {
    /// The one of these processes that has one of these sockets open, and which socket that is.
    fn find(processes: &[i32], sockets: &[u32]) -> Option<(u32, Holder)> {
        let wanted: Vec<(u32, String)> = sockets.iter().map(|ino| (*ino, shown(*ino))).collect();
        let holder = |pid: i32| {
            let start = start_of(pid)?;
            let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
            open.map(|entry| entry.path()).find_map(|link| {
                let to = std::fs::read_link(&link).ok()?;
                let (ino, _) = wanted.iter().find(|(_, wanted)| to.as_os_str() == wanted.as_str())?;
                Some((*ino, Holder { pid, start, link }))
            })
        };
        processes
            .iter()
            .copied()
            .filter(|_| !wanted.is_empty())
            .find_map(holder)
    }

    /// Whether the same process still has it open.
    fn still_holds(&self, ino: u32) -> bool {
        let holds = std::fs::read_link(&self.link).is_ok_and(|to| to.as_os_str() == shown(ino).as_str());
        holds && start_of(self.pid) == Some(self.start)
    }
}

/// The file that a granted path names now; it was bound into the sandbox a moment ago.
fn granted_file(path: &AbsPath) -> Result<SocketFile, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let file = nix::fcntl::open(path.as_path(), flags, Mode::empty())?;
    let object = object_of(file.as_fd()).map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
    let (major, minor) = device_of(&file, "/proc/self/mountinfo")?;
    SocketFile::new(major, minor, object.ino).ok_or(Errno::EACCES)
}

/// The device number of the file system that this is on. stat's is not the file system's own everywhere (btrfs gives each
/// subvolume one), but mountinfo's is, and that is what sock_diag compares.
pub(super) fn device_of(pinned: &OwnedFd, mountinfo: &str) -> Result<(u64, u64), Errno> {
    let info = std::fs::read(format!("/proc/self/fdinfo/{}", pinned.as_raw_fd())).map_err(|_| Errno::EBADF)?;
    let id = info
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"mnt_id:"));
    let id = id.ok_or(Errno::EBADF)?.trim_ascii().to_vec();
    let mounts = std::fs::read(mountinfo).map_err(|_| Errno::ESRCH)?;
    let lines = mounts
        .split(|byte| *byte == b'\n')
        .map(|line| line.split(|byte| *byte == b' '));
    let mut fields = lines.map(|mut fields| (fields.next(), fields.nth(1)));
    let device = fields.find_map(|(mount, device)| device.filter(|_| mount == Some(id.as_slice())));
    let device = device
        .and_then(|device| std::str::from_utf8(device).ok())
        .and_then(|device| device.split_once(':'));
    let (major, minor) = device.ok_or(Errno::EACCES)?;
    let number = |text: &str| text.parse().map_err(|_| Errno::EACCES);
    Ok((number(major)?, number(minor)?))
}

#[cfg(test)]
mod tests {
    use super::{Inside, Known, Target};
    use crate::base::AbsPath;
    use crate::sandbox::mediate::caller::Caller;
    use crate::sandbox::mediate::diag::SocketFile;
    use nix::errno::Errno;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    fn known(granted: &[&Path], inside: Inside) -> Known {
        let granted: Vec<AbsPath> = granted.iter().map(|path| AbsPath::new(path).unwrap()).collect();
        Known::new(&granted, inside, crate::sandbox::layers::network::diag().unwrap()).unwrap()
    }

    fn file(known: &Known, path: &Path) -> SocketFile {
        let pinned = nix::fcntl::open(path, nix::fcntl::OFlag::O_PATH, nix::sys::stat::Mode::empty()).unwrap();
        let object = crate::sys::object::object_of(pinned.as_fd()).unwrap();
        let caller = Caller::new(std::process::id().try_into().unwrap());
        known.file(&caller, &pinned, &object).unwrap()
    }

    #[test]
    fn a_socket_needs_a_grant_or_a_maker_inside() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        let (listener, granted) = (
            UnixListener::bind(at("live")).unwrap(),
            UnixListener::bind(at("granted")).unwrap(),
        );
        drop(UnixListener::bind(at("dead")).unwrap());
        let own = i32::try_from(std::process::id()).unwrap();
        let by_namespace = known(&[], Inside::Namespace);
        let by_holder = known(&[], Inside::Held(Box::new(move || vec![own])));
        let nobodys = known(&[&at("granted")], Inside::Held(Box::new(|| vec![1_999_999_999])));
        for _ in 0..2 {
            for known in [&by_namespace, &by_holder] {
                assert_eq!(known.permit(&Target::File(file(known, &at("live")))), Ok(()));
                assert_eq!(
                    known.permit(&Target::File(file(known, &at("dead")))),
                    Err(Errno::EACCES)
                );
                assert_eq!(known.permit(&Target::Name(b"no such name")), Err(Errno::EACCES));
            }
            assert_eq!(
                nobodys.permit(&Target::File(file(&nobodys, &at("live")))),
                Err(Errno::EACCES)
            );
            assert_eq!(nobodys.permit(&Target::File(file(&nobodys, &at("granted")))), Ok(()));
        }
        drop(listener);
        for known in [&by_namespace, &by_holder] {
            let gone = Target::File(file(known, &at("live")));
            assert_eq!(known.permit(&gone), Err(Errno::EACCES), "remembered too long");
        }
        drop(granted);
    }
}
