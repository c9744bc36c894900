//! `pinfold probe`: attempts that an enclosed process must not manage. What they meet is the answer, not the status.

use super::Outcome;
use super::args::Probe;
use super::output::say;
use crate::base::{Explain, Kind};
use crate::launch::doctor::serve;
use crate::verify::probe::{Try, UsageError, attempt_all, attempt_by_name};
use serde::Serialize;
use std::process::ExitCode;

/// The answer could not be put in words.
#[derive(Debug, thiserror::Error)]
#[error("this program cannot find itself ({0})")]
struct NoProgram(std::io::Error);

impl Explain for NoProgram {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
}

/// Makes one attempt, or all of a batch, and prints a line of JSON.
pub fn run(args: Probe) -> Outcome {
    if args.targets {
        serve(&std::env::current_exe().map_err(NoProgram)?)?;
    } else if args.batch {
        let tries: Vec<Try> = serde_json::from_reader(std::io::stdin().lock()).map_err(not_a_batch)?;
        say(line(&attempt_all(&tries)?)?);
    } else {
        let name = args.name.unwrap_or_default();
        say(line(&attempt_by_name(&name, &args.arguments)?)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn not_a_batch(error: serde_json::Error) -> UsageError {
    UsageError::Batch(error.to_string())
}

fn line(value: &impl Serialize) -> Result<String, UsageError> {
    serde_json::to_string(value).map_err(not_a_batch)
}
