//! Pieces of grants on an in-memory host.

use super::*;
use crate::policy::frozen::{Origin, Protected};
use crate::policy::memory::MemoryHost;
use crate::policy::{Request, load, resolve};
use std::path::PathBuf;

/// A policy without binds of its own: what each case needs is put in.
fn policy(binds: &[(&str, FileKind, Access)], masked: &[&str], protected: &[(&str, Option<FileKind>)]) -> Policy {
    let host = MemoryHost::debian().file(
        "/profiles/none.json",
        r#"{"extends": "system", "workdir": {"access": "none"}}"#,
    );
    let profile = load("none", &[PathBuf::from("/profiles")], &host).unwrap();
    let request = Request {
        workdir: PathBuf::from("/"),
        ..Request::default()
    };
    let mut policy = resolve(&profile, &request, &host).unwrap();
    let abs = |path: &str| AbsPath::new(path).unwrap();
    let bind = |(path, kind, access): &(&str, FileKind, Access)| Bind {
        source: abs(path),
        target: abs(path),
        access: *access,
        kind: *kind,
        origin: Origin::built_in("test", ""),
    };
    policy.binds = binds.iter().map(bind).collect();
    policy.masked = masked.iter().map(|path| abs(path)).collect();
    policy.protected = protected
        .iter()
        .map(|(path, kind)| Protected {
            path: abs(path),
            kind: *kind,
            pins: Vec::new(),
            reason: String::new(),
        })
        .collect();
    policy
}

fn tree() -> MemoryHost {
    MemoryHost::default()
        .file("/p/.git/config", "")
        .file("/p/.git/hooks/x", "")
        .file("/p/.git/HEAD", "")
        .file("/p/src/a.rs", "")
        .file("/p/src/keys/k", "")
        .file("/p/secret", "")
        .link("/p/out", "/etc")
}

fn pieces(policy: &Policy, absent: Absent) -> Vec<String> {
    let word = |piece: &Piece| {
        let reach = match piece.reach {
            Reach::List => "list",
            Reach::Read => "read",
            Reach::ReadWrite => "write",
        };
        format!("{reach} {}", piece.path)
    };
    split(policy, absent, &tree()).unwrap().iter().map(word).collect()
}

const RW: (&str, FileKind, Access) = ("/p", FileKind::Dir, Access::ReadWrite);
const RO: (&str, FileKind, Access) = ("/p", FileKind::Dir, Access::Read);

#[test]
fn a_grant_without_anything_special_is_one_piece() {
    assert_eq!(pieces(&policy(&[RW], &[], &[]), Absent::Held), ["write /p"]);
    assert_eq!(
        pieces(
            &policy(&[RO], &[], &[("/p/.git/config", Some(FileKind::File))]),
            Absent::Held
        ),
        ["read /p"]
    );
    assert_eq!(
        pieces(&policy(&[RW], &["/q/x"], &[]), Absent::Held),
        ["write /p"],
        "what is elsewhere changes nothing"
    );
}

#[test]
fn what_is_protected_can_be_read_and_its_siblings_written() {
    let policy = policy(
        &[RW],
        &[],
        &[
            ("/p/.git/config", Some(FileKind::File)),
            ("/p/.git/hooks", Some(FileKind::Dir)),
        ],
    );
    let expected = [
        "read /p",
        "read /p/.git",
        "write /p/.git/HEAD",
        "read /p/.git/config",
        "read /p/.git/hooks",
        "write /p/secret",
        "write /p/src",
    ];
    assert_eq!(pieces(&policy, Absent::Held), expected);
}

#[test]
fn what_is_denied_is_in_no_piece_and_its_folders_are_only_listed() {
    let masked = ["/p/secret", "/p/src/keys"];
    let expected = ["list /p", "write /p/.git", "list /p/src", "write /p/src/a.rs"];
    assert_eq!(pieces(&policy(&[RW], &masked, &[]), Absent::Held), expected);
    let expected = ["list /p", "read /p/.git", "list /p/src", "read /p/src/a.rs"];
    assert_eq!(pieces(&policy(&[RO], &masked, &[]), Absent::Held), expected);
}

#[test]
fn a_deny_wins_inside_what_is_protected() {
    let policy = policy(&[RW], &["/p/.git/hooks"], &[("/p/.git", Some(FileKind::Dir))]);
    let expected = [
        "list /p",
        "list /p/.git",
        "read /p/.git/HEAD",
        "read /p/.git/config",
        "write /p/secret",
        "write /p/src",
    ];
    assert_eq!(pieces(&policy, Absent::Held), expected);
}

#[test]
fn an_absent_protected_path_splits_the_folder_that_is_there_or_is_reported() {
    let policy = policy(&[RW], &[], &[("/p/src/x/y", None)]);
    let expected = [
        "read /p",
        "write /p/.git",
        "write /p/secret",
        "read /p/src",
        "write /p/src/a.rs",
        "write /p/src/keys",
    ];
    assert_eq!(pieces(&policy, Absent::Held), expected);
    assert_eq!(pieces(&policy, Absent::Reported), ["write /p"]);
}

#[test]
fn a_grant_in_a_grant_keeps_its_own_reach() {
    let inner = |path, access| (path, FileKind::Dir, access);
    let policy = policy(
        &[
            RW,
            inner("/p/src", Access::Read),
            inner("/p/src/keys", Access::ReadWrite),
        ],
        &[],
        &[],
    );
    let expected = [
        "read /p",
        "write /p/.git",
        "write /p/secret",
        "read /p/src",
        "write /p/src/keys",
    ];
    assert_eq!(pieces(&policy, Absent::Held), expected);
}

#[test]
fn pieces_are_bounded_and_what_cannot_be_listed_is_an_error() {
    let many = |count: usize| (0..count).fold(MemoryHost::default(), |host, n| host.file(&format!("/p/f{n}"), ""));
    let policy = policy(&[RW], &["/p/f0"], &[]);
    let few = split(&policy, Absent::Held, &many(100)).unwrap();
    assert_eq!(few.len(), 100);
    let error = split(&policy, Absent::Held, &many(MOST + 1)).unwrap_err();
    assert!(
        matches!(&error, SplitError::Many { folder } if folder.as_path() == "/p"),
        "{error}"
    );
    let closed = MemoryHost::default().closed("/p");
    assert!(matches!(
        split(&policy, Absent::Held, &closed),
        Err(SplitError::List { .. })
    ));
}
