//! Exit statuses, and which verbs pass a command's own on.

use super::args::Verb;
use crate::base::Kind;

/// A failure of Pinfold itself, where a command's own status is passed on.
pub const OWN_FAILURE: u8 = 125;
/// Pinfold refused to run the command.
pub const REFUSED: u8 = 126;

/// The command, or the agent's program, is not there.
pub const NOT_FOUND: u8 = 127;
/// The command line is wrong: nothing was tried.
pub const WRONG_USAGE: u8 = 2;

/// Whether a verb stands for a command, whose status it passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wraps {
    Command,
    Nothing,
}

/// The status of a failure of Pinfold: one decision for every verb.
pub fn of_failure(wraps: Wraps, kind: Kind) -> u8 {
    match (wraps, kind) {
        (_, Kind::Usage) => WRONG_USAGE,
        (Wraps::Command, Kind::Unconfined | Kind::Permission) => REFUSED,
        (Wraps::Command, Kind::NoProgram) => NOT_FOUND,
        (Wraps::Command, _) => OWN_FAILURE,
        (Wraps::Nothing, Kind::Config) => WRONG_USAGE,
        (Wraps::Nothing, _) => 1,
    }
}

/// Whether the verb's status is the status of a command.
pub fn wraps(verb: &Verb) -> Wraps {
    match verb {
        Verb::Start(_) | Verb::Run(_) | Verb::Shell(_) | Verb::Bridge(_) => Wraps::Command,
        _ => Wraps::Nothing,
    }
}

/// Whether a failure is told as JSON too.
pub fn wants_json(verb: &Verb) -> bool {
    use super::args::ProfileVerb;
    match verb {
        Verb::Run(args) => args.json,
        Verb::Start(args) => args.json,
        Verb::Shell(args) => args.json,
        Verb::Stop(args) | Verb::Info(args) | Verb::Verify(args) => args.output.json,
        Verb::Prune(args) => args.output.json,
        Verb::List(output) => output.json,
        Verb::Doctor(args) => args.output.json,
        Verb::Demo(args) => args.output.json,
        Verb::Explain(args) => args.output.json,
        Verb::Why(args) => args.output.json,
        Verb::Profile(args) => match &args.verb {
            ProfileVerb::List(output) | ProfileVerb::Schema(output) => output.json,
            ProfileVerb::Check { output, .. } | ProfileVerb::Show { output, .. } => output.json,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{NOT_FOUND, OWN_FAILURE, REFUSED, Wraps, of_failure};
    use crate::base::Kind;

    #[test]
    fn a_failure_has_one_status_for_each_kind_and_verb() {
        assert_eq!(of_failure(Wraps::Command, Kind::Unconfined), REFUSED);
        assert_eq!(of_failure(Wraps::Command, Kind::Config), OWN_FAILURE);
        assert_eq!(of_failure(Wraps::Command, Kind::Startup), OWN_FAILURE);
        assert_eq!(of_failure(Wraps::Nothing, Kind::Config), 2);
        assert_eq!(of_failure(Wraps::Command, Kind::NoProgram), NOT_FOUND);
        assert_eq!(of_failure(Wraps::Nothing, Kind::NoProgram), 1);
        assert_eq!(of_failure(Wraps::Command, Kind::Usage), 2);
        assert_eq!(of_failure(Wraps::Nothing, Kind::Usage), 2);
        assert_eq!(of_failure(Wraps::Nothing, Kind::Unconfined), 1);
    }
}
