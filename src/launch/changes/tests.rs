//! The look after a launch, over real folders.

use super::Haste;
use super::kinds::Kinds;
use super::walk::{Moment, walk};
use super::{Again, Change, Changes, gathered};
use crate::base::AbsPath;
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

fn now() -> Moment {
    // A tick later, so that what was made before is before.
    std::thread::sleep(Duration::from_millis(20));
    let now = clock_gettime(ClockId::CLOCK_REALTIME_COARSE).unwrap();
    (now.tv_sec(), now.tv_nsec())
}

fn made(root: &Path, path: &str, mode: u32) {
    let at = root.join(path);
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    std::fs::write(&at, "x").unwrap();
    std::fs::set_permissions(&at, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn told(root: &Path, since: Moment) -> Vec<(String, usize)> {
    let walked = walk(&AbsPath::new(root).unwrap(), &Kinds::shipped().unwrap(), since, None);
    assert_eq!(walked.left, 0);
    let short = |change: Change| {
        (
            change
                .path
                .as_path()
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned(),
            change.count,
        )
    };
    let mut told: Vec<_> = gathered(walked.seen).into_iter().map(short).collect();
    told.sort();
    told
}

#[test]
fn tells_what_is_new_or_changed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for old in ["Makefile", "package.json", "run.sh", "src/main.rs"] {
        made(&root, old, 0o755);
    }
    let since = now();
    assert_eq!(told(&root, since), []);
    std::fs::write(root.join("package.json"), "changed").unwrap();
    made(&root, "src/main.rs", 0o644);
    made(&root, "v/.git/hooks/post-checkout", 0o755);
    made(&root, "v/.git/hooks/post-checkout.sample", 0o644);
    made(&root, "v/.git/HEAD", 0o644);
    std::fs::create_dir(root.join("v/.git/objects")).unwrap();
    std::fs::create_dir(root.join("v/.git/refs")).unwrap();
    symlink("/etc/passwd", root.join("build.rs")).unwrap();
    for number in 0..5 {
        made(&root, &format!("node_modules/x/bin/{number}"), 0o755);
    }
    let expected = [
        ("build.rs", 1),
        ("node_modules", 5),
        ("package.json", 1),
        ("v/.git/hooks/post-checkout", 1),
    ];
    assert_eq!(
        told(&root, since),
        expected.map(|(path, count)| (path.to_owned(), count))
    );
}

#[test]
fn a_time_that_was_set_back_hides_nothing_and_a_mode_is_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    made(&root, "data", 0o644);
    let since = now();
    let at = root.join("data");
    std::fs::set_permissions(&at, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::File::open(&at)
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    assert_eq!(told(&root, since), [("data".to_owned(), 1)]);
}

#[test]
fn no_link_leads_out_of_the_folder() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path().canonicalize().unwrap();
    let since = now();
    made(&other.path().canonicalize().unwrap(), "package.json", 0o644);
    symlink(other.path(), root.join("away")).unwrap();
    assert_eq!(told(&root, since), []);
}

#[test]
fn a_look_that_ran_out_of_time_says_so_and_can_be_completed() {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
    let since = now();
    made(root.as_path(), "a/b/package.json", 0o644);
    let kinds = Kinds::shipped().unwrap();
    let walked = walk(&root, &kinds, since, Some(Instant::now()));
    assert_eq!((walked.seen.len(), walked.left), (0, 1));
    let again = Again {
        roots: vec![root],
        since,
        kinds,
        left: walked.left,
    };
    let cut = Changes {
        unseen: Some(Box::new(again)),
        ..Changes::default()
    };
    assert!(!cut.is_empty());
    // As it is kept and read again.
    let kept: Changes = serde_json::from_value(serde_json::to_value(&cut).unwrap()).unwrap();
    assert_eq!(kept, cut);
    let whole = kept.complete();
    assert_eq!((whole.changed.len(), whole.unseen), (1, None));
}

#[test]
fn whoever_waits_for_the_end_waits_for_a_short_look() {
    let most = |signal| Haste::of(signal).most();
    assert!(
        most(Some(Signal::SIGHUP)) < Duration::from_millis(150),
        "a pane's rest is killed after half a second"
    );
    assert!(most(Some(Signal::SIGTERM)) <= Duration::from_secs(1));
    assert!(most(None) > most(Some(Signal::SIGTERM)));
}
