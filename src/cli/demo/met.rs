//! What a command met, read from what it printed.

use crate::base::text::visible;
use crate::verify::probe::{Outcome, Tried};
use serde::Serialize;

/// Stands before the exit status in the last line of a command's output.
const MARK: &str = "[status ";
/// What is shown of a message.
const LIMIT: usize = 60;

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", content = "words", rename_all = "kebab-case")]
pub enum Met {
    Worked,
    /// It was refused, or there was nothing of the kind.
    Denied(String),
    /// It did not run, or met silence or an unexpected error. That proves nothing.
    Unclear(String),
}

/// The command so that its output ends with its exit status, its messages included.
pub fn marked(command: &str) -> String {
    format!("{{ {command}\n}} 2>&1; echo \"{MARK}$?]\"")
}

impl Met {
    /// Reads the output of a [`marked`] command; the output is of unknown origin.
    pub fn of(output: &str) -> Met {
        let Some((before, status)) = status(output) else {
            return Met::Unclear(match last_words(output) {
                Some(words) => format!("it did not run to its end: {words}"),
                None => "it did not run to its end".into(),
            });
        };
        let outcome = before
            .lines()
            .rev()
            .find_map(|line| serde_json::from_str::<Outcome>(line.trim()).ok());
        match (outcome, status) {
            (Some(outcome), _) => probed(&outcome),
            (None, 0) => Met::Worked,
            (None, 126 | 127) => Met::Unclear(last_words(before).unwrap_or_else(|| "it cannot be run".into())),
            (None, 1..=128) => Met::Denied(last_words(before).unwrap_or_else(|| "it found nothing".into())),
            (None, _) => Met::Unclear(format!("it ended with status {status}")),
        }
    }

    /// One word and, in brackets, why.
    pub fn shown(&self) -> String {
        match self {
            Met::Worked => "worked".into(),
            Met::Denied(words) => format!("denied ({words})"),
            Met::Unclear(words) => format!("unclear ({words})"),
        }
    }
}

fn probed(outcome: &Outcome) -> Met {
    let detail = || (!outcome.detail.is_empty()).then(|| short(&outcome.detail));
    match outcome.result {
        Tried::Done => Met::Worked,
        Tried::Denied(_) => Met::Denied(detail().unwrap_or_else(|| "not permitted".into())),
        Tried::Absent => Met::Denied(detail().unwrap_or_else(|| "nothing there".into())),
        Tried::Refused => Met::Denied(detail().unwrap_or_else(|| "nobody listens there".into())),
        Tried::TimedOut => Met::Unclear("no answer".into()),
        Tried::Error(_) => Met::Unclear(detail().unwrap_or_else(|| "an unexpected error".into())),
    }
}

/// What stands before the last mark, and the exit status behind it.
fn status(output: &str) -> Option<(&str, u8)> {
    let (before, behind) = output.rsplit_once(MARK)?;
    Some((before, behind.split(']').next()?.parse().ok()?))
}

/// The last line that says something, without the shell's name and line number.
fn last_words(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let told = line.rsplit(": ").next().filter(|_| line.contains(": ")).unwrap_or(line);
    Some(short(told))
}

fn short(text: &str) -> String {
    let text = visible(text.split(" (os error").next().unwrap_or(text));
    match text.char_indices().nth(LIMIT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(words: &str) -> Met {
        Met::Denied(words.into())
    }

    fn unclear(words: &str) -> Met {
        Met::Unclear(words.into())
    }

    #[test]
    fn reads_ordinary_commands_by_their_status() {
        let table = [
            ("secret\n[status 0]", Met::Worked),
            (
                "cat: /h/.ssh/id: No such file or directory\n[status 1]\n",
                denied("No such file or directory"),
            ),
            ("[status 1]", denied("it found nothing")),
            (
                "grep: /proc/7/environ: Permission denied\n[status 2]",
                denied("Permission denied"),
            ),
            ("sh: 1: git: not found\n[status 127]", unclear("not found")),
            ("[status 137]", unclear("it ended with status 137")),
            ("", unclear("it did not run to its end")),
            (
                "Error: the tool call was rejected",
                unclear("it did not run to its end: the tool call was rejected"),
            ),
            (
                "[status 0] and then [status x]",
                unclear("it did not run to its end: [status 0] and then [status x]"),
            ),
            ("[status 0]\n[status 1]", denied("[status 0]")),
        ];
        for (output, expected) in table {
            assert_eq!(Met::of(output), expected, "{output:?}");
        }
    }

    #[test]
    fn reads_probes_by_what_the_kernel_said() {
        let line = |result: &str, errno: &str, detail: &str| {
            format!("{{\"attempt\":\"x\",\"result\":\"{result}\"{errno},\"detail\":\"{detail}\"}}\n[status 1]\n")
        };
        let table = [
            (line("done", "", ""), Met::Worked),
            (
                line("denied", ",\"errno\":13", "Permission denied"),
                denied("Permission denied"),
            ),
            (line("absent", "", ""), denied("nothing there")),
            (
                line("refused", "", "Connection refused (os error 111)"),
                denied("Connection refused"),
            ),
            (line("refused", "", ""), denied("nobody listens there")),
            (line("timed-out", "", ""), unclear("no answer")),
            (line("error", ",\"errno\":22", "HTTP/1.1 502"), unclear("HTTP/1.1 502")),
        ];
        for (output, expected) in table {
            assert_eq!(Met::of(&output), expected, "{output:?}");
        }
    }

    #[test]
    fn shows_no_control_characters_and_no_walls_of_text() {
        let Met::Denied(words) = Met::of(&format!("x: \u{1b}[2J{}\n[status 1]", "y".repeat(500))) else {
            panic!("it was not read as a denial")
        };
        assert!(
            words.starts_with("\\u{1b}[2J") && words.chars().count() == LIMIT + 1,
            "{words}"
        );
    }

    #[test]
    fn a_marked_command_tells_its_status_and_its_messages() {
        for (command, expected) in [("true", Met::Worked), ("echo 'no: such' >&2; false", denied("such"))] {
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", &marked(command)])
                .output()
                .unwrap();
            assert_eq!(
                Met::of(&String::from_utf8(output.stdout).unwrap()),
                expected,
                "{command}"
            );
        }
    }
}
