//! The command line: one file for each verb.
#![forbid(unsafe_code)]

mod args;
mod bridge;
mod completions;
mod demo;
mod doctor;
mod explain;
mod herdr;
mod info;
mod list;
mod output;
mod probe;
mod profile;
mod prune;
mod run;
mod shell;
mod start;
mod start_up;
mod status;
mod why;
mod why_last;
mod wish;

use crate::base::Fault;
use args::{Cli, Verb};
use clap::Parser as _;
use std::process::ExitCode;
use std::time::Instant;

/// What a verb comes to.
type Outcome = Result<ExitCode, Fault>;

/// Sanitises the process, parses its arguments, runs one verb and prints at most one error.
pub fn main() -> ExitCode {
    let begun = Instant::now();
    if let Err(errno) = start_up::sanitise() {
        output::tell(format_args!("pinfold: this process cannot be put in order ({errno})"));
        return ExitCode::from(status::OWN_FAILURE);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let wraps = status::wraps(&cli.verb);
    let as_json = status::wants_json(&cli.verb);
    dispatch(cli.verb, begun).unwrap_or_else(|fault| {
        output::fail(&fault, as_json);
        ExitCode::from(status::of_failure(wraps, fault.kind()))
    })
}

fn dispatch(verb: Verb, begun: Instant) -> Outcome {
    match verb {
        Verb::Start(args) => start::run(args),
        Verb::Run(args) => run::run(args, begun),
        Verb::Shell(args) => shell::run(args),
        Verb::Stop(args) => info::stop(args),
        Verb::List(output) => list::run(output),
        Verb::Info(args) => info::info(args),
        Verb::Prune(args) => prune::run(args),
        Verb::Verify(args) => info::verify(args),
        Verb::Bridge(args) => bridge::run(args),
        Verb::Demo(args) => demo::run(args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Explain(args) => explain::run(args),
        Verb::Why(args) => why::run(args),
        Verb::Profile(args) => profile::run(args.verb),
        Verb::Probe(args) => probe::run(args),
        Verb::Completions { shell } => Ok(completions::print(shell)),
        Verb::Action(_) => Ok(herdr::absent("action")),
        Verb::Events(_) => Ok(herdr::absent("events")),
        Verb::Pane(_) => Ok(herdr::absent("pane")),
    }
}
