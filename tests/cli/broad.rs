//! Workspaces and grants that would undo the promises are refused, by every way of naming them.

use crate::place::{Place, finish};
use std::os::unix::fs::symlink;

#[test]
fn the_root_the_home_folder_and_what_is_above_it_are_no_workspace() {
    let place = Place::new();
    let home = place.home.to_str().unwrap().to_owned();
    let above = place.path().to_str().unwrap().to_owned();
    let link = place.work.join("link");
    symlink(&place.home, &link).unwrap();
    for path in [
        "/",
        "//",
        "/.",
        "/..",
        "/proc/self/root",
        &home,
        &format!("{home}/"),
        &format!("{home}/../home"),
        &above,
        "link",
        "..",
        "/etc",
        "/home",
        "/proc",
        "/dev",
        "/sys",
        "/usr",
        "/tmp",
        "/run",
    ] {
        let ended = finish(&mut place.run(&["--workdir", path], &["true"]));
        assert_eq!(ended.code(), 125, "{path}: {}", ended.err());
        assert!(ended.err().contains("refusing"), "{path}: {}", ended.err());
    }
}

#[test]
fn a_grant_that_is_too_broad_is_refused() {
    let place = Place::new();
    let home = place.home.to_str().unwrap().to_owned();
    let above = place.path().to_str().unwrap().to_owned();
    for path in [
        "/", "/proc", "/proc/1", "/sys", "/dev", "/etc", "/home", "/run", &home, &above, "..", "~",
    ] {
        for option in ["--read", "--allow"] {
            let ended = finish(&mut place.run(&[option, path], &["true"]));
            assert_eq!(ended.code(), 125, "{option} {path}: {}", ended.err());
        }
    }
    for path in ["/usr", "/usr/bin", "/etc/ssl", "/tmp", "/var", "/boot", "/opt"] {
        let ended = finish(&mut place.run(&["--allow", path], &["true"]));
        assert_eq!(ended.code(), 125, "--allow {path}: {}", ended.err());
    }
}

#[test]
fn a_grant_that_does_not_exist_is_told() {
    let place = Place::new();
    for option in ["--read", "--allow"] {
        let ended = finish(&mut place.run(&[option, "/no/such/path"], &["true"])).expect(125);
        assert!(
            ended.err().contains("/no/such/path") && ended.err().contains(option),
            "{}",
            ended.err()
        );
    }
}

#[test]
fn a_relative_grant_is_seen_from_where_one_is() {
    let place = Place::new();
    let sub = place.work.join("sub");
    std::fs::create_dir_all(&sub).unwrap();
    let mut command = place.run(&["--read", "../../secrets"], &["cat", "../../secrets/key"]);
    assert_eq!(finish(command.current_dir(sub)).expect(0).out(), "the secret key\n");
}
