//! `pinfold doctor`: what this machine can enforce, and what an escape from a throw-away sandbox came to.

use super::Outcome;
use super::args::Doctor;
use super::output::{say, say_json};
use super::profile::names;
use crate::base::text::visible;
use crate::launch::Setting;
use crate::launch::doctor::{Diagnosis, LayerRow, ProbeRow, PromiseRow, Reduced, State, examine};
use crate::verify::probe::{self, Tried, Verdict};
use std::ffi::OsStr;
use std::process::ExitCode;

/// Exit 0 only if every layer is there and every attempt with a control was denied.
pub fn run(args: &Doctor) -> Outcome {
    if args.every_profile {
        return every(args.output.json);
    }
    let diagnosis = examine(&args.profile, Setting::find()?)?;
    if args.output.json {
        say_json(&diagnosis);
    } else {
        text(&diagnosis).iter().for_each(say);
    }
    Ok(if diagnosis.ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The same under every profile, a line each and what does not hold below it.
fn every(as_json: bool) -> Outcome {
    let mut all = Vec::new();
    for (name, _) in names(&Setting::find()?) {
        let diagnosis = examine(OsStr::new(&name), Setting::find()?)?;
        if !as_json {
            say(format!(
                "{:18} {}, in {} ms",
                visible(&name),
                summary(&diagnosis),
                diagnosis.took_ms
            ));
            wrong(&diagnosis).iter().for_each(say);
        }
        all.push(diagnosis);
    }
    if as_json {
        say_json(&all);
    }
    let holds = all.iter().all(|diagnosis| diagnosis.ok);
    Ok(ExitCode::from(u8::from(!holds)))
}

/// What does not hold.
fn wrong(diagnosis: &Diagnosis) -> Vec<String> {
    let mut lines = Vec::new();
    let layers = diagnosis.layers.iter().filter(|row| row.state != State::Enforced);
    lines.extend(layers.flat_map(layer));
    lines.extend(
        diagnosis
            .profile
            .problem
            .as_ref()
            .map(|problem| format!("  {}", visible(problem))),
    );
    lines.extend(diagnosis.promises.iter().filter(|row| !row.ok).map(promise));
    let escaped = diagnosis
        .probes
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Escaped | Verdict::Unproven));
    lines.extend(escaped.map(attempt));
    lines.extend(
        diagnosis
            .problem
            .as_ref()
            .map(|problem| format!("  {}", visible(problem))),
    );
    lines
}

fn text(diagnosis: &Diagnosis) -> Vec<String> {
    let mut lines = vec!["layers".to_owned()];
    lines.extend(diagnosis.layers.iter().flat_map(layer));
    lines.push("\nkernel".into());
    lines.extend(diagnosis.kernel.iter().map(|row| {
        let mark = match (row.available, row.needed) {
            (true, _) => "yes",
            (false, true) => "MISSING",
            (false, false) => "no",
        };
        format!("  {mark:9} {:21} {} ({})", row.name, row.detail, row.note)
    }));
    lines.push("\nhost".into());
    lines.extend(host(diagnosis));
    lines.push("\nlaunch".into());
    lines.extend(launch(diagnosis));
    lines.push("\npromises".into());
    lines.extend(diagnosis.promises.iter().map(promise));
    if diagnosis.reduced.is_none() {
        lines.push("\nattempts to escape, outside and inside".into());
        lines.extend(diagnosis.probes.iter().map(attempt));
    }
    lines.extend(diagnosis.reduced.iter().flat_map(reduced));
    lines.extend(
        diagnosis
            .problem
            .as_ref()
            .map(|problem| format!("\n{}", visible(problem))),
    );
    lines.push(format!("\n{}, in {} ms", summary(diagnosis), diagnosis.took_ms));
    lines
}

/// What is left without namespaces.
fn reduced(found: &Reduced) -> Vec<String> {
    let mut lines = vec!["\nreduced mode: what a launch keeps here that is allowed to go without".into()];
    lines.extend(found.lost.iter().map(|row| {
        let name = row.promise.full_name();
        format!("  missing   {name:18} {}", row.why)
    }));
    let kept = found
        .promises
        .iter()
        .filter(|row| !found.lost.iter().any(|lost| lost.promise == row.promise));
    lines.extend(kept.map(promise));
    lines.push("\nattempts to escape from it, outside and inside".into());
    lines.extend(found.probes.iter().map(attempt));
    lines.extend(found.problem.as_ref().map(|problem| format!("\n{}", visible(problem))));
    lines
}

