//! `pinfold prune`: forgets ended agents.

use super::Outcome;
use super::args::Prune;
use super::list::store;
use super::output::{say, say_json};
use crate::launch::control::{Among, select};
use crate::state::prune::Which;
use std::process::ExitCode;

/// Forgets what has ended and was seen; with `--all` the rest of the ended ones as well.
pub fn run(args: Prune) -> Outcome {
    let store = store()?;
    let named = args.session.as_deref();
    let one = named.map(|key| select(&store, Some(key), Among::All)).transpose()?;
    let which = if args.all { Which::All } else { Which::Seen };
    let done = store.prune(which, one.as_ref())?;
    // One that was named and still runs is in neither list.
    let is_missing = one.is_some() && done.pruned.is_empty();
    if args.output.json {
        say_json(&done);
        return Ok(ExitCode::from(u8::from(is_missing)));
    }
    for gone in &done.pruned {
        say(format_args!("forgotten: {}", gone.session_name));
    }
    for kept in &done.kept {
        say(format_args!("kept: {} ({})", kept.session_name, kept.reason));
    }
    match (&one, done.pruned.len() + done.kept.len()) {
        (Some(record), 0) => say(format_args!("kept: {} (it has not ended)", record.session_name)),
        (None, 0) => say("nothing has ended that could be forgotten"),
        _ => {}
    }
    Ok(ExitCode::from(u8::from(is_missing)))
}
