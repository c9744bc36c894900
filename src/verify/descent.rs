//! Finds every process of a launch that has no PID namespace: by descent from its first process. That one is a subreaper
//! (prctl(2)), so whoever loses a parent becomes its child, and nothing leaves the tree.

use super::proc::status::parent;
use super::proc::{Entry, ReadError, Reading, pids};
use super::subject::{Birth, Subject};
use super::tree::Found;
use crate::base::Pid;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that descends from the first process of a launch now, itself included; nothing once it has ended.
pub fn descendants(init: Birth) -> Vec<i32> {
    if super::tree::has_ended(init) {
        return Vec::new();
    }
    let parents = parents().unwrap_or_default();
    below(&parents, init.pid.get()).into_iter().collect()
}

/// Looks through /proc once, and hands over each member.
pub fn read(subject: &Subject, mut member: impl FnMut(Found)) -> Reading<()> {
    let parents = parents()?;
    for pid in below(&parents, subject.init.pid.get()).into_iter().filter_map(Pid::new) {
        let found = Entry::open(pid).and_then(|entry| Found::read(pid, entry, subject));
        match found {
            Ok(found) => member(found),
            Err(ReadError::Ended) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Every process with its parent.
fn parents() -> Reading<BTreeMap<i32, i32>> {
    let mut parents = BTreeMap::new();
    for pid in pids()? {
        if let Some(parent) = parent_of(pid) {
            parents.insert(pid.get(), parent);
        }
    }
    // Whose parent has ended since has a new one.
    let orphans: Vec<i32> = parents
        .iter()
        .filter(|(_, parent)| !parents.contains_key(parent))
        .map(|(pid, _)| *pid)
        .collect();
    for pid in orphans {
        if let Some(parent) = Pid::new(pid).and_then(parent_of) {
            parents.insert(pid, parent);
        }
    }
    Ok(parents)
}

fn parent_of(pid: Pid) -> Option<i32> {
    parent(&Entry::open(pid).and_then(|entry| entry.read("stat")).ok()?).ok()
}

/// The top and everything below it.
fn below(parents: &BTreeMap<i32, i32>, top: i32) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, parent) in parents {
        children.entry(*parent).or_default().push(*pid);
    }
    let mut found: BTreeSet<i32> = parents.contains_key(&top).then_some(top).into_iter().collect();
    let mut next: Vec<i32> = found.iter().copied().collect();
    while let Some(parent) = next.pop() {
        let new = children.get(&parent).into_iter().flatten();
        next.extend(new.filter(|pid| found.insert(**pid)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn takes_the_top_and_what_descends_from_it() {
        let parents = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (7, 2)].into();
        assert_eq!(below(&parents, 2), [2, 3, 4, 7].into());
        assert_eq!(below(&parents, 9), [].into());
    }
}
