//! Whether a launch notices how large the workspace is: its start, and the look at what changed after it.

use super::phases::Launch;
use super::trees::{self, Result};
use super::{Outcome, summary};
use std::path::Path;
use std::time::{Duration, Instant};

const FILES: usize = 200_000;
const ROUNDS: usize = 25;

/// Until the command runs, and all of it, in an empty folder and in a large one, in turn.
pub fn table() -> Outcome {
    let (empty, large) = (trees::workspace()?, trees::workspace()?);
    trees::fill(&large.path().join("work"), FILES)?;
    let places = [empty.path().join("work"), large.path().join("work")];
    let mut times = [
        [Vec::new(), Vec::new(), Vec::new()],
        [Vec::new(), Vec::new(), Vec::new()],
    ];
    for round in 0..=ROUNDS {
        for (place, times) in places.iter().zip(&mut times) {
            let taken = launch(place)?;
            if round > 0 {
                times.iter_mut().zip(taken).for_each(|(times, time)| times.push(time));
            }
        }
    }
    println!(
        "{:<40}{:>12}{:>14}{:>10}   /bin/true, {ROUNDS} rounds",
        "median ms, files in the workspace", 0, FILES, "ratio"
    );
    let [empty, large] = &mut times;
    for (name, (empty, large)) in STEPS.iter().zip(empty.iter_mut().zip(large)) {
        let ((empty, _), (large, _)) = (summary(empty), summary(large));
        println!("{name:<40}{empty:>12.1}{large:>14.1}{:>10.2}", large / empty);
    }
    println!("the look after a short launch stops after 150 ms, and says what it did not see");
    Ok(())
}

const STEPS: [&str; 3] = [
    "start: until the command runs",
    "the command, its end, the look after it",
    "whole",
];

fn launch(place: &Path) -> Result<[Duration; 3]> {
    let begin = Instant::now();
    let mut launch = Launch::start_in(place, &[], &["/bin/true"])?;
    let mut at = [None; 2];
    while let Some(event) = launch.event() {
        let index = ["released", "ended"].iter().position(|name| event["event"] == *name);
        if let Some(at) = index.and_then(|index| at.get_mut(index)) {
            *at = event["us"].as_u64().map(Duration::from_micros);
        }
    }
    if !launch.child.wait()?.success() {
        return Err("a launch failed".into());
    }
    let whole = begin.elapsed();
    let [released, ended] = at.map(Option::unwrap_or_default);
    Ok([released, ended.saturating_sub(released), whole])
}
