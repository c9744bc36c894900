//! What a launch changed that the host may execute or trust, told once at its end and kept.

mod kinds;
#[cfg(test)]
mod tests;
mod walk;

use super::Setting;
use crate::base::{AbsPath, Explain, Fault, Kind};
use crate::policy::{Access, Appearing, Bind, FileKind, Policy};
use crate::sandbox::guard::{Kept, Refused, Tried};
use crate::state::{Record, Store};
use kinds::Kinds;
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::{Duration, Instant};
use walk::{Moment, Seen, walk};

/// The least and the most time that a look after a launch may take; between them a twentieth of the launch's own.
const LEAST: Duration = Duration::from_millis(150);
const MOST: Duration = Duration::from_secs(10);

/// Who waits for the end of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// Nobody in particular.
    None,
    /// Somebody who asked for it, and kills after some seconds.
    Asked,
    /// A multiplexer, which kills what is left in a closed pane after half a second.
    PaneGone,
}

impl Haste {
    /// From the signal that ended the launch.
    pub fn of(signal: Option<Signal>) -> Haste {
        match signal {
            None => Haste::None,
            Some(Signal::SIGHUP) => Haste::PaneGone,
            Some(_) => Haste::Asked,
        }
    }

    fn most(self) -> Duration {
        match self {
            Haste::None => MOST,
            Haste::Asked => Duration::from_secs(1),
            Haste::PaneGone => Duration::from_millis(50),
        }
    }
}
/// Executable files of one folder that are told one by one.
const SINGLE: usize = 3;

/// One thing that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// A file; or a folder, when there are too many in it to name.
    pub path: AbsPath,
    pub reason: String,
    /// How many files this stands for.
    pub count: usize,
}

/// What is needed to look again at everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    roots: Vec<AbsPath>,
    since: Moment,
    kinds: Kinds,
    /// Folders that were not looked at.
    pub left: usize,
}

/// All that a person should look at before they use the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Changes {
    /// Appeared at a protected path, and moved aside.
    pub refused: Vec<Refused>,
    /// Protected files that something tried to replace.
    pub tried: Vec<Tried>,
    /// Protected files that were replaced from outside, and covered again.
    pub healed: Vec<AbsPath>,
    /// Protected paths that were not guarded.
    pub unguarded: Vec<AbsPath>,
    /// Absent paths were looked at twenty times a second, for want of watches.
    pub polled: bool,
    pub changed: Vec<Change>,
    /// Time ran out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Box<Again>>,
}

impl Changes {
    /// Whether there is anything to tell.
    pub fn is_empty(&self) -> bool {
        *self
            == Changes {
                polled: self.polled,
                ..Changes::default()
            }
    }

    /// Paths to look at.
    pub fn paths(&self) -> Vec<AbsPath> {
        let refused = self.refused.iter().flat_map(|refused| &refused.aside);
        refused
            .chain(self.changed.iter().map(|change| &change.path))
            .cloned()
            .collect()
    }

    /// Looks at everything that was left out for want of time.
    pub fn complete(mut self) -> Changes {
        if let Some(again) = self.unseen.take() {
            let seen = again
                .roots
                .iter()
                .flat_map(|root| walk(root, &again.kinds, again.since, None).seen);
            self.changed = gathered(seen.collect());
        }
        self
    }
}

/// The state before a launch.
pub struct Before {
    again: Again,
    begun: Instant,
    /// Absent paths whose appearing is only told.
    absent: Vec<(AbsPath, String)>,
    /// What stood there and should after it.
    present: Vec<(AbsPath, String)>,
}

impl Before {
    /// Take it before anything untrusted runs.
    pub fn of(policy: &Policy) -> Result<Before, Fault> {
        // Times of files come from the clock's last tick.
        let now = clock_gettime(ClockId::CLOCK_REALTIME_COARSE).map_err(NoClock)?;
        let absent = policy
            .protected
            .iter()
            .filter(|one| one.kind.is_none() && one.appearing == Appearing::Reported);
        let kinds = Kinds::of(policy).map_err(Unread)?;
        let root = policy.root.as_ref();
        let missed = kinds
            .missed()
            .filter_map(|(path, why)| Some((root?.join(path).ok()?, why.to_owned())));
        Ok(Before {
            present: missed.filter(|(path, _)| exists(path)).collect(),
            again: Again {
                roots: roots(policy),
                since: (now.tv_sec(), now.tv_nsec()),
                kinds,
                left: 0,
            },
            begun: Instant::now(),
            absent: absent
                .filter(|one| !exists(&one.path))
                .map(|one| (one.path.clone(), one.reason.clone()))
                .collect(),
        })
    }

