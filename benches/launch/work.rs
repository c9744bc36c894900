//! What work costs inside, beside the same work bare: the time of the work alone, which the copy of this program beside
//! it takes. What the launch around it costs is the table of start-up.

use super::trees::{self, Result};
use super::{Outcome, PINFOLD, summary};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The argument with which this program only runs a command and prints its microseconds.
pub const ONCE: &str = "once";

/// One piece of work, in a folder that was made for it.
struct Work {
    name: &'static str,
    make: fn(&Path) -> Result<()>,
    /// Puts the folder back to what it was; its time does not count.
    before: &'static str,
    work: &'static str,
    rounds: usize,
}

const WORKS: [Work; 4] = [
    Work {
        name: "find, 50,000 files",
        make: |folder| trees::fill(folder, 50_000),
        before: "true",
        work: "find . -type f -size +1k",
        rounds: 15,
    },
    Work {
        name: "git status, 20,000 files",
        make: |folder| trees::repository(folder, 20_000),
        before: "true",
        work: "git status --porcelain",
        rounds: 15,
    },
    Work {
        name: "npm install, 2,000 files",
        make: |folder| trees::package(folder, 2_000),
        before: "rm -rf node_modules cache package-lock.json",
        work: "npm install --offline --no-audit --no-fund --cache ./cache",
        rounds: 3,
    },
    Work {
        name: "make -j2, 60 files",
        make: |folder| trees::program(folder, 60),
        before: "make clean",
        work: "make -j2",
        rounds: 3,
    },
];

/// Medians of rounds in turn, and their ratio.
pub fn table() -> Outcome {
    println!(
        "{:<28}{:>12}{:>12}{:>10}{:>10}",
        "median ms", "bare", "inside", "ratio", "rounds"
    );
    for work in &WORKS {
        let program = work.work.split(' ').next().unwrap_or_default();
        if which::which(program).is_err() {
            println!("{:<28}{program} is not there", work.name);
            continue;
        }
        let folder = trees::workspace()?;
        let here = folder.path().join("work");
        (work.make)(&here)?;
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..work.rounds {
            for (way, times) in times.iter_mut().enumerate() {
                trees::run(Command::new("sh").args(["-c", work.before]).current_dir(&here))?;
                let time = if way == 0 {
                    bare(work, &here)?
                } else {
                    inside(work, &here)?
                };
                times.push(time);
            }
        }
        let [bare, inside] = times.each_mut().map(|times| summary(times).0);
        let (ratio, rounds) = (inside / bare, work.rounds);
        println!("{:<28}{bare:>12.1}{inside:>12.1}{ratio:>10.3}{rounds:>10}", work.name);
    }
    println!("the goal is 1.03; on a busy machine two runs differ by more than that");
    Ok(())
}

fn bare(work: &Work, here: &Path) -> Result<Duration> {
    taken(Command::new(std::env::current_exe()?).arg(ONCE), work, here)
}

fn inside(work: &Work, here: &Path) -> Result<Duration> {
    let exe = std::env::current_exe()?;
    let mut command = Command::new(PINFOLD);
    // Cargo's folder lies outside of the workspace.
    command
        .args(["run", "--block-net", "--read"])
        .arg(exe.parent().ok_or("no folder")?);
    taken(command.arg("--").arg(&exe).arg(ONCE), work, here)
}

fn taken(command: &mut Command, work: &Work, here: &Path) -> Result<Duration> {
    command
        .args(work.work.split(' '))
        .current_dir(here)
        .stdin(Stdio::null());
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("{}: {said}{}", work.name, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(Duration::from_micros(said.trim().parse()?))
}

/// What the copy of this program does: runs the command that follows, silently, and prints how long it took.
pub fn once() -> ExitCode {
    let mut words = std::env::args_os().skip(2);
    let Some(program) = words.next() else {
        return ExitCode::FAILURE;
    };
    let begin = Instant::now();
    let output = Command::new(program).args(words).output();
    let time = begin.elapsed().as_micros();
    match output {
        Ok(output) if output.status.success() => {
            println!("{time}");
            ExitCode::SUCCESS
        }
        Ok(output) => {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
