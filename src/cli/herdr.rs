//! `pinfold action`, `events` and `pane`: what Herdr calls. Its plugin is not part of this version, and says so in the
//! words that Herdr's users and their scripts read.

use super::output::{say, tell};
use std::ffi::OsString;
use std::process::ExitCode;

const MESSAGE: &str = "the Herdr plugin is not part of this version of Pinfold";
const HINT: &str = "`pinfold start --host terminal` runs an agent in the pane that you are in";

/// Answers an action with the result line of the Herdr sandbox plugins, the others with the message alone.
pub fn absent(verb: &str) -> ExitCode {
    if verb == "action" {
        let action = std::env::var_os("HERDR_PLUGIN_ACTION_ID").unwrap_or_else(|| OsString::from("unknown"));
        let result = serde_json::json!({
            "schemaVersion": 1, "plugin": "pinfold.sandbox", "action": action.to_string_lossy(), "ok": false,
            "errorKind": "startup", "message": MESSAGE,
        });
        say(format_args!("HERDR_SANDBOX_RESULT: {result}"));
    }
    tell(format_args!("pinfold {verb}: {MESSAGE}"));
    tell(format_args!("  {HINT}"));
    ExitCode::FAILURE
}
