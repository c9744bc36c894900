//! Each layer of the sandbox: whether its steps were carried out, and whether its check found what it should.

use super::trial::{Made, Trial};
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
    let checked = CHECKS.iter().map(|(name, _)| *name);
    names.extend(checked.filter(|name| !trial.order.contains(name)));
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
                detail: (index == failed).then(|| step.clone()).unwrap_or_default(),
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