fn layer(row: &LayerRow) -> Vec<String> {
    let mark = match row.state {
        State::Enforced => "enforced",
        State::Failed => "FAILED",
        State::Unchecked => "unchecked",
        State::NotReached => "missing",
    };
    let line = format!("  {mark:9} {:12} {}", row.name, visible(&row.detail));
    let mut lines = vec![line.trim_end().to_owned()];
    let fix = row.fix.iter().flat_map(|fix| fix.lines());
    lines.extend(fix.map(|line| format!("      {}", visible(line))));
    lines
}

fn host(diagnosis: &Diagnosis) -> Vec<String> {
    let rows = diagnosis.host.iter().filter_map(|row| {
        let value = visible(row.value.as_ref()?);
        let mark = if row.blocks { " (in the way)" } else { "" };
        let about = row.means.as_ref().unwrap_or(&row.why);
        Some(format!("  {} = {value}{mark}: {about}", row.name))
    });
    rows.collect()
}

fn launch(diagnosis: &Diagnosis) -> Vec<String> {
    let (agent, profile) = (&diagnosis.agent, &diagnosis.profile);
    let found = match (&agent.version, &agent.path, &agent.problem) {
        (Some(version), Some(path), _) => format!("version {version} at {path}"),
        (_, _, Some(problem)) => format!("{}; Pinfold itself stands in for it here", visible(problem)),
        _ => "not known".to_owned(),
    };
    let mut lines = vec![format!("  agent {}: {found}", agent.name)];
    lines.extend(agent.hint.as_ref().map(|hint| format!("      {}", visible(hint))));
    let resolves = match &profile.problem {
        None => "resolves".to_owned(),
        Some(problem) => format!("FAILED: {}", visible(problem)),
    };
    lines.push(format!("  profile {}: {resolves}", profile.name));
    lines.extend(profile.hint.as_ref().map(|hint| format!("      {}", visible(hint))));
    lines
}

fn promise(row: &PromiseRow) -> String {
    let mark = if row.ok { "kept" } else { "BROKEN" };
    let name = serde_json::to_value(row.promise).unwrap_or_default();
    let mut line = format!(
        "  {mark:9} {:18} by {}",
        name.as_str().unwrap_or_default(),
        row.enforcers.join(", ")
    );
    for (count, word) in [
        (row.held, "denied"),
        (row.escaped, "ESCAPED"),
        (row.unproven, "UNPROVEN"),
        (row.without_control, "without a control"),
    ] {
        if count > 0 {
            line.push_str(&format!("; {count} {word}"));
        }
    }
    if !row.missing.is_empty() {
        line.push_str(&format!("; not there: {}", row.missing.join(", ")));
    }
    line
}

fn attempt(row: &ProbeRow) -> String {
    let mark = match row.verdict {
        Verdict::Held => "denied",
        Verdict::Escaped => "ESCAPED",
        Verdict::Unproven => "UNPROVEN",
        Verdict::DeniedAnyway | Verdict::NoControl => "no control here",
    };
    let (outside, inside) = (met(row.outside.as_ref()), met(row.inside.as_ref()));
    format!("  {mark:16} {:44} {outside:20} {inside}", row.planned.name)
}

/// An outcome in two words at most, with the kernel's name for its error.
fn met(outcome: Option<&probe::Outcome>) -> String {
    let Some(outcome) = outcome else {
        return "not tried".to_owned();
    };
    let named = |errno: i32| format!("{:?}", nix::errno::Errno::from_raw(errno));
    match outcome.result {
        Tried::Done => "works".to_owned(),
        Tried::Denied(errno) => format!("denied ({})", named(errno)),
        Tried::Absent => "nothing there".to_owned(),
        Tried::Refused => "refused".to_owned(),
        Tried::TimedOut => "no answer".to_owned(),
        Tried::Error(errno) => format!("error ({})", named(errno)),
    }
}

fn summary(diagnosis: &Diagnosis) -> String {
    let count = |wanted: &[Verdict]| {
        let probes = diagnosis.probes.iter();
        probes.filter(|row| wanted.contains(&row.verdict)).count()
    };
    let verdict = if diagnosis.ok {
        "everything holds"
    } else {
        "NOT everything holds"
    };
    format!(
        "{verdict}: {} attempts denied, {} escaped, {} unproven, {} without a control here",
        count(&[Verdict::Held]),
        count(&[Verdict::Escaped]),
        count(&[Verdict::Unproven]),
        count(&[Verdict::DeniedAnyway, Verdict::NoControl]),
    )
}
