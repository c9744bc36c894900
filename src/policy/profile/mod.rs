//! Profiles as written: parsed, checked for unknown keys, and merged over what they extend.

mod chain;
mod error;
mod groups;
mod keys;
mod listed;
mod parse;
mod reader;
mod schema;
mod shipped;
mod strict;
#[cfg(test)]
mod tests;

pub use chain::{load, written};
pub use error::ProfileError;
pub use schema::{reference, schema};
pub use shipped::shipped_names;

use super::frozen::{Access, Appearing, Datagrams, Limits, Note, Origin, Promise};
use crate::base::Port;

/// What the profile gives of the workspace root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkdirAccess {
    None,
    Granted(Access),
}

/// One entry of a list, with where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As written: a path with variables, a rule, a pattern.
    pub text: String,
    /// Whether its absence on the host is expected.
    pub optional: bool,
    pub origin: Origin,
}

/// What may stand at a granted path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Any,
    /// `*_file` keys: never a folder.
    File,
}

/// A protected path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded {
    pub entry: Entry,
    pub appearing: Appearing,
}

/// A granted path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub entry: Entry,
    pub access: Access,
    pub shape: Shape,
}

/// Which sockets a socket entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// The one at the path.
    One,
    /// Those directly in the folder when the sandbox starts.
    Folder,
}

/// A private folder in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scratch {
    pub at: Entry,
    /// Bytes; the profile's `scratch_size` if nothing.
    pub size: Option<u64>,
    /// Mode 1777 instead of 0700.
    pub shared: bool,
}

/// What is mounted at a place of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mounted {
    /// A host folder or file; with `create`, a folder that the caller makes before the launch.
    Path { from: String, access: Access, create: bool },
    /// A sealed folder that holds the host folder's entries, read-only, and empty files.
    Entries {
        of: String,
        only: Option<Vec<String>>,
        except: Vec<String>,
        empty_files: Vec<String>,
    },
}

/// One entry of `pinfold.mounts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it stands inside.
    pub at: Entry,
    pub mounted: Mounted,
}

/// A package cache of the host, shown below a private layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Where tools inside look for it.
    pub at: Entry,
    /// Where the host has it; the same place if nothing.
    pub from: Option<String>,
}

/// A variable that a profile sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVariable {
    pub name: String,
    pub value: String,
    pub origin: Origin,
}

/// A profile merged over everything that it extends, still as written: no path resolved, no default filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// The name by which it was asked for.
    pub name: String,
    /// The profiles that it was made of, the outermost parent first.
    pub chain: Vec<String>,
    pub description: Option<String>,
    pub workdir: Option<WorkdirAccess>,
    /// Read-only, never missed when absent.
    pub system: Vec<Entry>,
    pub grants: Vec<Grant>,
    pub deny: Vec<Entry>,
    /// Sets of paths by name; `load` puts what they hold among the grants and the denies.
    pub groups: Vec<Entry>,
    /// Names of groups that a parent has and this profile takes out.
    pub excluded: Vec<String>,
    pub sockets: Vec<(Sockets, Entry)>,
    /// Whether Unix datagram sockets can be made.
    pub unix_datagrams: Option<Datagrams>,
    pub block: Option<bool>,
    pub allow_domains: Vec<Entry>,
    pub deny_domains: Vec<Entry>,
    pub open_ports: Vec<(Port, Origin)>,
    pub listen_ports: Vec<(Port, Origin)>,
    pub allow_vars: Vec<Entry>,
    pub deny_vars: Vec<Entry>,
    pub set_vars: Vec<SetVariable>,
    /// Each as `name=address:port`.
    pub services: Vec<Entry>,
    pub mounts: Vec<Mount>,
    pub caches: Vec<Cache>,
    /// Bytes of memory for what is written to all caches.
    pub caches_size: Option<u64>,
    pub scratch: Vec<Scratch>,
    /// Bytes of a scratch folder that names no size.
    pub scratch_size: Option<u64>,
    /// Relative to the workspace root; the reason is the origin's `why`.
    pub protected: Vec<Guarded>,
    /// Relative to the common git folder of a linked worktree.
    pub common_writable: Vec<Entry>,
    /// Keys of git's configuration whose values name programs that git starts by itself; `*` stands for any subsection.
    pub git_programs: Vec<Entry>,
    pub limits: Limits,
    /// Promises that a launch may go without.
    pub allow_missing: Vec<(Promise, Origin)>,
    /// Keys that are not used, with the reason.
    pub notes: Vec<Note>,
}

impl Profile {
    /// This profile over `base`: lists are joined, the base's first; single values are this one's where it has one.
    fn over(self, base: Profile) -> Profile {
        fn join<T>(mut first: Vec<T>, second: Vec<T>) -> Vec<T> {
            first.extend(second);
            first
        }
        Profile {
            name: self.name,
            chain: join(base.chain, self.chain),
            description: self.description,
            workdir: self.workdir.or(base.workdir),
            system: join(base.system, self.system),
            grants: join(base.grants, self.grants),
            deny: join(base.deny, self.deny),
            groups: join(
                base.groups
                    .into_iter()
                    .filter(|group| !self.excluded.contains(&group.text))
                    .collect(),
                self.groups,
            ),
            excluded: self.excluded,
            sockets: join(base.sockets, self.sockets),
            unix_datagrams: self.unix_datagrams.or(base.unix_datagrams),
            block: self.block.or(base.block),
            allow_domains: join(base.allow_domains, self.allow_domains),
            deny_domains: join(base.deny_domains, self.deny_domains),
            open_ports: join(base.open_ports, self.open_ports),
            listen_ports: join(base.listen_ports, self.listen_ports),
            allow_vars: join(base.allow_vars, self.allow_vars),
            deny_vars: join(base.deny_vars, self.deny_vars),
            set_vars: join(base.set_vars, self.set_vars),
            services: join(base.services, self.services),
            mounts: join(base.mounts, self.mounts),
            caches: join(base.caches, self.caches),
            caches_size: self.caches_size.or(base.caches_size),
            scratch: join(base.scratch, self.scratch),
            scratch_size: self.scratch_size.or(base.scratch_size),
            protected: join(base.protected, self.protected),
            common_writable: join(base.common_writable, self.common_writable),
            git_programs: join(base.git_programs, self.git_programs),
            limits: Limits {
                memory: self.limits.memory.or(base.limits.memory),
                cpu: self.limits.cpu.or(base.limits.cpu),
                processes: self.limits.processes.or(base.limits.processes),
                open_files: self.limits.open_files.or(base.limits.open_files),
                address_space: self.limits.address_space.or(base.limits.address_space),
            },
            allow_missing: join(base.allow_missing, self.allow_missing),
            notes: join(base.notes, self.notes),
        }
    }
}
