//! The steps of a launch, as `--status-fd` tells them, and a reader of it for the other tables.

use super::{Outcome, PINFOLD, summary};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 60;

/// A launch, and what it says about itself.
pub struct Launch {
    pub child: Child,
    status: BufReader<File>,
}

impl Launch {
    /// `pinfold run OPTIONS -- COMMAND`.
    pub fn start(options: &[&str], command: &[&str]) -> Result<Launch, Box<dyn std::error::Error>> {
        Launch::start_in(Path::new("."), options, command)
    }

    /// The same, in a folder.
    pub fn start_in(place: &Path, options: &[&str], command: &[&str]) -> Result<Launch, Box<dyn std::error::Error>> {
        // Not close-on-exec: the writing end is what the launch is told to write to.
        let (reader, writer) = nix::unistd::pipe()?;
        let child = Command::new(PINFOLD)
            .args(["run", "--status-fd", &writer.as_raw_fd().to_string()])
            .args(options)
            .arg("--")
            .args(command)
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Launch {
            child,
            status: BufReader::new(reader.into()),
        })
    }

    /// The next event; nothing when the launch has ended.
    pub fn event(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.status.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

/// The steps in their order: what ends each, and what it is.
const STEPS: [(&str, &str); 5] = [
    ("resolved", "resolve: profile and host to a frozen policy"),
    ("held", "spawn: namespaces, mounts, Landlock, seccomp"),
    ("verified", "verify: all of /proc read and judged"),
    ("released", "release"),
    ("ended", "the command, and the end of its sandbox"),
];

/// The median of each step, and its share of the whole.
pub fn table() -> Outcome {
    let mut steps: Vec<Vec<Duration>> = STEPS.iter().map(|_| Vec::new()).collect();
    let (mut rest, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let mut launch = Launch::start(&[], &["/bin/true"])?;
        let events: Vec<Value> = std::iter::from_fn(|| launch.event()).collect();
        if !launch.child.wait()?.success() {
            return Err("a launch failed".into());
        }
        let total = begin.elapsed();
        let mut before = Duration::ZERO;
        for ((name, _), times) in STEPS.iter().zip(&mut steps) {
            let event = events.iter().find(|event| event["event"] == *name);
            let at = event
                .and_then(|event| event["us"].as_u64())
                .ok_or("an event is missing")?;
            let at = Duration::from_micros(at);
            times.push(at.saturating_sub(before));
            before = at;
        }
        rest.push(total.saturating_sub(before));
        whole.push(total);
    }
    let (total, _) = summary(&mut whole);
    println!("{:<50}{:>10}{:>10}   {ROUNDS} rounds", "", "median ms", "share");
    let names = STEPS.iter().map(|(_, name)| *name);
    for (name, times) in names
        .chain(["loading, arguments' way in, the process's exit"])
        .zip(steps.iter_mut().chain([&mut rest]))
    {
        let (median, _) = summary(times);
        println!("{name:<50}{median:>10.2}{:>9.0}%", 100.0 * median / total);
    }
    println!("{:<50}{total:>10.2}", "whole");
    Ok(())
}
