//! What the supervisor may make or change for a caller: what stands where the policy grants writing.

use super::known::device_of;
use crate::base::AbsPath;
use nix::errno::Errno;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// Folders that are granted for writing, with all that is below them. Empty in full mode, where nothing is made on behalf.
#[derive(Debug, Default)]
pub struct Writable(pub Vec<AbsPath>);

impl Writable {
    /// Refuses an open file or folder that does not stand where writing is granted.
    pub fn permit(&self, file: &OwnedFd) -> Result<(), Errno> {
        // A path of another process's mounts may read like one that is granted here.
        device_of(file, "/proc/self/mountinfo")?;
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let path = std::fs::read_link(link).map_err(|_| Errno::EACCES)?;
        let path = AbsPath::new(path).map_err(|_| Errno::EACCES)?;
        match self.0.iter().any(|granted| path.is_within(granted)) {
            true => Ok(()),
            false => Err(Errno::EACCES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Writable;
    use crate::base::AbsPath;
    use nix::errno::Errno;
    use nix::fcntl::OFlag;
    use nix::sys::stat::Mode;

    #[test]
    fn a_folder_is_judged_by_where_it_is_and_not_by_how_it_was_reached() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("granted/below")).unwrap();
        std::fs::create_dir(at("other")).unwrap();
        std::os::unix::fs::symlink(at("other"), at("granted/link")).unwrap();
        let writable = Writable(vec![AbsPath::new(at("granted")).unwrap()]);
        let permit = |name: &str| writable.permit(&nix::fcntl::open(&at(name), OFlag::O_PATH, Mode::empty()).unwrap());
        assert_eq!(permit("granted"), Ok(()));
        assert_eq!(permit("granted/below"), Ok(()));
        assert_eq!(permit("other"), Err(Errno::EACCES));
        assert_eq!(permit("granted/link"), Err(Errno::EACCES));
        std::fs::rename(at("granted/below"), at("other/below")).unwrap();
        assert_eq!(permit("other/below"), Err(Errno::EACCES));
        assert_eq!(
            Writable::default().permit(&nix::fcntl::open("/", OFlag::O_PATH, Mode::empty()).unwrap()),
            Err(Errno::EACCES)
        );
    }
}
