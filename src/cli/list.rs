//! `pinfold list`: every recorded session.

use super::Outcome;
use super::args::Output;
use super::output::{say, say_json, tell};
use crate::base::Dirs;
use crate::base::text::visible;
use crate::state::{Listing, Record, Store};
use std::process::ExitCode;

/// Puts records right whose bridge died, and lists all.
pub fn run(output: Output) -> Outcome {
    let listing = store()?.reconcile_all()?;
    for problem in &listing.problems {
        tell(format_args!("pinfold: {problem}"));
    }
    if output.json {
        say_json(&as_json(&listing));
    } else if listing.records.is_empty() {
        say("no sessions; `pinfold start` begins one");
    } else {
        print(&listing.records);
    }
    Ok(ExitCode::SUCCESS)
}

/// The records of this user.
pub fn store() -> Result<Store, crate::base::Fault> {
    let environ = std::env::vars_os().collect();
    let dirs = Dirs::resolve(&environ, nix::unistd::geteuid())?;
    Ok(Store::open(&dirs)?)
}

fn as_json(listing: &Listing) -> serde_json::Value {
    let problems: Vec<String> = listing.problems.iter().map(ToString::to_string).collect();
    let records: Vec<_> = listing.records.iter().map(shown).collect();
    serde_json::json!({"sessions": records, "problems": problems})
}

/// A record as it may be shown: without what is meant for its bridge alone.
pub fn shown(record: &Record) -> Record {
    let mut shown = record.clone();
    shown.handover = None;
    shown
}

fn print(records: &[Record]) {
    let row = |record: &Record| {
        [
            record.session_name.clone(),
            state(record),
            verification(record),
            visible(record.local_path.as_path()),
        ]
    };
    let mut rows = vec![["SESSION", "STATE", "VERIFIED", "FOLDER"].map(str::to_owned)];
    rows.extend(records.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for [session, state, verified, folder] in &rows {
        let [a, b, c] = widths;
        say(format_args!("{session:a$}  {state:b$}  {verified:c$}  {folder}"));
    }
}

/// The lifecycle in one word, and what is wrong or weakened.
pub fn state(record: &Record) -> String {
    let word = match serde_json::to_value(record.lifecycle_state) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "unknown".into(),
    };
    let kind = record
        .last_error
        .as_ref()
        .map(|error| format!("{word} ({})", error.kind));
    let word = kind.unwrap_or(word);
    if record.weakened.is_empty() {
        word
    } else {
        format!("{word} WEAKENED")
    }
}

/// The last verification and its age.
pub fn verification(record: &Record) -> String {
    let reports = record.reports();
    if reports.is_empty() {
        return "not yet".into();
    }
    let findings = |report: &serde_json::Value| report.get("findings").and_then(|f| f.as_array()).map_or(0, Vec::len);
    let failed: usize = reports.iter().map(findings).sum();
    let at = reports
        .iter()
        .filter_map(|report| report.get("checked_at").and_then(serde_json::Value::as_u64))
        .max();
    let now = u64::try_from(crate::base::Timestamp::now().millis() / 1000).unwrap_or(0);
    let age = at.map_or_else(String::new, |at| format!(" {} s ago", now.saturating_sub(at)));
    if failed == 0 {
        format!("yes{age}")
    } else {
        format!("FAILED{age}")
    }
}
