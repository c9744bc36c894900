//! `pinfold explain`: the policy that a profile and the grants resolve to, line by line.

use super::Outcome;
use super::args::Explain;
use super::output::{say_bytes, say_json, tell};
use crate::launch::preview::Missing;
use crate::launch::run::DEFAULT_PROFILE;
use crate::launch::{Setting, Wish};
use crate::policy::explain;
use std::process::ExitCode;

/// Prints it. Nothing is made, and no agent is run.
pub fn run(args: Explain) -> Outcome {
    let setting = Setting::find()?;
    let preview = Wish::from(args.grants).preview(DEFAULT_PROFILE, &setting)?;
    let explanation = explain(&preview.policy);
    if args.output.json {
        let mut value = serde_json::to_value(&explanation).unwrap_or_default();
        value["agent_missing"] = preview.agent_missing.map(|missing| missing.problem).into();
        say_json(&value);
        return Ok(ExitCode::SUCCESS);
    }
    say_bytes(explanation.to_string().as_bytes());
    preview.agent_missing.as_ref().into_iter().for_each(tell_missing);
    Ok(ExitCode::SUCCESS)
}

/// Says that an agent's own lines are not in the answer.
pub fn tell_missing(missing: &Missing) {
    tell(format_args!(
        "pinfold: {}, so its own lines are left out",
        missing.problem
    ));
    if let Some(hint) = &missing.hint {
        tell(format_args!("  {hint}"));
    }
}
