//! A launch leaves nothing on the host that was not there before: no placeholder, no changed mode, no time of a folder.

use crate::place::{Place, Started, eventually, finish, marker, processes_with};
use crate::protected::repository;
use nix::sys::signal::Signal;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Everything below a folder: name, kind, mode, owner, links, size, times of change, content.
pub fn listing(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    collect(folder, &mut lines);
    lines.sort();
    lines
}

fn collect(path: &Path, lines: &mut Vec<String>) {
    let meta = path.symlink_metadata().unwrap();
    let content = match meta.file_type() {
        kind if kind.is_symlink() => format!("{:?}", std::fs::read_link(path).unwrap()),
        kind if kind.is_file() => format!("{:?}", std::fs::read(path).unwrap_or_default()),
        _ => String::new(),
    };
    let (mode, links, size) = (meta.mode(), meta.nlink(), meta.size());
    lines.push(format!(
        "{path:?} {mode:o} {}:{} {links} {size} {}.{} {}.{} {content}",
        meta.uid(),
        meta.gid(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec()
    ));
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), lines);
        }
    }
}

fn every_workspace() -> [Place; 2] {
    [Place::new(), repository()]
}

#[test]
fn a_run_leaves_the_workspace_as_it_was() {
    for place in every_workspace() {
        let before = listing(&place.work);
        finish(&mut place.run::<&str, _>(&[], &["true"])).expect(0);
        assert_eq!(before, listing(&place.work));
    }
}

#[test]
fn a_live_run_shows_nothing_on_the_host() {
    for place in every_workspace() {
        let before = listing(&place.work);
        let word = marker();
        let run = Started::new(&mut place.run::<&str, _>(&[], &["sleep", &word]));
        eventually("the command runs", || processes_with(&word).len() >= 3);
        assert_eq!(before, listing(&place.work));
        run.signal(Signal::SIGKILL);
        eventually("nothing of it is left", || processes_with(&word).is_empty());
        assert_eq!(before, listing(&place.work));
    }
}

#[test]
fn a_refused_or_missing_command_leaves_nothing() {
    for place in every_workspace() {
        let before = listing(&place.work);
        finish(&mut place.run::<&str, _>(&[], &["no-such-command"])).expect(127);
        finish(&mut place.run(&["--read", "/no/such/path"], &["true"])).expect(125);
        finish(&mut place.run(&["--dry-run"], &["true"])).expect(0);
        assert_eq!(before, listing(&place.work));
    }
}

#[test]
fn an_absent_home_and_grants_make_nothing_on_the_host() {
    let place = Place::new();
    let granted = place.secrets.join("folder");
    std::fs::create_dir(&granted).unwrap();
    let before = listing(&place.secrets);
    let options = [
        "--read",
        granted.to_str().unwrap(),
        "--read",
        place.secrets.join("key").to_str().unwrap(),
    ]
    .map(str::to_owned);
    finish(&mut place.run(&options, &["true"])).expect(0);
    assert_eq!(before, listing(&place.secrets));
    let entries: Vec<_> = std::fs::read_dir(&place.home)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    // Pinfold's own state folder, and nothing that a grant or a mount would have made.
    assert_eq!(entries, [".local"]);
}
