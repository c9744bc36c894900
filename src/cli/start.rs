//! `pinfold start`: an agent in two sandboxes, here or in a new pane.

use super::Outcome;
use super::args::Start;
use super::output::{say, say_json, tell};
use super::run::warn;
use crate::launch::begin::{Begun, begin};
use crate::launch::{SessionWish, Setting, Wish};
use serde_json::json;
use std::process::ExitCode;

/// Starts it; in this terminal, the client's exit status is passed on.
pub fn run(args: Start) -> Outcome {
    let setting = Setting::find()?;
    let wish = SessionWish {
        wish: Wish::from(args.grants),
        agent: args.agent,
        binary: args.binary.map(Into::into),
        resume: args.resume,
        warn_only: args.on_failure == "warn",
        ready_timeout: args.ready_timeout,
        arguments: args.arguments,
    };
    match begin(wish, args.host.as_deref(), &setting, &mut super::bridge::progress)? {
        Begun::Elsewhere(record, pane) => {
            let answer = json!({"ok": true, "session": record.session_name, "launch": record.launch_id, "pane": pane, "host": record.host});
            if args.json {
                say_json(&answer)
            } else {
                say(format_args!("{} starts in {pane}", record.session_name))
            }
            Ok(ExitCode::SUCCESS)
        }
        Begun::Here(record, ended) => {
            warn(&ended.changed);
            if ended.exit.status() != 0 {
                super::why_last::hint(&record.session_name, &setting);
            }
            let answer = json!({"ok": true, "session": record.session_name, "status": ended.exit.status(), "changed": ended.changed});
            if args.json {
                say_json(&answer)
            } else {
                tell(format_args!("pinfold: {} has ended", record.session_name))
            }
            Ok(ExitCode::from(ended.exit.status()))
        }
    }
}
