//! A protected file that is replaced on the host loses its cover inside. It is put back; whoever inside was quick enough
//! to open the new file ends the launch.

use crate::base::AbsPath;
use crate::sandbox::guard::Mend;
use crate::sandbox::plan::Op;
use crate::sandbox::{Facts, Jailed, mender::Mender};
use crate::verify::{Finding, mounts_of};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// How often, and how long apart, a cover is tried: an editor may need a moment between removing and making a file.
const TRIES: u32 = 40;
const APART: Duration = Duration::from_millis(5);

/// A file inside and on the host.
#[derive(Debug, Clone)]
struct Cover {
    at: AbsPath,
    source: AbsPath,
}

/// What puts covers back in one sandbox.
#[derive(Debug)]
pub struct Healer {
    /// Nothing where no cover can be lost: a process costs a launch some milliseconds.
    mender: Option<Mender>,
    first: i32,
    covers: Vec<Cover>,
    /// Held while covers are put back: two at once would mount two.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The mount of each cover by its place: a file that is renamed takes it along.
    ids: BTreeMap<AbsPath, u64>,
    healed: Vec<AbsPath>,
    times: usize,
    /// Each file that was covered anew, as it was then. Whoever had got at it before can still write to it: nothing inside
    /// may, and the host replaces files, it does not write into them.
    anew: BTreeMap<AbsPath, Seen>,
}

/// A file at one moment. A number is given away again at once, so that a file is known by its birth as well (statx(2));
/// nothing inside can set that, nor when it was changed (ctime).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    dev: u64,
    ino: u64,
    born: Option<SystemTime>,
    changed: (i64, i64),
}

