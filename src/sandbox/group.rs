//! A control group of a sandbox's own (cgroups(7), version 2): limits on memory, processes and CPU for everything inside
//! together, where a place is delegated to this user. Whether there is one is found out by making it.

use crate::base::{Pid, ProcessRecord};
use crate::policy::Limits;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What our groups are called: this, the launcher's pid and start, and a number.
const PREFIX: &str = "pinfold-";
/// Looks at whether the kernel has let a killed group go, a millisecond apart.
const LOOKS: u32 = 200;
/// Microseconds of one period of CPU time, the kernel's default.
const PERIOD: u64 = 100_000;

/// A group; dropped, everything in it has ended and it is gone.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    file: OwnedFd,
}

/// Why none can be had here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoGroup {
    #[error("no version 2 control groups are mounted")]
    NotMounted,
    #[error("the controller `{controller}` is not delegated to {place}")]
    NoController { controller: &'static str, place: String },
    #[error("{what} failed ({errno})")]
    Refused { what: String, errno: Errno },
}

/// Files of a group and what stands in them, for a set of limits.
pub fn settings(limits: &Limits) -> Vec<(&'static str, &'static str, String)> {
    let memory = limits.memory.map(|bytes| ("memory", "memory.max", bytes.to_string()));
    let swap = limits.memory.map(|_| ("memory", "memory.swap.max", "0".to_owned()));
    let pids = limits.processes.map(|most| ("pids", "pids.max", most.to_string()));
    let quota = |milli: u64| (milli.saturating_mul(PERIOD) / 1000).max(1000);
    let cpu = limits
        .cpu
        .map(|milli| ("cpu", "cpu.max", format!("{} {PERIOD}", quota(milli))));
    [memory, swap, pids, cpu].into_iter().flatten().collect()
}

impl Group {
    /// Makes one with these limits: beside our own group, else below it.
    pub fn make(limits: &Limits) -> Result<Group, NoGroup> {
        let mut last = NoGroup::NotMounted;
        for place in places() {
            sweep(&place);
            match Group::below(&place, limits) {
                Ok(group) => return Ok(group),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    /// Makes one in this group.
    pub fn below(place: &Path, limits: &Limits) -> Result<Group, NoGroup> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let settings = settings(limits);
        for (controller, _, _) in &settings {
            delegate(place, controller)?;
        }
        let own = ProcessRecord::current().map_err(|_| NoGroup::NotMounted)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = place.join(format!("{PREFIX}{}-{}-{number}", own.pid, own.start_ticks));
        fs::create_dir(&folder).map_err(refused(format!("making a group in {}", place.display())))?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let opened = nix::fcntl::open(&folder, flags, Mode::empty());
        let group = match opened {
            Ok(file) => Group { folder, file },
            Err(errno) => {
                let _ = fs::remove_dir(&folder);
                let what = "opening the new group".to_owned();
                return Err(NoGroup::Refused { what, errno });
            }
        };
        for (_, name, value) in settings {
            let written = fs::write(group.folder.join(name), &value);
            // A kernel that does not account for swap has no such file, and no swap to limit.
            let is_absent = written
                .as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            if !(is_absent && name == "memory.swap.max") {
                written.map_err(refused(format!("setting {name}")))?;
            }
        }
        Ok(group)
    }

    /// For clone3(2) with CLONE_INTO_CGROUP.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Moves this process in, for a child that was made without clone3.
    pub fn enter(&self) -> nix::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let members = nix::fcntl::openat(&self.file, "cgroup.procs", flags, Mode::empty())?;
        nix::unistd::write(members, b"0").map(drop)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // One more wall (Linux 5.14): whatever is in it ends, wherever it may have got to.
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
        for _ in 0..LOOKS {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.raw_os_error() == Some(Errno::EBUSY as i32) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // What cannot be removed now is removed by a later launch.
                _ => return,
            }
        }
    }
}

fn refused(what: String) -> impl FnOnce(io::Error) -> NoGroup {
    move |error| NoGroup::Refused {
        what,
        errno: error.raw_os_error().map_or(Errno::EIO, Errno::from_raw),
    }
}

