//! Where a workspace may lie, and how its root is found.

use super::*;

#[test]
fn refuses_workspaces_that_are_too_broad_or_not_there() {
    let host = MemoryHost::debian()
        .dir("/home/ann/.config/pinfold/profiles")
        .dir("/home/ann/.ssh/x")
        .dir("/home/ann/.local/share/pinfold/x")
        .dir("/run/user/1000/x")
        .dir("/usr/lib/x")
        .dir("/etc/x")
        .dir("/opt")
        .dir("/var/lib")
        .dir("/mnt")
        .dir("/root")
        .link("/home/ann/etc", "/etc")
        .link("/tmp/home", "/home/ann")
        .link("/tmp/loop", "loop");
    for path in [
        "/",
        "/home",
        "/home/ann",
        "/home/ann/p/..",
        "/home/ann/.config",
        "/home/ann/.config/pinfold",
        "/home/ann/.config/pinfold/profiles",
        "/home/ann/.local",
        "/home/ann/.local/share",
        "/home/ann/.local/share/pinfold/x",
        "/home/ann/.ssh",
        "/home/ann/.ssh/x",
        "/proc",
        "/dev",
        "/run",
        "/run/user/1000/x",
        "/etc",
        "/etc/x",
        "/usr",
        "/usr/lib/x",
        "/lib",
        "/bin",
        "/opt",
        "/var",
        "/var/lib",
        "/mnt",
        "/root",
        "/tmp",
        "/home/ann/etc",
        "/tmp/home",
    ] {
        let error = rooted(&host, path).unwrap_err();
        assert!(matches!(error, ResolveError::Root { .. }), "{path}: {error}");
        assert_eq!((error.kind(), error.hint().is_some()), (Kind::Target, true), "{path}");
    }
    assert!(matches!(
        rooted(&host, "/home/ann/gone"),
        Err(ResolveError::RootMissing(_))
    ));
    assert!(matches!(
        rooted(&host, "/home/ann/p/src/main.rs"),
        Err(ResolveError::RootNotAFolder(_))
    ));
    assert!(matches!(rooted(&host, "p"), Err(ResolveError::Relative { .. })));
    assert!(matches!(rooted(&host, "/tmp/loop"), Err(ResolveError::Walk { .. })));
    let closed = host.clone().closed("/srv/closed").dir("/srv/closed/below");
    assert!(matches!(
        rooted(&closed, "/srv/closed"),
        Err(ResolveError::RootUnreadable { .. })
    ));
    assert!(matches!(
        rooted(&closed, "/srv/closed/below"),
        Err(ResolveError::Walk { permission: true, .. })
    ));
    for path in [
        ROOT,
        "/home/ann/p/src",
        "/tmp/x",
        "/srv/x",
        "/home/ann/.config/nvim",
        "/usr/src/x",
    ] {
        let host = host.clone().dir(path);
        assert!(
            rooted(&host, path).is_ok(),
            "{path}: {:?}",
            rooted(&host, path).unwrap_err()
        );
    }
}

#[test]
fn refuses_an_own_folder_that_a_link_puts_into_the_workspace() {
    let host = MemoryHost::debian()
        .dir("/home/ann/p/pf")
        .link("/home/ann/.config/pinfold", "/home/ann/p/pf");
    assert!(matches!(rooted(&host, ROOT), Err(ResolveError::Root { .. })));
}

#[test]
fn finds_the_workspace_root_without_git() {
    let host = MemoryHost::debian()
        .dir("/home/ann/p/src/deep")
        .dir("/home/ann/plain/sub")
        .dir("/home/ann/.git")
        .file("/home/ann/w/.git", "gitdir: /x")
        .dir("/home/ann/w/sub")
        .link("/home/ann/l", "/home/ann/p/src")
        .file("/home/ann/f", "");
    for (start, root) in [
        ("/home/ann/p/src/deep", "/home/ann/p"),
        ("/home/ann/p", "/home/ann/p"),
        ("/home/ann/l/deep", "/home/ann/p"),
        ("/home/ann/w/sub", "/home/ann/w"),
        ("/home/ann/plain/sub", "/home/ann/plain/sub"),
        ("/usr/share", "/usr/share"),
    ] {
        assert_eq!(workspace_root(Path::new(start), &host).unwrap(), abs(root), "{start}");
    }
    assert!(matches!(
        workspace_root(Path::new("/gone"), &host),
        Err(ResolveError::RootMissing(_))
    ));
    assert!(matches!(
        workspace_root(Path::new("/home/ann/f"), &host),
        Err(ResolveError::RootNotAFolder(_))
    ));
}
