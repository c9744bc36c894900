//! The evidence as a person reads it.

use super::evidence::{Evidence, Row, Sandbox};
use super::met::Met;
use crate::base::text::visible;
use crate::policy::Promise;

/// All lines, the verdict last.
pub fn lines(evidence: &Evidence) -> Vec<String> {
    let mut lines = attempts(&evidence.attempts);
    let left_out = evidence
        .not_tried
        .iter()
        .map(|left| format!("not tried: {} ({})", left.attempt, left.reason));
    lines.extend(left_out);
    lines.push(String::new());
    let width = evidence.work.iter().map(|work| work.what.len()).max().unwrap_or(0);
    lines.extend(
        evidence
            .work
            .iter()
            .map(|work| format!("{:<width$}  {}", work.what, yes_or_no(&work.met))),
    );
    lines.push(String::new());
    let version = evidence.version.as_deref().unwrap_or("of an unknown version");
    lines.push(format!(
        "OpenCode {version}: {:.1} s from start to a verified client, {:.0} s in all",
        evidence.ready_seconds, evidence.seconds
    ));
    lines.extend(evidence.sandboxes.iter().map(sandbox));
    lines.extend(evidence.logs.iter().map(|log| format!("log: {}", visible(log))));
    lines.push(String::new());
    lines.extend(verdict(evidence));
    lines
}

fn attempts(rows: &[Row]) -> Vec<String> {
    let head = ["attempt", "outside", "inside", "promise"].map(str::to_owned);
    let cells = |row: &Row| {
        [
            row.attempt.to_owned(),
            row.outside.shown(),
            row.inside.shown(),
            promise(row.promise),
        ]
    };
    let table: Vec<[String; 4]> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let width = |column: usize| {
        table
            .iter()
            .map(|cells| cells[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let [first, second, third] = [width(0), width(1), width(2)];
    let line = |[a, b, c, d]: &[String; 4]| format!("{a:<first$}  {b:<second$}  {c:<third$}  {d}");
    table.iter().map(line).collect()
}

/// As in the table of promises.
fn promise(promise: Promise) -> String {
    let word = serde_json::to_value(promise);
    word.ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn yes_or_no(met: &Met) -> String {
    match met {
        Met::Worked => "yes".into(),
        Met::Denied(words) | Met::Unclear(words) => format!("no ({words})"),
    }
}

fn sandbox(sandbox: &Sandbox) -> String {
    let processes = match sandbox.processes {
        1 => "1 process".to_owned(),
        more => format!("{more} processes"),
    };
    match sandbox.findings.as_slice() {
        [] => format!("{}'s sandbox: verified, {processes}", sandbox.side),
        [first, ..] => format!(
            "{}'s sandbox: does not hold, {processes}: {}",
            sandbox.side,
            visible(first)
        ),
    }
}

fn verdict(evidence: &Evidence) -> Vec<String> {
    let problems = evidence.problems();
    let (held, all) = (evidence.held(), evidence.attempts.len());
    if problems.is_empty() {
        return vec![format!(
            "All as it should be: the work was done, and {held} of {all} attempts to get out were denied."
        )];
    }
    let head = format!("Not as it should be ({held} of {all} attempts denied):");
    std::iter::once(head)
        .chain(problems.into_iter().map(|problem| format!("  {problem}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::evidence::tests::good;
    use super::*;

    #[test]
    fn shows_every_attempt_with_its_control_and_promise() {
        let lines = lines(&good());
        let expected = [
            "attempt           outside  inside                  promise",
            "read a key        worked   denied (nothing there)  P1 files",
            "signal a process  worked   denied (nothing there)  P5 processes",
            "not tried: connect to this tmux's socket (this is no tmux)",
            "",
            "the test passes now  yes",
            "",
            "OpenCode 1.18.33: 8.2 s from start to a verified client, 30 s in all",
            "server's sandbox: verified, 3 processes",
            "client's sandbox: verified, 3 processes",
            "log: /s/logs/demo-server.log",
            "",
            "All as it should be: the work was done, and 2 of 2 attempts to get out were denied.",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn says_at_the_end_what_is_wrong() {
        let mut evidence = good();
        evidence.attempts[0].inside = Met::Worked;
        evidence.work[0].met = Met::Unclear("odd".into());
        let lines = lines(&evidence);
        let expected = [
            "Not as it should be (1 of 2 attempts denied):",
            "  the test passes now: no (odd)",
            "  read a key: it worked inside",
        ];
        assert_eq!(lines[lines.len() - 3..], expected);
    }
}
