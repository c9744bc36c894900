//! `pinfold probe`: one attempt that an enclosed process must not manage, and what it met.

use super::Outcome;
use super::args::Probe;
use super::output::say;
use crate::verify::probe::{Tried, attempt_by_name};
use std::process::ExitCode;

/// Makes the attempt and prints what it met as one line of JSON; the exit status says whether it worked.
pub fn run(args: &Probe) -> Outcome {
    let met = attempt_by_name(&args.name, &args.arguments)?;
    say(serde_json::json!(met));
    Ok(ExitCode::from(u8::from(met.result != Tried::Done)))
}
