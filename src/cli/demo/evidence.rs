//! What the demonstration found, and whether all of it is as it should be.

use super::attempt::{Attempt, LeftOut};
use super::met::Met;
use serde::Serialize;
use std::path::PathBuf;

/// One attempt with what it met on both sides.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub attempt: &'static str,
    pub promise: crate::policy::Promise,
    pub command: String,
    /// The control: the very same command, outside.
    pub outside: Met,
    pub inside: Met,
}

/// Something that must have worked.
#[derive(Debug, Clone, Serialize)]
pub struct Work {
    pub what: &'static str,
    #[serde(flatten)]
    pub met: Met,
}

/// One of the two sandboxes as the last verification saw it.
#[derive(Debug, Clone, Serialize)]
pub struct Sandbox {
    pub side: &'static str,
    pub processes: usize,
    pub findings: Vec<String>,
}

/// Everything that was found.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// OpenCode's version, if the launch recorded it.
    pub version: Option<String>,
    /// From the start of the launch until both sandboxes were verified and the client ran.
    pub ready_seconds: f64,
    pub seconds: f64,
    pub work: Vec<Work>,
    pub attempts: Vec<Row>,
    pub not_tried: Vec<LeftOut>,
    pub sandboxes: Vec<Sandbox>,
    pub logs: Vec<PathBuf>,
}

impl Row {
    /// An attempt as it went.
    pub fn new(attempt: Attempt, outside: Met, inside: Met) -> Row {
        let Attempt { name, promise, command } = attempt;
        Row {
            attempt: name,
            promise,
            command,
            outside,
            inside,
        }
    }

    /// What is wrong: a control that fails proves nothing, and inside only a denial is right.
    fn problem(&self) -> Option<String> {
        let name = self.attempt;
        match (&self.outside, &self.inside) {
            (_, Met::Worked) => Some(format!("{name}: it worked inside")),
            (Met::Denied(words) | Met::Unclear(words), _) => Some(format!(
                "{name}: the control did not work outside ({words}), so it proves nothing"
            )),
            (Met::Worked, Met::Unclear(words)) => {
                Some(format!("{name}: inside it was not denied but unclear ({words})"))
            }
            (Met::Worked, Met::Denied(_)) => None,
        }
    }
}

impl Sandbox {
    fn problem(&self) -> Option<String> {
        let side = self.side;
        match (self.processes, self.findings.first()) {
            (_, Some(finding)) => Some(format!("the {side}'s sandbox does not hold: {finding}")),
            (0, None) => Some(format!("the {side}'s sandbox was not verified")),
            (_, None) => None,
        }
    }
}

impl Work {
    fn problem(&self) -> Option<String> {
        match &self.met {
            Met::Worked => None,
            Met::Denied(words) | Met::Unclear(words) => Some(format!("{}: no ({words})", self.what)),
        }
    }
}

impl Evidence {
    /// Everything that is not as it should be; nothing means that the demonstration succeeded.
    pub fn problems(&self) -> Vec<String> {
        let work = self.work.iter().filter_map(Work::problem);
        let rows = self.attempts.iter().filter_map(Row::problem);
        let sandboxes = self.sandboxes.iter().filter_map(Sandbox::problem);
        let mut problems: Vec<String> = work.chain(rows).chain(sandboxes).collect();
        for side in ["server", "client"] {
            if !self.sandboxes.iter().any(|sandbox| sandbox.side == side) {
                problems.push(format!("the {side}'s sandbox was not verified"));
            }
        }
        if self.attempts.is_empty() {
            problems.push("nothing was tried".into());
        }
        problems
    }

    /// How many attempts were kept from working.
    pub fn held(&self) -> usize {
        self.attempts.iter().filter(|row| row.problem().is_none()).count()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::policy::Promise;

    pub fn good() -> Evidence {
        let row = |attempt, promise| Row {
            attempt,
            promise,
            command: "cat x".into(),
            outside: Met::Worked,
            inside: Met::Denied("nothing there".into()),
        };
        let sandbox = |side| Sandbox {
            side,
            processes: 3,
            findings: Vec::new(),
        };
        Evidence {
            version: Some("1.18.33".into()),
            ready_seconds: 8.25,
            seconds: 30.0,
            work: vec![Work {
                what: "the test passes now",
                met: Met::Worked,
            }],
            attempts: vec![
                row("read a key", Promise::Files),
                row("signal a process", Promise::Processes),
            ],
            not_tried: vec![LeftOut {
                attempt: "connect to this tmux's socket",
                reason: "this is no tmux",
            }],
            sandboxes: vec![sandbox("server"), sandbox("client")],
            logs: vec!["/s/logs/demo-server.log".into()],
        }
    }

    #[test]
    fn all_as_it_should_be_is_no_problem() {
        assert_eq!(good().problems(), Vec::<String>::new());
        assert_eq!(good().held(), 2);
    }

    /// Each plants one thing that must turn the verdict, and says what is then told.
    #[test]
    fn every_single_failure_turns_the_verdict() {
        let no = || Met::Denied("no".into());
        let odd = || Met::Unclear("odd".into());
        type Planted = (fn(&mut Evidence, Met), Met, &'static str);
        let inside: fn(&mut Evidence, Met) = |evidence, met| evidence.attempts[1].inside = met;
        let outside: fn(&mut Evidence, Met) = |evidence, met| evidence.attempts[1].outside = met;
        let work: fn(&mut Evidence, Met) = |evidence, met| evidence.work[0].met = met;
        let table: Vec<Planted> = vec![
            (inside, Met::Worked, "signal a process: it worked inside"),
            (
                inside,
                odd(),
                "signal a process: inside it was not denied but unclear (odd)",
            ),
            (
                outside,
                no(),
                "signal a process: the control did not work outside (no), so it proves nothing",
            ),
            (
                outside,
                odd(),
                "signal a process: the control did not work outside (odd), so it proves nothing",
            ),
            (work, no(), "the test passes now: no (no)"),
            (work, odd(), "the test passes now: no (odd)"),
            (
                |e, _| e.sandboxes[1].processes = 0,
                odd(),
                "the client's sandbox was not verified",
            ),
            (
                |e, _| drop(e.sandboxes.remove(0)),
                odd(),
                "the server's sandbox was not verified",
            ),
            (
                |e, _| e.sandboxes[0].findings.push("mounts: one more".into()),
                odd(),
                "the server's sandbox does not hold: mounts: one more",
            ),
            (|e, _| e.attempts.clear(), odd(), "nothing was tried"),
        ];
        for (plant, met, expected) in table {
            let mut evidence = good();
            plant(&mut evidence, met);
            assert_eq!(evidence.problems(), [expected]);
        }
    }

    #[test]
    fn an_attempt_that_works_on_both_sides_is_an_escape() {
        let mut evidence = good();
        evidence.attempts[0].inside = Met::Worked;
        evidence.attempts[0].outside = Met::Denied("no".into());
        assert_eq!(evidence.problems(), ["read a key: it worked inside"]);
        assert_eq!(evidence.held(), 1);
    }
}
