//! `pinfold info`, `pinfold verify` and `pinfold stop`: one session.

use super::Outcome;
use super::args::Select;
use super::list::{shown, state, store, verification};
use super::output::{say, say_json};
use crate::base::AbsPath;
use crate::base::text::visible;
use crate::launch::control::{Among, select, stop as stop_session, verify as verify_session};
use crate::sandbox::given::Given;
use crate::state::{Lifecycle, Record, Side, Timings};
use serde_json::Value;
use std::process::ExitCode;

/// Everything that is known about one session.
pub fn info(args: Select) -> Outcome {
    let store = store()?;
    let record = select(&store, args.session.as_deref(), Among::All)?;
    if args.output.json {
        say_json(&shown(&record));
    } else {
        lines(&record).into_iter().for_each(say);
    }
    store.mark_seen(&record);
    Ok(ExitCode::SUCCESS)
}

/// Verifies a running session now; status 1 if it does not hold.
pub fn verify(args: Select) -> Outcome {
    let store = store()?;
    let record = select(&store, args.session.as_deref(), Among::Running)?;
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
        processes(&record).into_iter().for_each(say);
    }
    Ok(ExitCode::from(u8::from(!held)))
}

/// Every process of the last look, a line each; what a process calls itself is escaped.
fn processes(record: &Record) -> Vec<String> {
    let lines = record.reports().iter().flat_map(|report| {
        let side = text(report, "sandbox");
        let processes = report.get("processes").and_then(Value::as_array).into_iter().flatten();
        processes.map(move |process| {
            let pid = process.get("pid").and_then(Value::as_i64).unwrap_or_default();
            let confined = process.get("confined").and_then(Value::as_bool) == Some(true);
            let verdict = if confined { "confined" } else { "NOT CONFINED" };
            format!(
                "  {side:<7} {pid:>7}  {:<8} {verdict:<9} {}",
                text(process, "role"),
                text(process, "command")
            )
        })
    });
    lines.collect()
}

fn text(value: &Value, name: &str) -> String {
    visible(value.get(name).and_then(Value::as_str).unwrap_or_default())
}

/// Ends a running session.
pub fn stop(args: Select) -> Outcome {
    let store = store()?;
    let record = select(&store, args.session.as_deref(), Among::Running)?;
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

/// What is known, a row each; what is not known has no row.
fn lines(record: &Record) -> Vec<String> {
    let path = |path: &Option<AbsPath>| path.as_ref().map(|path| visible(path.as_path()));
    let version = record.agent_version.as_deref().unwrap_or("(version not known yet)");
    let client = record.client_profile.as_deref().unwrap_or("none");
    let exit = record
        .last_exit_code
        .filter(|_| record.lifecycle_state == Lifecycle::Exited);
    let rows = [
        ("session", Some(record.session_name.clone())),
        ("state", Some(state(record))),
        (
            "pane",
            Some(format!("{} ({})", visible(record.pane_id.as_str()), record.host)),
        ),
        ("agent", Some(format!("{} {version}", record.agent))),
        ("folder", Some(visible(record.local_path.as_path()))),
        ("profiles", Some(format!("server {}, client {client}", record.profile))),
        ("verified", Some(verification(record))),
        (
            "port",
            record.port.map(|port| format!("{port}, in the two sandboxes only")),
        ),
        (
            "bridge",
            record.bridge.as_ref().map(|bridge| format!("process {}", bridge.pid)),
        ),
        ("server has", record.server.as_ref().and_then(given)),
        ("client has", record.client.as_ref().and_then(given)),
        ("server log", path(&record.server_log)),
        ("network", path(&record.network_log)),
        (
            "error",
            record
                .last_error
                .as_ref()
                .map(|error| format!("{} ({})", error.message, error.kind)),
        ),
        ("start", record.timings.as_ref().and_then(timings)),
        ("exit", exit.map(|code| code.to_string())),
    ];
    let single = rows.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let weakened = record.weakened.iter().map(|promise| ("weakened", visible(promise)));
    let missing = record
        .allow_missing
        .iter()
        .map(|promise| ("may miss", visible(promise)));
    let problems = findings(record).into_iter().map(|finding| ("finding", finding));
    let changed = record.changed.iter().map(|path| ("changed", visible(path.as_path())));
    let all = single.chain(weakened).chain(missing).chain(problems).chain(changed);
    all.map(|(name, value)| format!("{name:<11}{value}")).collect()
}

/// What the kernel gave to one sandbox.
fn given(side: &Side) -> Option<String> {
    let given: Given = serde_json::from_value(side.given.clone()?).ok()?;
    Some(visible(given.line()))
}

fn timings(timings: &Timings) -> Option<String> {
    let (ready, verified) = (timings.ready_ms?, timings.verified_ms?);
    Some(format!(
        "{verified} ms until both were verified, {ready} ms of them the agent's own"
    ))
}

/// Whether the last look found both sandboxes alive and as they should be.
fn holds(record: &Record) -> bool {
    let reports = record.reports();
    let ended = |report: &serde_json::Value| report.get("ended").and_then(serde_json::Value::as_bool) != Some(false);
    !reports.is_empty() && !reports.iter().any(ended) && findings(record).is_empty()
}

fn findings(record: &Record) -> Vec<String> {
    record.reports().iter().flat_map(findings_of).collect()
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