impl Seen {
    fn of(file: &Metadata) -> Seen {
        Seen {
            dev: file.dev(),
            ino: file.ino(),
            born: file.created().ok(),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Whether it is still the same file, and was changed.
    fn changed_since(self, before: Seen) -> bool {
        (self.dev, self.ino, self.born) == (before.dev, before.ino, before.born) && self.changed != before.changed
    }
}

/// What a guard does when it notices that a cover may be gone.
pub fn mend(healer: Option<&Arc<Healer>>) -> Mend {
    let healer = healer.cloned();
    let findings = move || healer.as_ref().map(|healer| healer.heal().findings).unwrap_or_default();
    Box::new(move || match findings().into_iter().next() {
        Some(finding) => Err(finding.problem),
        None => Ok(()),
    })
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Healed {
    pub findings: Vec<Finding>,
    /// How many covers have been put back so far.
    pub times: usize,
}

impl Healer {
    /// For a held sandbox. The caller has one thread.
    pub fn of(jailed: &Jailed) -> nix::Result<Healer> {
        let first = jailed.facts.first.get();
        let covers = covers(&jailed.facts);
        let mut state = State::default();
        for mount in mounts_of(first).unwrap_or_default() {
            if let Some(cover) = covers.iter().find(|cover| cover.at.as_path() == mount.target) {
                state.ids.insert(cover.at.clone(), mount.id);
            }
        }
        Ok(Healer {
            mender: (!covers.is_empty()).then(|| Mender::open(jailed)).transpose()?,
            first,
            covers,
            state: Mutex::new(state),
        })
    }

    /// Covers what lost its cover, and says what is wrong nevertheless. What cannot be covered is found by verification.
    pub fn heal(&self) -> Healed {
        let Ok(mut state) = self.state.lock() else {
            return Healed::default();
        };
        let mut findings = written(&state.anew);
        let mut mounts = mounts_of(self.first).unwrap_or_default();
        // Nothing is mounted where nothing runs any more.
        for cover in self
            .covers
            .iter()
            .take(if mounts.is_empty() { 0 } else { self.covers.len() })
        {
            if mounts.iter().any(|mount| mount.target == cover.at.as_path()) {
                continue;
            }
            let strayed = state.ids.get(&cover.at);
            let strayed = strayed.and_then(|id| mounts.iter().find(|mount| mount.id == *id));
            if let Some(Ok(stray)) = strayed.map(|mount| AbsPath::new(&mount.target)) {
                // What cannot be taken away is found by verification.
                let _ = self.mender.as_ref().map(|mender| mender.uncover(&stray));
            }
            if self.cover(cover) {
                findings.extend(self.holders(cover));
                findings.extend(named_twice(cover));
                if let Ok(file) = std::fs::symlink_metadata(&cover.source) {
                    state.anew.insert(cover.source.clone(), Seen::of(&file));
                }
                mounts = mounts_of(self.first).unwrap_or_default();
                if let Some(mount) = mounts.iter().rfind(|mount| mount.target == cover.at.as_path()) {
                    state.ids.insert(cover.at.clone(), mount.id);
                }
                state.times += 1;
                if !state.healed.contains(&cover.at) {
                    state.healed.push(cover.at.clone());
                }
            }
        }
        Healed {
            findings,
            times: state.times,
        }
    }

    /// Nothing of the sandbox runs any more, so no cover is needed: what waits for that may end meanwhile.
    pub fn rest(&self) {
        self.mender.iter().for_each(Mender::end);
    }

    /// What was replaced from outside so far.
    pub fn healed(&self) -> Vec<AbsPath> {
        self.state.lock().map(|state| state.healed.clone()).unwrap_or_default()
    }

    fn cover(&self, cover: &Cover) -> bool {
        for _ in 0..TRIES {
            if self
                .mender
                .as_ref()
                .is_some_and(|mender| mender.cover(&cover.at).is_ok())
            {
                return true;
            }
            if !Path::new("/proc").join(self.first.to_string()).exists() {
                return false;
            }
            std::thread::sleep(APART);
        }
        false
    }

    /// Processes inside that have the file open by another way than its cover.
    fn holders(&self, cover: &Cover) -> Vec<Finding> {
        let (Ok(file), Ok(mounts)) = (std::fs::symlink_metadata(&cover.source), mounts_of(self.first)) else {
            return Vec::new();
        };
        let id = mounts
            .iter()
            .rfind(|mount| mount.target == cover.at.as_path())
            .map(|mount| mount.id);
        let own = namespace(self.first);
        let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let inside = pids.filter(|pid| *pid != self.first && own.is_some() && namespace(*pid) == own);
        let holds = inside.filter(|pid| holds(*pid, &file, id));
        let problem = format!("the new {} was opened before it was covered", cover.at);
        holds
            .map(|pid| Finding {
                check: "mounts",
                pid: crate::base::Pid::new(pid),
                problem: problem.clone(),
            })
            .collect()
    }
}

/// The files that a mount covers; what became of a folder that was replaced nobody can say, so that ends the launch.
fn covers(facts: &Facts) -> Vec<Cover> {
    let covers = facts.ops.iter().filter_map(|op| match op {
        Op::Protect { source, at } => Some(Cover {
            at: at.clone(),
            source: source.clone(),
        }),
        _ => None,
    });
    let is_file = |cover: &Cover| std::fs::symlink_metadata(&cover.source).is_ok_and(|found| found.is_file());
    covers.filter(is_file).collect()
}

/// Files that were covered anew and have been written to since, through something that was opened before.
fn written(anew: &BTreeMap<AbsPath, Seen>) -> Vec<Finding> {
    let changed = anew.iter().filter(|(path, before)| {
        let now = std::fs::symlink_metadata(path);
        // Without a name it is being replaced this moment: the old one shows a little longer than it is there.
        now.is_ok_and(|now| now.nlink() > 0 && Seen::of(&now).changed_since(**before))
    });
    let problem = |path: &AbsPath| format!("{path} was written to after it was covered anew");
    changed.map(|(path, _)| finding(problem(path))).collect()
}

/// A second name is a way past the cover.
fn named_twice(cover: &Cover) -> Option<Finding> {
    let file = std::fs::symlink_metadata(&cover.source).ok()?;
    (file.nlink() > 1).then(|| finding(format!("the new {} got a second name before it was covered", cover.at)))
}

fn finding(problem: String) -> Finding {
    Finding {
        check: "mounts",
        pid: None,
        problem,
    }
}

fn namespace(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// Whether a process has the file open through another mount than the cover, or mapped to write to it.
fn holds(pid: i32, file: &Metadata, cover: Option<u64>) -> bool {
    let folder = format!("/proc/{pid}/fd");
    let Ok(open) = std::fs::read_dir(&folder) else {
        // One that has ended holds nothing; one that cannot be looked at may.
        return namespace(pid).is_some();
    };
    let through = |fd: &std::ffi::OsStr| {
        let info = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("fdinfo").join(fd)).ok()?;
        info.lines()
            .find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse::<u64>().ok())
    };
    let is_file = |fd: &std::ffi::OsStr| {
        std::fs::metadata(Path::new(&folder).join(fd))
            .is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()))
    };
    let names = open.flatten().map(|entry| entry.file_name());
    let mut held = names.filter(|fd| is_file(fd) && (cover.is_none() || through(fd) != cover));
    held.next().is_some() || maps(pid, file.ino())
}

/// Whether a shared writable mapping has this inode.
fn maps(pid: i32, inode: u64) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let shared = words
            .get(1)
            .is_some_and(|mode| mode.contains('w') && mode.contains('s'));
        shared && words.get(4).is_some_and(|found| *found == inode.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::{Seen, written};
    use crate::base::AbsPath;

    #[test]
    fn a_write_is_seen_whatever_time_is_set_and_a_replacement_is_no_write() {
        let place = tempfile::tempdir().unwrap();
        let path = AbsPath::new(place.path().canonicalize().unwrap().join("config")).unwrap();
        std::fs::write(&path, "one").unwrap();
        let file = std::fs::metadata(&path).unwrap();
        let anew = [(path.clone(), Seen::of(&file))].into();
        assert!(written(&anew).is_empty());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let open = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::io::Write::write_all(&mut &open, b"two").unwrap();
        let times = std::fs::FileTimes::new().set_modified(file.modified().unwrap());
        open.set_times(times).unwrap();
        assert_eq!(written(&anew).len(), 1);
        std::fs::write(place.path().join("new"), "three").unwrap();
        std::fs::rename(place.path().join("new"), &path).unwrap();
        assert!(written(&anew).is_empty());
    }
}
