//! What one enclosed launch costs: start-up beside other ways to run a command, where the time goes, memory,
//! verification of many processes, connects, ordinary work, large workspaces, and many sandboxes at once.
//!
//! A word of a table's name as the argument prints that table alone. Every figure stands beside a ratio of the same run; the numbers of one machine say little about another.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod crowd;
mod enclosed;
mod large;
mod memory;
mod phases;
mod startup;
mod terminal;
mod trees;
mod work;

use std::process::ExitCode;
use std::time::Duration;

/// Pinfold's program, built with the same profile as this one.
const PINFOLD: &str = env!("CARGO_BIN_EXE_pinfold");

fn main() -> ExitCode {
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    if wanted.as_deref() == Some(enclosed::CONNECTS) {
        return enclosed::connects();
    }
    if wanted.as_deref() == Some(work::ONCE) {
        return work::once();
    }
    let tables: [(&str, Table); 10] = [
        ("start-up", startup::table),
        ("where the time of `pinfold run -- /bin/true` goes", phases::table),
        ("memory that Pinfold adds for one sandbox", memory::table),
        ("verification", enclosed::verification),
        ("connect to the sandbox's own sockets", enclosed::connecting),
        ("work inside, beside bare", work::table),
        ("a large workspace", large::table),
        ("fifty at once", crowd::table),
        ("the terminal in between", terminal::table),
        ("an agent, from start to a verified client", agent::table),
    ];
    // `cargo bench --bench launch -- WORD` prints the tables with that word in their names.
    let words: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    // Not the folder that cargo builds in: to look through that after a launch takes longer than the launch.
    let place = match trees::project() {
        Ok(place) => place,
        Err(error) => {
            eprintln!("no folder to launch in: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = false;
    for (name, table) in tables.into_iter().filter(|(name, _)| is_wanted(name)) {
        println!("== {name}");
        if let Err(error) = table() {
            eprintln!("{name}: {error}");
            failed = true;
        }
        println!();
    }
    drop(place);
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Measures, and prints one table.
type Table = fn() -> Outcome;

/// A table was printed, or why not.
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Median and 95th percentile in milliseconds; zeros if there is nothing.
fn summary(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: usize| {
        let index = times.len().saturating_sub(1) * share / 100;
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    (at(50), at(95))
}
