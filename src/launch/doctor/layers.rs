//! Each layer of the sandbox: whether its steps were carried out, and whether its check found what it should.

use super::trial::{Made, Trial};
use crate::policy::Mode;
use crate::verify::{CHECKS, Report};
use serde::Serialize;

/// What became of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Applied, and the check from outside found it.
    Enforced,
    Failed,
    /// Applied, but a later layer failed before anything could be checked.
    Unchecked,
    /// An earlier layer failed.
    NotReached,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerRow {
    pub name: &'static str,
    pub state: State,
    /// The failing step and its error, or what the check found.
    pub detail: String,
    /// The error number's name, where a step failed.
    pub errno: Option<String>,
    pub fix: Option<String>,
}

/// A row for each layer, in the order in which they are applied.
pub fn rows(trial: &Trial) -> Vec<LayerRow> {
    let mut names = trial.order.clone();
    let all = CHECKS.iter().map(|(name, _)| *name);
    let checked: Vec<&'static str> = match &trial.made {
        Made::Verified(report) if trial.mode == Mode::Reduced => report.checks.clone(),
        _ => all.collect(),
    };
    names.extend(checked.into_iter().filter(|name| !trial.order.contains(name)));
    match &trial.made {
        Made::Verified(report) => names.iter().map(|name| checked_row(name, report)).collect(),
        Made::Step {
            layer,
            step,
            errno,
            hint,
        } => {
            let failed = names.iter().position(|name| Some(*name) == *layer).unwrap_or(0);
            let row = |(index, name): (usize, &&'static str)| LayerRow {
                name,
                state: match index.cmp(&failed) {
                    std::cmp::Ordering::Less => State::Unchecked,
                    std::cmp::Ordering::Equal => State::Failed,
                    std::cmp::Ordering::Greater => State::NotReached,
                },
                detail: if index == failed { step.clone() } else { String::new() },
                errno: errno.filter(|_| index == failed).map(|errno| format!("{errno:?}")),
                fix: hint.clone().filter(|_| index == failed),
            };
            names.iter().enumerate().map(row).collect()
        }
    }
}

fn checked_row(name: &'static str, report: &Report) -> LayerRow {
    let found = report.findings.iter().find(|finding| finding.check == name);
    let ran = report.checks.contains(&name);
    LayerRow {
        name,
        state: if found.is_none() && ran {
            State::Enforced
        } else {
            State::Failed
        },
        detail: match (found, ran) {
            (Some(finding), _) => finding.problem.clone(),
            (None, true) => String::new(),
            (None, false) => "it was not checked".to_owned(),
        },
        errno: None,
        fix: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Finding;
    use nix::errno::Errno;

    fn trial(made: Made) -> Trial {
        Trial {
            mode: Mode::Full,
            order: vec!["namespaces", "mounts", "landlock", "seccomp"],
            made,
            outcomes: None,
            problem: None,
        }
    }

    fn state(rows: &[LayerRow], name: &str) -> State {
        rows.iter().find(|row| row.name == name).unwrap().state
    }

    #[test]
    fn a_failed_step_tells_its_layer_what_came_before_and_what_was_never_reached() {
        let made = Made::Step {
            layer: Some("landlock"),
            step: "applying Landlock failed (EOPNOTSUPP)".into(),
            errno: Some(Errno::EOPNOTSUPP),
            hint: Some("boot with it".into()),
        };
        let rows = rows(&trial(made));
        assert_eq!(state(&rows, "mounts"), State::Unchecked);
        assert_eq!(state(&rows, "landlock"), State::Failed);
        assert_eq!(state(&rows, "seccomp"), State::NotReached);
        assert_eq!(state(&rows, "environment"), State::NotReached);
        let failed = rows.iter().find(|row| row.state == State::Failed).unwrap();
        assert_eq!(failed.errno.as_deref(), Some("EOPNOTSUPP"));
        assert_eq!(failed.fix.as_deref(), Some("boot with it"));
    }

    #[test]
    fn a_layer_is_enforced_only_if_its_check_ran_and_found_nothing() {
        let report = Report {
            checked_at: 0,
            took_ms: 0,
            ended: false,
            processes: Vec::new(),
            unlayered: Vec::new(),
            findings: vec![Finding {
                check: "mounts",
                pid: None,
                problem: "the root can be written".into(),
            }],
            checks: vec!["namespaces", "mounts", "landlock"],
        };
        let rows = rows(&trial(Made::Verified(report)));
        assert_eq!(state(&rows, "namespaces"), State::Enforced);
        assert_eq!(state(&rows, "mounts"), State::Failed);
        assert_eq!(state(&rows, "seccomp"), State::Failed, "it was not checked");
    }
}