/// Has the groups below a place get a controller. A group with processes of its own cannot give any.
fn delegate(place: &Path, controller: &'static str) -> Result<(), NoGroup> {
    let lists = |name: &str| {
        let text = fs::read_to_string(place.join(name)).unwrap_or_default();
        text.split_whitespace().any(|word| word == controller)
    };
    if lists("cgroup.subtree_control") {
        return Ok(());
    }
    let missing = || NoGroup::NoController {
        controller,
        place: place.display().to_string(),
    };
    if !lists("cgroup.controllers") {
        return Err(missing());
    }
    fs::write(place.join("cgroup.subtree_control"), format!("+{controller}")).map_err(|_| missing())
}

/// Removes what launchers left that were killed. A group that still holds somebody cannot be removed.
fn sweep(place: &Path) {
    let Ok(own) = ProcessRecord::current() else { return };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let mut numbers = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .into_iter()
            .flat_map(|rest| rest.split('-'));
        let pid = numbers.next().and_then(|number| Pid::new(number.parse().ok()?));
        let ticks = numbers.next().and_then(|number| number.parse().ok());
        if let (Some(pid), Some(start_ticks)) = (pid, ticks) {
            let owner = ProcessRecord {
                pid,
                start_ticks,
                boot_id: own.boot_id.clone(),
            };
            if owner.liveness() == crate::base::Liveness::Gone {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Where a group may be made: the parent of our own, and our own.
pub fn places() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(own) = own.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return Vec::new();
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some((root, point)) = mounts.lines().find_map(mounted) else {
        return Vec::new();
    };
    let Ok(below) = Path::new("/").join(own).strip_prefix(&root).map(Path::to_owned) else {
        return Vec::new();
    };
    let parent = below.parent().map(|parent| point.join(parent));
    parent.into_iter().chain([point.join(&below)]).collect()
}

/// The root and the place of a mount of version 2, of a line of mountinfo (proc_pid_mountinfo(5)).
fn mounted(line: &str) -> Option<(PathBuf, PathBuf)> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    (after.split(' ').next() == Some("cgroup2")).then(|| (root.into(), point.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_files_of_a_group() {
        let limits = Limits {
            memory: Some(1 << 30),
            processes: Some(64),
            cpu: Some(1500),
            ..Limits::default()
        };
        let settings = settings(&limits);
        let files: Vec<_> = settings
            .iter()
            .map(|(_, file, value)| (*file, value.as_str()))
            .collect();
        assert_eq!(
            files,
            [
                ("memory.max", "1073741824"),
                ("memory.swap.max", "0"),
                ("pids.max", "64"),
                ("cpu.max", "150000 100000")
            ]
        );
    }

    #[test]
    fn a_mount_of_version_2_is_found_by_its_type() {
        let line = "30 24 0:26 /a /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        assert_eq!(mounted(line), Some(("/a".into(), "/sys/fs/cgroup/unified".into())));
        assert_eq!(
            mounted("30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"),
            None
        );
    }

    #[test]
    fn a_folder_that_is_no_group_gives_no_limit() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits {
            memory: Some(1),
            ..Limits::default()
        };
        let none = Group::below(folder.path(), &limits).unwrap_err();
        assert!(
            matches!(
                none,
                NoGroup::NoController {
                    controller: "memory",
                    ..
                }
            ),
            "{none}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_group_is_made_and_goes_and_what_the_dead_left_is_swept() {
        // Where this user may make one: root on most machines, anybody in a delegated place.
        let Some((place, group)) = places().into_iter().find_map(|place| {
            let group = Group::below(&place, &Limits::default()).ok()?;
            Some((place, group))
        }) else {
            return;
        };
        let folder = group.folder().to_owned();
        assert!(folder.join("cgroup.procs").exists());
        sweep(&place);
        assert!(folder.exists(), "it belongs to somebody who lives");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(folder.join("cgroup.procs"), child.id().to_string()).unwrap();
        drop(group);
        assert!(!folder.exists());
        assert!(!child.wait().unwrap().success(), "it ends with its group");
        let left = place.join(format!("{PREFIX}{}-1-0", i32::MAX - 1));
        fs::create_dir(&left).unwrap();
        sweep(&place);
        assert!(!left.exists());
    }
}
