//! A folder for everything of one demonstration: a home, Pinfold's and OpenCode's folders, and the project. It goes when
//! this value goes.

use super::DemoError;
use super::attempt::{MULTIPLEXER, PROFILE, PROGRAM, TMUX_SOCKET, TOKEN};
use super::project::{Project, write};
use crate::agent::scripted::{BASE_URL, configuration};
use crate::base::{AbsPath, Dirs, Environ, Fault};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A socket's path has 107 bytes at most; this leaves room for what stands below.
const LONGEST: usize = 60;
/// Of the person's variables, those that decide how programs are found and letters shown.
const PASSED_ON: [&str; 5] = ["PATH", "USER", "LOGNAME", "LANG", "LC_ALL"];
/// Git's identity in the demonstration.
const GITCONFIG: &str = "[user]\n\tname = Scripted model\n\temail = model@demo.invalid\n";
/// No key: what a thief would see.
const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nthis stands in for a key\n-----END OPENSSH PRIVATE KEY-----\n";

/// The folder.
#[derive(Debug)]
pub struct Area {
    root: AbsPath,
    environment: Vec<(OsString, OsString)>,
}

impl Area {
    /// Makes it below the folder for temporary files.
    pub fn make(environ: &Environ, program: &Path, tmux: Option<&Path>) -> Result<Area, DemoError> {
        let root = make_root(&std::env::temp_dir())?;
        let mut area = Area {
            root,
            environment: Vec::new(),
        };
        area.environment = area.variables(environ, program, tmux);
        area.fill()?;
        Ok(area)
    }

    fn fill(&self) -> Result<(), DemoError> {
        let private = |path: PathBuf| {
            let made = std::fs::create_dir_all(&path);
            made.and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)))
                .map_err(|source| DemoError::Files { path, source })
        };
        for folder in [
            "home/.ssh",
            "config/pinfold/profiles",
            "state",
            "data",
            "run",
            "project",
        ] {
            private(self.path(folder))?;
        }
        let files = [
            ("home/.ssh/id_ed25519", KEY.to_owned()),
            ("home/.gitconfig", GITCONFIG.to_owned()),
            ("config/opencode/opencode.json", configuration(BASE_URL)),
            (
                "config/pinfold/profiles/mine.json",
                "{\"meta\": {\"name\": \"mine\"}, \"extends\": \"default\"}\n".into(),
            ),
        ];
        files.iter().try_for_each(|(name, text)| write(&self.root, name, text))
    }

    fn variables(&self, environ: &Environ, program: &Path, tmux: Option<&Path>) -> Vec<(OsString, OsString)> {
        let kept = PASSED_ON.iter().filter_map(|name| {
            let value = environ.get(OsStr::new(name))?;
            Some((OsString::from(name), value.clone()))
        });
        let fixed = [
            ("TERM", "xterm-256color"),
            ("SHELL", "/bin/sh"),
            (TOKEN, "this-stands-in-for-a-token"),
        ];
        let folders = [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_RUNTIME_DIR", "run"),
        ];
        let fixed = fixed.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let folders = folders.map(|(name, folder)| (OsString::from(name), self.path(folder).into_os_string()));
        let aims = self
            .aims(program, tmux)
            .map(|(name, path)| (OsString::from(name), path.into_os_string()));
        kept.chain(fixed).chain(folders).chain(aims).collect()
    }

    /// The paths that attempts aim at, by variable; a launch is given these and no others.
    pub fn aims(&self, program: &Path, tmux: Option<&Path>) -> impl Iterator<Item = (&'static str, PathBuf)> + use<> {
        let own = [
            (PROGRAM, program.to_owned()),
            (MULTIPLEXER, self.multiplexer()),
            (PROFILE, self.path("config/pinfold/profiles/mine.json")),
        ];
        own.into_iter()
            .chain(tmux.map(|socket| (TMUX_SOCKET, socket.to_owned())))
    }

    /// The environment of the launch and of every control.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Where the launch keeps its files.
    pub fn dirs(&self) -> Result<Dirs, Fault> {
        let environ: Environ = self.environment.iter().cloned().collect();
        Ok(Dirs::resolve(&environ, nix::unistd::geteuid())?)
    }

    /// Where the stand-in for a multiplexer's socket is.
    pub fn multiplexer(&self) -> PathBuf {
        self.path("run/multiplexer.sock")
    }

    /// Makes the project.
    pub fn project(&self) -> Result<Project, DemoError> {
        let path = self.path("project");
        let folder = AbsPath::new(&path).map_err(|_| DemoError::Place(path))?;
        Project::make(folder, self.environment.clone())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.as_path().join(name)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // Nobody is left to tell, and a folder for temporary files is cleared by the system at last.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn make_root(temporary: &Path) -> Result<AbsPath, DemoError> {
    // Resolved, so that paths inside and outside read alike.
    let real = temporary
        .canonicalize()
        .ok()
        .filter(|path| path.as_os_str().as_bytes().len() <= LONGEST);
    let below = real.unwrap_or_else(|| PathBuf::from("/tmp"));
    let template = below.join("pinfold-demo.XXXXXX");
    let made = nix::unistd::mkdtemp(&template);
    let path = made.map_err(|errno| DemoError::Files {
        path: template,
        source: errno.into(),
    })?;
    AbsPath::new(&path).map_err(|_| DemoError::Place(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_on_nothing_that_leads_elsewhere_and_leaves_nothing() {
        let names = [
            "PATH",
            "HOME",
            "TMUX",
            "HERDR_PLUGIN_STATE_DIR",
            "XDG_STATE_HOME",
            "OPENAI_API_KEY",
        ];
        let environ: Environ = names.map(|name| (name.into(), "/mine".into())).into_iter().collect();
        let area = Area::make(&environ, Path::new("/p"), Some(Path::new("/t"))).unwrap();
        let root = area.root.as_path().to_owned();
        let theirs: Vec<_> = area
            .environment()
            .iter()
            .filter(|(_, value)| value == "/mine")
            .collect();
        assert_eq!(theirs, [&(OsString::from("PATH"), OsString::from("/mine"))]);
        for folder in [
            area.dirs().unwrap().state,
            area.dirs().unwrap().config,
            area.dirs().unwrap().runtime,
        ] {
            assert!(folder.as_path().starts_with(&root), "{folder}");
        }
        assert_eq!(root.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(area);
        assert!(!root.exists());
    }

    #[test]
    fn a_place_whose_sockets_would_have_too_long_a_path_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(80));
        std::fs::create_dir(&long).unwrap();
        let root = make_root(&long).unwrap();
        assert!(root.as_path().starts_with("/tmp"));
        std::fs::remove_dir(&root).unwrap();
    }
}
