//! For tests: a tiny disk that fills up.

use std::io::Write as _;
use std::process::Command;

/// Runs the ignored test `name` of this binary in a mount namespace of its own, with `PINFOLD_SMALL_DISK` naming a tmpfs
/// of `size` bytes. Where no such mount is allowed it says why and returns, or fails if `JAIL_MUST_WORK` is 1.
pub fn run(name: &str, size: usize) {
    let mount = format!("mount -t tmpfs -o size={size},mode=700 none \"$1\"");
    let folder = tempfile::tempdir().unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private"]);
    if !nix::unistd::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    let in_namespace = |script: &str| {
        let mut command = Command::new(unshare.get_program());
        command
            .args(unshare.get_args())
            .args(["sh", "-c", script, "sh"])
            .arg(folder.path());
        command
    };
    let probe = in_namespace(&mount).output().unwrap();
    if !probe.status.success() {
        let reason = String::from_utf8_lossy(&probe.stderr).into_owned();
        assert_ne!(
            std::env::var("JAIL_MUST_WORK").as_deref(),
            Ok("1"),
            "no tmpfs here: {reason}"
        );
        writeln!(std::io::stderr(), "skipped {name}: no tmpfs here: {reason}").unwrap();
        return;
    }
    let script = format!("{mount} && exec \"$2\" --exact \"$3\" --ignored");
    let inner = in_namespace(&script)
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env("PINFOLD_SMALL_DISK", folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&inner.stdout);
    assert!(inner.status.success() && output.contains("1 passed"), "{output}");
}
