//! Fifty sandboxes at once: whether each gets through, how long they take together, what each keeps, and what stays.

use super::enclosed::{enclose, release};
use super::memory::{children, size};
use super::phases::Launch;
use super::trees::Result;
use super::{Outcome, PINFOLD, summary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinfold::sandbox::Stream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MANY: usize = 50;
const ROUNDS: usize = 5;

/// Wall time, memory, and what is left.
pub fn table() -> Outcome {
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    let mut refused = 0;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let children: Vec<Child> = (0..MANY).map(|_| start()).collect::<Result<_>>()?;
        for mut child in children {
            refused += usize::from(!child.wait()?.success());
        }
        together.push(begin.elapsed());
        let begin = Instant::now();
        for _ in 0..MANY {
            refused += usize::from(!start()?.wait()?.success());
        }
        alone.push(begin.elapsed());
    }
    let ((together, _), (alone, _)) = (summary(&mut together), summary(&mut alone));
    println!("{:<58}{:>12}{:>10}   {ROUNDS} rounds", "", "median ms", "ratio");
    println!(
        "{:<58}{alone:>12.0}{:>10}",
        format!("{MANY} launches of /bin/true, one after another"),
        1
    );
    println!(
        "{:<58}{together:>12.0}{:>10.2}",
        format!("{MANY} at once, until all have ended"),
        together / alone
    );
    println!("{:<58}{refused:>12}", format!("refused, of {}", 2 * MANY * ROUNDS));
    println!(
        "{:<58}{:>12}",
        "KiB of Pinfold's own processes for each of them (PSS)",
        memory()? / MANY as u64
    );
    let [before, after] = descriptors()?;
    println!(
        "{:<58}{:>12}",
        format!("descriptors after {MANY} in one process, of {before} before"),
        after
    );
    println!("{:<58}{:>12}", "processes of Pinfold left", left()?);
    if refused == 0 {
        Ok(())
    } else {
        Err("a sandbox was refused".into())
    }
}

fn start() -> Result<Child> {
    let mut command = Command::new(PINFOLD);
    command.args(["run", "--", "/bin/true"]);
    Ok(command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?)
}

/// The sum over all while all run.
fn memory() -> Result<u64> {
    let mut launches = Vec::new();
    for _ in 0..MANY {
        launches.push(Launch::start(&[], &["/bin/sleep", "600"])?);
    }
    let mut sum = 0;
    for launch in &mut launches {
        let mut events = std::iter::from_fn(|| launch.event());
        if !events.any(|event| event["event"] == "released") {
            return Err("one was not released".into());
        }
    }
    // What a start leaves behind has been given back by then.
    std::thread::sleep(Duration::from_millis(500));
    for launch in &launches {
        let supervisor = i32::try_from(launch.child.id())?;
        for pid in children(supervisor)?.into_iter().chain([supervisor]) {
            sum += size(pid)?;
        }
    }
    for mut launch in launches {
        kill(Pid::from_raw(i32::try_from(launch.child.id())?), Signal::SIGTERM)?;
        launch.child.wait()?;
    }
    Ok(sum)
}

/// Of this process, before and after so many sandboxes that it had at once.
fn descriptors() -> Result<[usize; 2]> {
    let count = || -> Result<usize> { Ok(std::fs::read_dir("/proc/self/fd")?.count()) };
    let before = count()?;
    let mut running = Vec::new();
    for _ in 0..MANY {
        let (jailed, subject) = enclose(vec!["/bin/true".into()], Stream::Inherited, Vec::new())?;
        running.push(release(jailed, &subject)?);
    }
    running.into_iter().for_each(|sandbox| {
        sandbox.end();
    });
    Ok([before, count()?])
}

/// Processes that run the measured program still.
fn left() -> Result<usize> {
    let own = std::fs::canonicalize(PINFOLD)?;
    let runs = |entry: &std::fs::DirEntry| std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == own);
    Ok(std::fs::read_dir("/proc")?.flatten().filter(runs).count())
}
