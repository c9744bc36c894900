//! The built program as a person runs it: a copy that everybody can read, a home of its own, an empty environment.

use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Who runs it. The ordinary user has no entry in the user database, and no rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    Own,
    Ordinary,
}

const ORDINARY: u32 = 4242;

/// Everybody that this process can be.
pub fn users() -> Vec<User> {
    if nix::unistd::geteuid().is_root() {
        vec![User::Own, User::Ordinary]
    } else {
        vec![User::Own]
    }
}

/// A place to run in; gone when dropped.
pub struct Place {
    pub root: tempfile::TempDir,
    user: User,
}

impl Place {
    pub fn new(user: User) -> Place {
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        // Not in this process: a test that forks meanwhile would hold the copy open for writing, and so busy.
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_pinfold"))
            .arg(root.path().join("pinfold"))
            .status();
        assert!(copied.unwrap().success());
        let place = Place { root, user };
        for name in ["home", "tmp", "run", "work"] {
            place.folder(name);
        }
        place
    }

    /// A path below the place.
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(name)
    }

    /// A folder of the user's own.
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        if self.user == User::Ordinary {
            chown(&path, Some(ORDINARY), Some(ORDINARY)).unwrap();
        }
        path
    }

    /// A profile that everybody can read.
    pub fn profile(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(format!("{name}.json"));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program, or another that runs it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.at("home"))
            .env("TMPDIR", self.at("tmp"))
            .env("XDG_RUNTIME_DIR", self.at("run"))
            .current_dir(self.at("work"));
        if self.user == User::Ordinary {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        command
    }

    pub fn binary(&self) -> PathBuf {
        self.at("pinfold")
    }

    /// Runs it and collects everything that it says.
    pub fn run(&self, arguments: &[&str]) -> Said {
        Said::of(self.command(self.binary()).args(arguments).output().unwrap())
    }

    /// What is left in the folder for temporary files.
    pub fn left_behind(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.at("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// What a run said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: Output) -> Said {
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