    /// Looks at what is different now that nothing of the launch runs any more.
    pub fn after(self, kept: Kept, healed: Vec<AbsPath>, haste: Haste) -> Changes {
        let budget = (LEAST + self.begun.elapsed() / 20).min(haste.most());
        let until = Instant::now() + budget;
        let mut again = self.again;
        let mut seen = Vec::new();
        for root in &again.roots {
            let walked = walk(root, &again.kinds, again.since, Some(until));
            seen.extend(walked.seen);
            again.left += walked.left;
        }
        let gone = self.present.into_iter().filter(|(path, _)| !exists(path));
        let appeared = self.absent.into_iter().filter(|(path, _)| exists(path));
        let one = |(path, reason)| Change { path, reason, count: 1 };
        let mut changed: Vec<Change> = gone.chain(appeared).map(one).collect();
        for change in gathered(seen) {
            if !changed.iter().any(|earlier| change.path.is_within(&earlier.path)) {
                changed.push(change);
            }
        }
        // What was moved aside is told as that.
        let aside = |path: &AbsPath| {
            kept.refused
                .iter()
                .flat_map(|one| &one.aside)
                .any(|aside| path.is_within(aside))
        };
        changed.retain(|change| !aside(&change.path));
        Changes {
            changed,
            healed,
            refused: kept.refused,
            tried: kept.tried,
            unguarded: kept.unguarded,
            polled: kept.polled,
            unseen: (again.left > 0).then(|| Box::new(again)),
        }
    }
}

/// Keeps what a launch without a record changed, by its name. What cannot be kept was told.
pub fn keep(changes: &Changes, name: &str, setting: &Setting) {
    if changes.is_empty() {
        return;
    }
    let bytes = serde_json::to_vec(changes).unwrap_or_default();
    if let Ok(store) = Store::open(&setting.dirs)
        && let Ok(path) = store.logs().changes(name)
        && let Ok(mut file) = store.logs().append(&path)
    {
        let _ = file.write_all(&bytes);
    }
}

/// What was kept of a launch: with its record, or under its own name.
pub fn kept(store: &Store, record: Option<&Record>, name: &str) -> Option<Changes> {
    if let Some(record) = record {
        return serde_json::from_value(record.changes.clone()?).ok();
    }
    let file = std::fs::File::open(store.logs().changes(name).ok()?).ok()?;
    serde_json::from_reader(file).ok()
}

/// The kernel's clock cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the time cannot be read ({0})")]
struct NoClock(nix::errno::Errno);

/// The built-in list cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the list of what the host may execute cannot be read ({0})")]
struct Unread(serde_json::Error);

impl Explain for NoClock {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
}

impl Explain for Unread {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
}

/// The writable folders that are the person's own at their own places: the workspace, and what was granted by name.
fn roots(policy: &Policy) -> Vec<AbsPath> {
    let is_own = |bind: &&Bind| {
        let workspace = bind.origin.source == "workspace" && Some(&bind.target) != policy.root.as_ref();
        bind.kind == FileKind::Dir && bind.access == Access::ReadWrite && bind.source == bind.target && !workspace
    };
    let mut roots: Vec<AbsPath> = Vec::new();
    for bind in policy.binds.iter().filter(is_own) {
        if !roots.iter().any(|root| bind.target.is_within(root)) {
            roots.push(bind.target.clone());
        }
    }
    roots
}

/// One line for each, but many executable files of one folder in one.
fn gathered(seen: Vec<Seen>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut folders: BTreeMap<AbsPath, Vec<AbsPath>> = BTreeMap::new();
    for Seen { path, names, reason } in seen {
        match reason {
            Some(reason) => changes.push(Change { path, reason, count: 1 }),
            None => {
                let up = names.len().saturating_sub(1);
                // The outermost folder below the granted one.
                let folder = path.as_path().ancestors().nth(up).filter(|_| up > 0);
                let folder = folder
                    .and_then(|folder| AbsPath::new(folder).ok())
                    .unwrap_or_else(|| path.clone());
                folders.entry(folder).or_default().push(path);
            }
        }
    }
    const REASON: &str = "can be executed";
    for (folder, paths) in folders {
        let (reason, count) = (REASON.to_owned(), paths.len());
        if count > SINGLE {
            changes.push(Change {
                path: folder,
                reason,
                count,
            });
        } else {
            changes.extend(paths.into_iter().map(|path| Change {
                path,
                reason: REASON.to_owned(),
                count: 1,
            }));
        }
    }
    changes
}

fn exists(path: &AbsPath) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
