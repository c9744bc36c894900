//! `pinfold completions`: made from the declaration of the arguments.

use super::args::Cli;
use super::output::say_bytes;
use clap::CommandFactory as _;
use std::process::ExitCode;

/// Prints the script for one shell.
pub fn print(shell: clap_complete::Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "pinfold", &mut script);
    say_bytes(&script);
    ExitCode::SUCCESS
}
