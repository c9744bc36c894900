//! Large folders to work in, made by the bench and gone with it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Files of one folder.
const TOGETHER: usize = 200;

/// A folder that is a workspace of its own, wherever it lies.
pub fn workspace() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("work"))?;
    Ok(folder)
}

/// A small project with a git folder, where this process is from now on.
pub fn project() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for inside in [".git/hooks", ".git/objects", ".git/refs", "src"] {
        std::fs::create_dir_all(folder.path().join(inside))?;
    }
    std::fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/main\n")?;
    std::fs::write(folder.path().join(".git/config"), "[core]\n\tbare = false\n")?;
    fill(&folder.path().join("src"), 100)?;
    std::env::set_current_dir(folder.path())?;
    Ok(folder)
}

/// So many small files in folders, in two levels of folders.
pub fn fill(folder: &Path, files: usize) -> Result<()> {
    let mut inside = PathBuf::new();
    for number in 0..files {
        if number % TOGETHER == 0 {
            let count = number / TOGETHER;
            inside = folder.join(format!("d{}/e{}", count / 16, count % 16));
            std::fs::create_dir_all(&inside)?;
        }
        std::fs::write(inside.join(format!("f{number}.txt")), b"a file\n")?;
    }
    Ok(())
}

/// A repository with so many files committed.
pub fn repository(folder: &Path, files: usize) -> Result<()> {
    fill(folder, files)?;
    for words in [
        "init -q",
        "add -A",
        "-c user.name=bench -c user.email=bench@localhost commit -q -m files",
    ] {
        run(Command::new("git").args(words.split(' ')).current_dir(folder))?;
    }
    Ok(())
}

/// A package of so many files as `package.tgz`, and a project that wants it.
pub fn package(folder: &Path, files: usize) -> Result<()> {
    let package = folder.join("package");
    fill(&package, files)?;
    std::fs::write(package.join("package.json"), r#"{"name":"many","version":"1.0.0"}"#)?;
    run(Command::new("tar")
        .args(["-czf", "package.tgz", "package"])
        .current_dir(folder))?;
    std::fs::remove_dir_all(package)?;
    let wants = r#"{"name":"bench","version":"1.0.0","dependencies":{"many":"file:package.tgz"}}"#;
    std::fs::write(folder.join("package.json"), wants)?;
    Ok(())
}

/// A program of so many C files.
pub fn program(folder: &Path, files: usize) -> Result<()> {
    let mut objects = String::new();
    for number in 0..files {
        let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
        for part in 0..20 {
            writeln!(
                text,
                "int f{number}_{part}(int n) {{ int s = 0; for (int i = 0; i < n; i++) s += i * {part}; printf(\"%d\", s); return s; }}"
            )?;
        }
        std::fs::write(folder.join(format!("f{number}.c")), text)?;
        write!(objects, " f{number}.o")?;
    }
    std::fs::write(folder.join("main.c"), "int main(void) { return 0; }\n")?;
    let rules = format!("CFLAGS = -O1\nprogram: main.o{objects}\n\t$(CC) -o $@ $^\nclean:\n\trm -f *.o program\n");
    std::fs::write(folder.join("Makefile"), rules)?;
    Ok(())
}

/// Runs it to a good end, or says what it was.
pub fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{command:?}: {}\n{said}", output.status).into())
}
