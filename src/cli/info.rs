//! `pinfold info`, `pinfold verify` and `pinfold stop`: one session.

use super::Outcome;
use super::args::Select;
use super::list::{shown, state, store, verification};
use super::output::{say, say_json};
use crate::base::text::visible;
use crate::launch::control::{select, stop as stop_session, verify as verify_session};
use crate::state::{Lifecycle, Record, Timings};
use std::process::ExitCode;

/// Everything that is known about one session.
pub fn info(args: Select) -> Outcome {
    let record = select(&store()?, args.session.as_deref())?;
    if args.output.json {
        say_json(&shown(&record));
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
    let held = holds(&record);
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
            .map(|error| format!("error      {} ({})", error.message, error.kind)),
    );
    lines.extend(record.timings.as_ref().and_then(timings));
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

fn timings(timings: &Timings) -> Option<String> {
    let (ready, verified) = (timings.ready_ms?, timings.verified_ms?);
    Some(format!(
        "start      {verified} ms until both were verified, {ready} ms of them the agent's own"
    ))
}

/// Whether the last look found both sandboxes alive and as they should be.
fn holds(record: &Record) -> bool {
    let reports = record.verification.as_ref().and_then(|value| value.as_array());
    let ended = |report: &serde_json::Value| report.get("ended").and_then(serde_json::Value::as_bool) != Some(false);
    reports.is_some_and(|reports| !reports.is_empty() && !reports.iter().any(ended)) && findings(record).is_empty()
}

fn findings(record: &Record) -> Vec<String> {
    let reports = record.verification.as_ref().and_then(|value| value.as_array());
    reports.into_iter().flatten().flat_map(findings_of).collect()
}

fn findings_of(report: &serde_json::Value) -> Vec<String> {
    let field = |value: &serde_json::Value, name: &str| {
        let text = value.get(name).and_then(|value| value.as_str());
        visible(text.unwrap_or_default())
    };
    let sandbox = field(report, "sandbox");
    let findings = report.get("findings").and_then(|findings| findings.as_array());
    let text = |finding| format!("{sandbox} {}: {}", field(finding, "check"), field(finding, "problem"));
    findings.into_iter().flatten().map(text).collect()
}
