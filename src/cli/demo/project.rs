//! The project of the demonstration: a shell program, a test that it fails, and what was made of both in the end.

use super::DemoError;
use super::met::Met;
use crate::base::AbsPath;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program.
pub const SOURCE: &str = "greet.sh";
/// Its test.
pub const TEST: &str = "test.sh";
/// What is wrong in the program, and what is right.
pub const BROKEN: &str = "echo \"Hello $1\"";
pub const FIXED: &str = "echo \"Hello, $1!\"";
/// The message of the model's commit.
pub const COMMIT: &str = "Greet as people do";

const TEST_TEXT: &str = "got=$(sh greet.sh world)
[ \"$got\" = 'Hello, world!' ] || { echo \"expected Hello, world! but got: $got\"; exit 1; }
echo passed
";

/// A git repository with one commit.
#[derive(Debug)]
pub struct Project {
    pub folder: AbsPath,
    environment: Vec<(OsString, OsString)>,
}

impl Project {
    /// Makes it; git gets this environment and no other.
    pub fn make(folder: AbsPath, environment: Vec<(OsString, OsString)>) -> Result<Project, DemoError> {
        let project = Project { folder, environment };
        let program = format!("# Greets whom it is told to.\n{BROKEN}\n");
        write(&project.folder, SOURCE, &program)?;
        write(&project.folder, TEST, TEST_TEXT)?;
        project.git(&["init", "-q"])?;
        // A template without hooks leaves no folder.
        let hooks = project.folder.as_path().join(".git/hooks");
        std::fs::create_dir_all(&hooks).map_err(|source| DemoError::Files {
            path: hooks.clone(),
            source,
        })?;
        project.git(&["add", SOURCE, TEST])?;
        project.git(&["commit", "-q", "-m", "A greeting"])?;
        Ok(project)
    }

    /// Whether the test passes now.
    pub fn test(&self) -> Result<Met, DemoError> {
        Ok(Met::of(&text(&self.run(
            "/bin/sh",
            &["-c", &super::met::marked(&format!("sh {TEST}"))],
        )?)))
    }

    /// Whether the fix is the last commit, and nothing else is changed.
    pub fn committed(&self) -> Result<Met, DemoError> {
        let said = |arguments: &[&str]| self.run("git", arguments).map(|output| text(&output).trim().to_owned());
        let subject = said(&["log", "-1", "--format=%s"])?;
        let program = said(&["show", &format!("HEAD:{SOURCE}")])?;
        let changed = said(&["status", "--porcelain"])?;
        Ok(match (subject == COMMIT, program.contains(FIXED), changed.is_empty()) {
            (true, true, true) => Met::Worked,
            (false, ..) => Met::Denied("there is no such commit".into()),
            (_, false, _) => Met::Denied("the commit lacks the change".into()),
            (.., false) => Met::Denied("something is left uncommitted".into()),
        })
    }

    fn git(&self, arguments: &[&str]) -> Result<(), DemoError> {
        let output = self.run("git", arguments)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(DemoError::Git {
            arguments: arguments.join(" "),
            said,
        })
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<Output, DemoError> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.iter().cloned());
        command
            .stdin(Stdio::null())
            .output()
            .map_err(|source| match source.kind() {
                std::io::ErrorKind::NotFound => DemoError::NoGit,
                _ => DemoError::Files {
                    path: program.into(),
                    source,
                },
            })
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes a file below a folder, and the folders above it.
pub fn write(folder: &AbsPath, name: impl AsRef<Path>, text: &str) -> Result<(), DemoError> {
    let path = folder.as_path().join(name);
    let failed = |source| DemoError::Files {
        path: path.clone(),
        source,
    };
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above).map_err(failed)?;
    }
    std::fs::write(&path, text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(folder: &tempfile::TempDir) -> Project {
        let environment = [
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("HOME", folder.path().as_os_str().to_owned()),
            ("GIT_AUTHOR_NAME", "a".into()),
            ("GIT_AUTHOR_EMAIL", "a@b.invalid".into()),
            ("GIT_COMMITTER_NAME", "a".into()),
            ("GIT_COMMITTER_EMAIL", "a@b.invalid".into()),
        ];
        let place = folder.path().join("it's a project");
        std::fs::create_dir(&place).unwrap();
        Project::make(
            AbsPath::new(place).unwrap(),
            environment.map(|(n, v)| (n.into(), v)).into(),
        )
        .unwrap()
    }

    #[test]
    fn the_test_fails_until_the_change_and_the_commit_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(&folder);
        assert_eq!(project.test().unwrap(), Met::Denied("Hello world".into()));
        assert_eq!(
            project.committed().unwrap(),
            Met::Denied("there is no such commit".into())
        );
        let path = project.folder.as_path().join(SOURCE);
        let fixed = std::fs::read_to_string(&path).unwrap().replace(BROKEN, FIXED);
        project.git(&["commit", "-q", "--allow-empty", "-m", COMMIT]).unwrap();
        assert_eq!(
            project.committed().unwrap(),
            Met::Denied("the commit lacks the change".into())
        );
        std::fs::write(&path, fixed).unwrap();
        assert_eq!(project.test().unwrap(), Met::Worked);
        project.git(&["commit", "-q", "-a", "-m", COMMIT]).unwrap();
        assert_eq!(project.committed().unwrap(), Met::Worked);
        std::fs::write(project.folder.as_path().join("left"), "").unwrap();
        assert_eq!(
            project.committed().unwrap(),
            Met::Denied("something is left uncommitted".into())
        );
    }
}
