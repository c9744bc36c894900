//! The agents under test.

use crate::place::Place;
use pinfold::agent::scripted::{self, Script, Server};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCE: &str = include_str!("fake/agent.c");

/// Says why something is not tested, which is a failure where everything must be.
pub fn skip(reason: &str) {
    let must = std::env::var_os("JAIL_MUST_WORK").is_some_and(|value| value == "1");
    assert!(!must, "{reason}");
    eprintln!("skipped: {reason}");
}

/// The real OpenCode, or nothing after saying why.
pub fn opencode() -> Option<PathBuf> {
    let named = std::env::var_os("PINFOLD_TEST_OPENCODE").map(PathBuf::from);
    let installed = || {
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/opencode/node_modules");
        let packages = std::fs::read_dir(modules).ok()?.flatten();
        packages
            .map(|entry| entry.path().join("bin/opencode"))
            .filter(|path| path.is_file())
            .min()
    };
    let found = named.or_else(installed);
    if found.is_none() {
        skip("no OpenCode: set PINFOLD_TEST_OPENCODE, or let `bin/run.sh test` install it");
    }
    found
}

/// An agent that behaves as its name says, in this place's own folder; see `fake/agent.c`.
pub fn fake(place: &Place, behaviour: &str) -> PathBuf {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("agent.c"), folder.path().join("agent"));
        std::fs::write(&source, SOURCE).unwrap();
        let status = Command::new("cc")
            .arg("-O1")
            .arg("-o")
            .args([&program, &source])
            .status();
        assert!(status.expect("cc, of the package gcc").success());
        std::fs::read(program).unwrap()
    });
    let path = place.path().join("agents").join(behaviour);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, built).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    path
}

/// A scripted model, and the place's OpenCode configuration that names it.
pub fn model(place: &Place, script: Script) -> (Server, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(listener, script).unwrap();
    let folder = place.home().join(".config/opencode");
    std::fs::create_dir_all(&folder).unwrap();
    let configuration = scripted::configuration(scripted::BASE_URL);
    std::fs::write(folder.join("opencode.json"), configuration).unwrap();
    let service = format!("--service=model.pinfold={}", server.address());
    (server, service)
}
