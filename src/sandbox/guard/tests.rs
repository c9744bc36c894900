//! The guard over real folders: every way in which something can come to stand at a place.

use super::notices::Notices;
use super::places::{Place, Wanted};
use super::{Guard, Kept, Trouble};
use crate::base::AbsPath;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn place(folder: &Path, below: &str, wanted: Wanted) -> Place {
    Place {
        path: AbsPath::new(folder.join(below)).unwrap(),
        base: AbsPath::new(folder).unwrap(),
        names: below.split('/').map(Into::into).collect(),
        reason: "the host runs it".into(),
        wanted,
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(5);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn gone(path: &Path) -> bool {
    path.symlink_metadata().is_err()
}

/// Whether a name stands for something at all, and what was refused holds `content` now.
fn refused(make: impl Fn(&Path), notices: Notices) -> Kept {
    let (_folder, at) = folder();
    let guard = Guard::over(vec![place(&at, "a/b", Wanted::Nothing)], notices, Box::new(|| Ok(()))).unwrap();
    make(&at);
    soon("nothing stands there", || gone(&at.join("a/b")));
    let (kept, trouble) = guard.finish();
    assert_eq!(trouble, None);
    kept
}

/// A name, and what makes something stand there.
type Way = (&'static str, fn(&Path));

#[test]
fn whatever_appears_is_moved_aside_in_whatever_order_it_comes() {
    let ways: [Way; 6] = [
        ("folder first", |at| {
            std::fs::create_dir(at.join("a")).unwrap();
            std::fs::write(at.join("a/b"), "x").unwrap();
        }),
        ("prepared and renamed", |at| {
            std::fs::create_dir(at.join("p")).unwrap();
            std::fs::write(at.join("p/b"), "x").unwrap();
            std::fs::rename(at.join("p"), at.join("a")).unwrap();
        }),
        ("renamed into", |at| {
            std::fs::create_dir(at.join("a")).unwrap();
            std::fs::write(at.join("x"), "x").unwrap();
            std::fs::rename(at.join("x"), at.join("a/b")).unwrap();
        }),
        ("linked", |at| {
            std::fs::create_dir(at.join("a")).unwrap();
            std::fs::write(at.join("x"), "x").unwrap();
            std::fs::hard_link(at.join("x"), at.join("a/b")).unwrap();
        }),
        ("a link on the way", |at| {
            std::fs::create_dir(at.join("p")).unwrap();
            std::fs::write(at.join("p/b"), "x").unwrap();
            symlink("p", at.join("a")).unwrap();
        }),
        ("a folder", |at| std::fs::create_dir_all(at.join("a/b")).unwrap()),
    ];
    for (name, make) in ways {
        let kept = refused(make, Notices::new());
        assert_eq!(kept.refused.len(), 1, "{name}: {kept:?}");
        assert!(!kept.polled);
        let kept = refused(make, Notices::without_the_kernel());
        assert_eq!(kept.refused.len(), 1, "{name}, polled: {kept:?}");
        assert!(kept.polled);
    }
}

#[test]
fn nothing_is_lost_and_each_has_a_name_of_its_own() {
    let (_folder, at) = folder();
    let guard = Guard::over(
        vec![place(&at, ".envrc", Wanted::Nothing)],
        Notices::new(),
        Box::new(|| Ok(())),
    )
    .unwrap();
    for content in ["one", "two"] {
        std::fs::write(at.join(".envrc"), content).unwrap();
        soon("it is moved", || gone(&at.join(".envrc")));
    }
    let (kept, _) = guard.finish();
    let aside = &kept.refused[0].aside;
    let contents: Vec<_> = aside
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(contents, ["one", "two"]);
    assert_eq!(kept.refused[0].times, 2);
}

#[test]
fn a_link_is_put_back() {
    let (_folder, at) = folder();
    symlink("scripts", at.join("hooks")).unwrap();
    let wanted = Wanted::Link("scripts".into());
    let guard = Guard::over(vec![place(&at, "hooks", wanted)], Notices::new(), Box::new(|| Ok(()))).unwrap();
    let is_back = || std::fs::read_link(at.join("hooks")).is_ok_and(|to| to == Path::new("scripts"));
    std::fs::remove_file(at.join("hooks")).unwrap();
    soon("removed, and back", is_back);
    std::fs::rename(at.join("hooks"), at.join("old")).unwrap();
    soon("renamed, and back", is_back);
    std::fs::create_dir(at.join("evil")).unwrap();
    std::fs::remove_file(at.join("hooks")).unwrap();
    let _ = std::fs::rename(at.join("evil"), at.join("hooks"));
    soon("replaced, and back", is_back);
    assert_eq!(guard.finish().1, None);
}

#[test]
fn who_insists_ends_the_launch_and_so_does_what_cannot_be_moved() {
    let (_folder, at) = folder();
    let guard = Guard::over(
        vec![place(&at, "x", Wanted::Nothing)],
        Notices::new(),
        Box::new(|| Ok(())),
    )
    .unwrap();
    soon("it is enough", || {
        let _ = std::fs::write(at.join("x"), "");
        guard.trouble().is_some()
    });
    assert!(matches!(guard.trouble(), Some(Trouble::Insisted(_))));
    let (kept, trouble) = guard.finish();
    assert_eq!(trouble, Some(Trouble::Insisted(AbsPath::new(at.join("x")).unwrap())));
    assert!(!kept.refused.is_empty());
}

#[test]
fn what_stands_there_before_is_no_guards_to_move() {
    let (_folder, at) = folder();
    std::fs::write(at.join("x"), "mine").unwrap();
    let trouble = Guard::over(
        vec![place(&at, "x", Wanted::Nothing)],
        Notices::new(),
        Box::new(|| Ok(())),
    )
    .unwrap_err();
    assert!(matches!(trouble, Trouble::Appeared(_)));
    assert_eq!(std::fs::read_to_string(at.join("x")).unwrap(), "mine");
}

#[test]
fn a_lock_that_is_given_up_is_an_attempt_to_change_what_it_is_for() {
    let (_folder, at) = folder();
    let lock = || place(&at, "config.lock", Wanted::NoLock);
    let guard = Guard::over(vec![lock()], Notices::new(), Box::new(|| Ok(()))).unwrap();
    std::fs::write(at.join("config.lock"), "").unwrap();
    std::fs::rename(at.join("config.lock"), at.join("config")).unwrap();
    assert!(
        guard.finish().0.tried.is_empty(),
        "it went through, so it came from outside"
    );
    let guard = Guard::over(vec![lock()], Notices::new(), Box::new(|| Ok(()))).unwrap();
    for _ in 0..3 {
        std::fs::write(at.join("config.lock"), "").unwrap();
        std::fs::remove_file(at.join("config.lock")).unwrap();
    }
    assert_eq!(guard.finish().0.tried.len(), 1);
}

#[test]
fn a_covered_file_that_is_replaced_is_mended_at_once_and_who_was_quicker_ends_the_launch() {
    let (_folder, at) = folder();
    std::fs::write(at.join("config"), "").unwrap();
    let covered = || vec![place(&at, "config", Wanted::Covered)];
    let (told, mended) = std::sync::mpsc::channel();
    let mend = move || told.send(()).map_err(|error| error.to_string());
    let guard = Guard::over(covered(), Notices::new(), Box::new(mend)).unwrap();
    std::fs::write(at.join("config.lock"), "new").unwrap();
    std::fs::rename(at.join("config.lock"), at.join("config")).unwrap();
    mended.recv_timeout(Duration::from_secs(2)).unwrap();
    assert_eq!(guard.finish().1, None);
    let guard = Guard::over(covered(), Notices::new(), Box::new(|| Err("somebody has it".into()))).unwrap();
    std::fs::remove_file(at.join("config")).unwrap();
    soon("it ends", || guard.trouble().is_some());
    assert_eq!(guard.finish().1, Some(Trouble::Opened("somebody has it".into())));
}
