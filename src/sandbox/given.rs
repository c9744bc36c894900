//! What the kernel really gave to one sandbox, for its record: from what the layers reported, not from what was asked.

use super::bounds::Bound;
use super::layers::{landlock, namespaces};
use serde::{Deserialize, Serialize};

/// The layers of a sandbox, in the words of its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Given {
    /// Made for this sandbox; verification compares each with the host's.
    pub namespaces: Vec<String>,
    pub landlock: Landlock,
    /// Filters that the command carries.
    pub seccomp_filters: u32,
    /// Each limit of the policy and what keeps it.
    pub limits: Vec<Bound>,
}

/// A domain of Landlock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Landlock {
    /// The kernel's newest.
    pub abi: u32,
    /// Whether the domain has all that was asked for: an older kernel gives fewer rights.
    pub whole: bool,
    /// What is taken away where no grant gives it back.
    pub rights: Vec<String>,
    pub scopes: Vec<String>,
}

impl Given {
    /// `whole` is what the command's own process said of its domain.
    pub(super) fn new(whole: bool, seccomp_filters: u32, limits: Vec<Bound>) -> Given {
        let abi = crate::sys::support::landlock_abi().unwrap_or(0);
        let (rights, scopes) = landlock::rights(abi);
        let landlock = Landlock {
            abi,
            whole,
            rights,
            scopes,
        };
        let namespaces = namespaces::all()
            .iter_names()
            .map(|(name, _)| name.trim_start_matches("CLONE_NEW").to_lowercase());
        Given {
            namespaces: namespaces.collect(),
            landlock,
            seccomp_filters,
            limits,
        }
    }

    /// In one line.
    pub fn line(&self) -> String {
        let Landlock {
            abi,
            whole,
            rights,
            scopes,
        } = &self.landlock;
        let part = if *whole { "" } else { ", less than was asked for" };
        let mut line = format!(
            "{} namespaces; Landlock ABI {abi} ({} rights, {} scopes{part}); {} seccomp filters",
            self.namespaces.len(),
            rights.len(),
            scopes.len(),
            self.seccomp_filters
        );
        for Bound { limit, most, by, but } in &self.limits {
            let but = but.as_ref().map_or_else(String::new, |but| format!(" ({but})"));
            line.push_str(&format!("; {limit} {most} by {by}{but}"));
        }
        line
    }
}
