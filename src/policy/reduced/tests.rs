use super::*;
use crate::policy::memory::MemoryHost;
use crate::policy::{LiveHost, Request, load, resolve};

fn at(path: &str) -> AbsPath {
    AbsPath::new(path).unwrap()
}

fn host() -> MemoryHost {
    MemoryHost::debian()
        .file("/home/ann/.gitconfig", "")
        .dir("/home/ann/.cargo/bin")
        .file("/home/ann/p/.git/HEAD", "")
        .file("/home/ann/p/README", "")
        .file("/home/ann/p/.envrc", "")
}

fn full(weakened: Vec<Promise>) -> Policy {
    let request = Request {
        root: Some("/home/ann/p".into()),
        workdir: "/home/ann/p".into(),
        allow_missing: weakened,
        ..Request::default()
    };
    resolve(&load("default", &[], &LiveHost::new()).unwrap(), &request, &host()).unwrap()
}

fn reduced(policy: &Policy) -> Reduced {
    reduce(policy, &at("/state/rooms/r"), &host()).unwrap()
}

fn access(policy: &Policy, path: &str) -> Option<Access> {
    // As Landlock does it: the rights of every grant on the way down add up.
    let path = at(path);
    policy
        .binds
        .iter()
        .filter(|bind| path.is_within(&bind.source))
        .map(|bind| bind.access)
        .max()
}

#[test]
fn what_is_protected_can_be_read_and_what_is_beside_it_written() {
    let policy = reduced(&full(Vec::new())).policy;
    for (path, expected) in [
        ("/home/ann/p/README", Some(Access::ReadWrite)),
        ("/home/ann/p/src/new", Some(Access::ReadWrite)),
        ("/home/ann/p/.git/HEAD", Some(Access::ReadWrite)),
        ("/home/ann/p/.git/config", Some(Access::Read)),
        ("/home/ann/p/.git/hooks/new", Some(Access::Read)),
        ("/home/ann/p/.envrc", Some(Access::Read)),
        ("/home/ann/p/new", Some(Access::Read)),
        ("/home/ann/p/.git/index.lock", Some(Access::Read)),
        ("/home/ann/.gitconfig", Some(Access::Read)),
        ("/home/ann/.ssh/id_ed25519", None),
        ("/etc/shadow", None),
        ("/tmp/x", None),
        ("/state/rooms/r/tmp/x", Some(Access::ReadWrite)),
        ("/state/rooms/r/canary", None),
    ] {
        assert_eq!(access(&policy, path), expected, "{path}");
    }
}

#[test]
fn a_socket_of_the_host_in_a_split_folder_is_not_granted_as_one() {
    let host = host().socket("/home/ann/p/db.sock").socket("/srv/s.sock");
    let request = Request {
        root: Some("/home/ann/p".into()),
        workdir: "/home/ann/p".into(),
        ..Request::default()
    };
    let mut profile = load("default", &[], &LiveHost::new()).unwrap();
    let text = r#"{"filesystem": {"unix_socket": ["/srv/s.sock"]}}"#;
    let own = load("/own.json", &[], &MemoryHost::default().file("/own.json", text)).unwrap();
    profile.sockets = own.sockets;
    let policy = resolve(&profile, &request, &host).unwrap();
    let reduced = reduce(&policy, &at("/state/rooms/r"), &host).unwrap().policy;
    let sockets = reduced.binds.iter().filter(|bind| bind.kind == FileKind::Socket);
    let sockets: Vec<String> = sockets.map(|bind| bind.source.to_string()).collect();
    assert_eq!(sockets, ["/srv/s.sock"]);
    assert_eq!(
        access(&reduced, "/home/ann/p/db.sock"),
        Some(Access::ReadWrite),
        "a control: it is in the workspace"
    );
}

#[test]
fn a_workspace_is_whole_where_its_protection_was_given_up_by_name() {
    let policy = reduced(&full(vec![Promise::Protected])).policy;
    assert_eq!(access(&policy, "/home/ann/p/.git/index.lock"), Some(Access::ReadWrite));
    assert_eq!(access(&policy, "/home/ann/.ssh/id_ed25519"), None);
}

#[test]
fn what_is_closed_stays_closed_whatever_was_given_up() {
    let mut policy = full(vec![Promise::Protected]);
    policy.masked = vec![at("/home/ann/p/src")];
    let policy = reduced(&policy).policy;
    assert_eq!(
        access(&policy, "/home/ann/p/src/main.rs"),
        Some(Access::List),
        "names alone"
    );
    assert_eq!(access(&policy, "/home/ann/p/README"), Some(Access::ReadWrite));
}

#[test]
fn the_room_stands_in_for_what_is_private() {
    let found = reduced(&full(Vec::new()));
    let home = at("/state/rooms/r/home/ann");
    assert_eq!(
        found.policy.environment.0.get(std::ffi::OsStr::new("HOME")),
        Some(&home.as_path().into())
    );
    let tmp = Path::new("/state/rooms/r/tmp");
    assert_eq!(
        found.policy.environment.0.get(std::ffi::OsStr::new("TMPDIR")),
        Some(&tmp.into())
    );
    assert!(found.furniture.contains(&Furniture::Folder(home.clone())));
    assert!(found.furniture.contains(&Furniture::Link {
        at: home.join(".gitconfig").unwrap(),
        to: "/home/ann/.gitconfig".into(),
    }));
    assert_eq!(found.policy.workdir, at("/home/ann/p"));
}

#[test]
fn something_elsewhere_than_on_the_host_needs_a_mount() {
    let mut policy = full(Vec::new());
    policy
        .binds
        .iter_mut()
        .filter(|bind| bind.target == at("/usr"))
        .for_each(|bind| bind.target = at("/elsewhere"));
    let moved = reduce(&policy, &at("/state/rooms/r"), &host());
    assert!(matches!(moved, Err(ReduceError::Moved(path)) if path == at("/elsewhere")));
}

#[test]
fn an_older_landlock_keeps_less() {
    let promises = |abi| -> Vec<Promise> { lost(abi).into_iter().map(|(promise, _)| promise).collect() };
    assert_eq!(promises(7), [Promise::Processes]);
    assert_eq!(promises(5), [Promise::Processes, Promise::Processes]);
    assert_eq!(promises(2), [Promise::Files, Promise::Processes, Promise::Processes]);
}

#[test]
fn a_cache_can_be_read_at_its_own_place_and_tools_begin_with_one_of_their_own() {
    let host = host().file("/home/ann/.npm/_cacache/x", "");
    let request = Request {
        root: Some("/home/ann/p".into()),
        workdir: "/home/ann/p".into(),
        ..Request::default()
    };
    let policy = resolve(&load("default", &[], &LiveHost::new()).unwrap(), &request, &host).unwrap();
    let Reduced { policy, furniture } = reduce(&policy, &at("/state/rooms/r"), &host).unwrap();
    assert_eq!(access(&policy, "/home/ann/.npm/_cacache/x"), Some(Access::Read));
    let own = at("/state/rooms/r/home/ann/.npm/_cacache");
    assert!(furniture.contains(&Furniture::Folder(own.clone())), "{furniture:?}");
    assert_eq!(access(&policy, &own.to_string()), Some(Access::ReadWrite));
}
