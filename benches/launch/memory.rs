//! What Pinfold's own processes take while a sandbox runs: proportional set sizes, as the kernel sums them.

use super::Outcome;
use super::phases::Launch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;

/// With and without a door.
pub fn table() -> Outcome {
    println!(
        "{:<34}{:>12}{:>10}{:>10}{:>10}{:>10}",
        "", "supervisor", "first", "mender", "door", "sum KiB"
    );
    for (name, options) in [
        ("no network", &["--block-net"][..]),
        ("broker", &[]),
        ("broker and a published port", &["--listen-port", "48117"]),
    ] {
        let [supervisor, first, mender, door] = of_launch(options)?;
        let sum = supervisor + first + mender + door;
        println!("{name:<34}{supervisor:>12}{first:>10}{mender:>10}{door:>10}{sum:>10}");
    }
    println!("goal 3072, must be below 6144; the pages of the program's file are most of it");
    Ok(())
}

/// KiB of the supervisor, the sandbox's first process, the mender and the door (0 if there is none).
fn of_launch(options: &[&str]) -> Result<[u64; 4], Box<dyn std::error::Error>> {
    let mut launch = Launch::start(options, &["/bin/sleep", "60"])?;
    let events = std::iter::from_fn(|| launch.event());
    let mut first = None;
    for event in events {
        first = event["first"].as_i64().or(first);
        if event["event"] == "released" {
            break;
        }
    }
    let first = i32::try_from(first.ok_or("it was not held")?)?;
    let supervisor = i32::try_from(launch.child.id())?;
    // What a start leaves behind has been given back by then.
    std::thread::sleep(Duration::from_millis(500));
    let others: Vec<i32> = children(supervisor)?.into_iter().filter(|pid| *pid != first).collect();
    // The door lives in the sandbox's network, the mender in the host's.
    let network = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let is_outside = |pid: &&i32| network(**pid) == network(supervisor);
    let mender = others.iter().find(is_outside).copied();
    let door = others.into_iter().find(|pid| Some(*pid) != mender);
    let sizes = [Some(supervisor), Some(first), mender, door].map(|pid| pid.map_or(Ok(0), size));
    kill(Pid::from_raw(supervisor), Signal::SIGTERM)?;
    launch.child.wait()?;
    let [supervisor, first, mender, door] = sizes;
    Ok([supervisor?, first?, mender?, door?])
}

/// Processes that this one made and has not yet reaped.
pub fn children(pid: i32) -> std::io::Result<Vec<i32>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// KiB of one process, shared pages in parts.
pub fn size(pid: i32) -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .ok_or("no Pss")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
