//! A tiny registry on the host's loopback, tools that the tests' set-up installed, and what a folder holds.

use crate::harness::PYTHON;
use crate::place::{Ended, Place, finish};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SERVER: &str = include_str!("registry.py");

/// `registry.py`, running; dropped, it is ended.
pub struct Registry {
    child: Child,
    pub port: String,
    asked: PathBuf,
}

impl Registry {
    /// `tls` is a file with certificate and key.
    pub fn start(place: &Place, tls: Option<&Path>) -> Registry {
        let asked = place.path().join("asked");
        std::fs::write(&asked, "").unwrap();
        let mut command = place.command(PYTHON);
        command.args(["-I", "-c", SERVER]).arg(&asked).args(tls);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        let said = child.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut port).unwrap();
        let port = port.trim().to_owned();
        assert_ne!(port, "", "the registry did not come up");
        Registry { child, port, asked }
    }

    /// The paths that were asked for since the last call.
    pub fn asked(&self) -> String {
        let asked = std::fs::read_to_string(&self.asked).unwrap();
        std::fs::write(&self.asked, "").unwrap();
        asked
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Folders of programs that no system folder has: inside they are granted, and on both sides they are on the PATH.
pub struct Toolbox(Vec<PathBuf>);

impl Toolbox {
    /// What `bin/run.sh` installed, and the Rust that runs this test.
    pub fn find() -> Toolbox {
        let installed = std::env::var_os("PINFOLD_TEST_TOOLS").map(PathBuf::from);
        let rust = std::env::var_os("CARGO").map(|cargo| PathBuf::from(cargo).with_file_name("").join(".."));
        let folders = installed.into_iter().chain(rust);
        Toolbox(folders.filter_map(|folder| folder.canonicalize().ok()).collect())
    }

    pub fn has(&self, place: &Place, tool: &str) -> bool {
        self.outside(place, &format!("command -v {tool}")).code() == 0
    }

    fn equip<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let own = self.0.iter().map(|folder| folder.join("bin"));
        let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        command.env("PATH", std::env::join_paths(own.chain(system)).unwrap())
    }

    /// A script on the host, in the workspace.
    pub fn outside(&self, place: &Place, script: &str) -> Ended {
        finish(self.equip(place.command("sh").args(["-ec", script])))
    }

    /// The same inside.
    pub fn inside(&self, place: &Place, options: &[&str], script: &str) -> Ended {
        let mut all = options.to_vec();
        for folder in &self.0 {
            all.extend(["--read", folder.to_str().unwrap()]);
        }
        finish(self.equip(&mut place.run(&all, &["sh", "-ec", script])))
    }
}

/// Every file below a folder, with what is in it.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.symlink_metadata().unwrap() {
            meta if meta.is_dir() => found.extend(contents(&path)),
            meta if meta.is_file() => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
            _ => {}
        }
    }
    found
}
