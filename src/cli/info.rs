//! `pinfold info`, `pinfold verify` and `pinfold stop`: one session.

use super::Outcome;
use super::args::Select;
use super::list::{state, store, verification};
use super::output::{say, say_json};
use crate::base::text::visible;
use crate::launch::control::{select, stop as stop_session, verify as verify_session};
use crate::state::{Lifecycle, Record};
use std::process::ExitCode;

/// Everything that is known about one session.
pub fn info(args: Select) -> Outcome {
    let record = select(&store()?, args.session.as_deref())?;
    if args.output.json {
        say_json(&record);
    } else {
        lines(&record).into_iter().for_each(say);
    }
    Ok(ExitCode::SUCCESS)
}

/// Verifies a running session now; status 1 if it does not hold.
pub fn verify(args: Select) -> Outcome {
    let store = store()?;
    let record = select(&store, args.session.as_deref())?;
    let record = verify_session(&store, &record)?;
    let held = findings(&record).is_empty();
    if args.output.json {
        say_json(
            &serde_json::json!({"session": record.session_name, "verified": held, "reports": record.verification}),
        );
    } else {
        say(format_args!("{}: {}", record.session_name, verification(&record)));
        findings(&record)
            .into_iter()
            .for_each(|finding| say(format_args!("  {finding}")));
    }
    Ok(ExitCode::from(u8::from(!held)))
}

/// Ends a running session.
pub fn stop(args: Select) -> Outcome {
    let store = store()?;
    let record = select(&store, args.session.as_deref())?;
    let after = stop_session(&store, &record)?;
    let ended = !after.lifecycle_state.is_active();
    if args.output.json {
        say_json(&serde_json::json!({"session": after.session_name, "ended": ended, "state": after.lifecycle_state}));
    } else {
        say(format_args!(
            "{} {}",
            after.session_name,
            if ended { "has ended" } else { "could not be ended" }
        ));
    }
    Ok(ExitCode::from(u8::from(!ended)))
}

fn lines(record: &Record) -> Vec<String> {
    let mut lines = vec![
        format!("session    {}", record.session_name),
        format!("state      {}", state(record)),
        format!("pane       {} ({})", visible(record.pane_id.as_str()), record.host),
        format!(
            "agent      {} {}",
            record.agent,
            record.agent_version.as_deref().unwrap_or("(version not known yet)")
        ),
        format!("folder     {}", visible(record.local_path.as_path())),
        format!(
            "profiles   server {}, client {}",
            record.profile,
            record.client_profile.as_deref().unwrap_or("none")
        ),
        format!("verified   {}", verification(record)),
    ];
    lines.extend(
        findings(record)
            .into_iter()
            .map(|finding| format!("           {finding}")),
    );
    lines.extend(
        record
            .port
            .map(|port| format!("port       {port}, in the two sandboxes only")),
    );
    lines.extend(
        record
            .bridge
            .as_ref()
            .map(|bridge| format!("bridge     process {}", bridge.pid)),
    );
    lines.extend(
        record
            .server_log
            .as_ref()
            .map(|log| format!("server log {}", visible(log.as_path()))),
    );
    lines.extend(
        record
            .network_log
            .as_ref()
            .map(|log| format!("network    {}", visible(log.as_path()))),
    );
    lines.extend(
        record
            .last_error
            .as_ref()
            .map(|error| format!("error      {}", error.message)),
    );
    if record.lifecycle_state == Lifecycle::Exited {
        lines.extend(record.last_exit_code.map(|code| format!("exit       {code}")));
    }
    lines.extend(
        record
            .changed
            .iter()
            .map(|path| format!("changed    {}", visible(path.as_path()))),
    );
    lines
}

fn findings(record: &Record) -> Vec<String> {
    let reports = record
        .verification
        .as_ref()
        .and_then(|value| value.as_array())
        .into_iter()
        .flatten();
    let findings = reports
        .filter_map(|report| report.get("findings")?.as_array())
        .flatten();
    let text = |finding: &serde_json::Value| {
        let field = |name: &str| {
            finding
                .get(name)
                .and_then(|value| value.as_str())
                .unwrap_or_default()
                .to_owned()
        };
        visible(format!("{}: {}", field("check"), field("problem")))
    };
    findings.map(text).collect()
}
