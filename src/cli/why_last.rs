//! `pinfold why --last`: what was refused while a launch ran, and the smallest grant for each.

use super::Outcome;
use super::output::{say, say_json, tell};
use crate::base::text::visible;
use crate::launch::{Setting, denials};
use crate::policy::remedy::Remedy;
use std::process::ExitCode;

/// What no log can have.
const UNSEEN: &str = "files that are not granted are not there inside, and protected ones are read-only: nobody hears of it when a \
                      program runs into that. `pinfold why PATH` answers for one";

/// Exit 0 if there is something to tell.
pub fn run(named: Option<&str>, as_json: bool) -> Outcome {
    let setting = Setting::find()?;
    let denials = denials::last(named, &setting)?;
    if as_json {
        let mut value = serde_json::to_value(&denials).unwrap_or_default();
        value["unseen"] = UNSEEN.into();
        say_json(&value);
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("refused in {}:", visible(&denials.launch)));
    for denied in &denials.denied {
        let times = if denied.count == 1 {
            String::new()
        } else {
            format!(" ({} times)", denied.count)
        };
        say(format_args!(
            "\n  {}{times}: {}",
            visible(&denied.subject),
            visible(&denied.reason)
        ));
        match &denied.remedy {
            Remedy::Grant { flag, profile } => {
                if let Some(flag) = flag {
                    say(format_args!("    to allow it once:    {flag}"));
                }
                say(format_args!("    to allow it always:  {profile}    (in a profile)"));
            }
            Remedy::None(reason) => say(format_args!("    not offered: {}", visible(reason))),
        }
    }
    if denials.denied.is_empty() {
        say("  nothing that a log has");
    }
    for path in &denials.changed {
        say(format_args!(
            "\n  {}: it is protected, was not there before, and was made",
            visible(path.as_path())
        ));
        say("    look at it before you use it");
    }
    if denials.cut {
        say("\n  and more than is told here");
    }
    say(format_args!("\n{UNSEEN}"));
    Ok(ExitCode::SUCCESS)
}

/// One line after a command that failed, if anything was refused to it.
pub fn hint(session: &str, setting: &Setting) {
    match denials::count(session, setting) {
        0 => {}
        1 => tell("pinfold: one thing was refused: `pinfold why --last`"),
        many => tell(format_args!(
            "pinfold: {many} things were refused: `pinfold why --last`"
        )),
    }
}
