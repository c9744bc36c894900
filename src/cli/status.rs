//! Exit statuses, and which verbs pass a command's own on.

use super::args::Verb;

/// A failure of Pinfold itself, where a command's own status is passed on.
pub const OWN_FAILURE: u8 = 125;
/// Pinfold refused to run the command.
pub const REFUSED: u8 = 126;

/// Whether the verb's status is the status of a command.
pub fn wraps_a_command(verb: &Verb) -> bool {
    matches!(verb, Verb::Run(_) | Verb::Shell(_) | Verb::Bridge(_))
}

/// Whether a failure is told as JSON too.
pub fn wants_json(verb: &Verb) -> bool {
    use super::args::ProfileVerb;
    match verb {
        Verb::Run(args) => args.json,
        Verb::Start(args) => args.json,
        Verb::Shell(args) => args.json,
        Verb::Stop(args) | Verb::Info(args) | Verb::Verify(args) => args.output.json,
        Verb::List(output) => output.json,
        Verb::Doctor(args) => args.output.json,
        Verb::Demo(args) => args.output.json,
        Verb::Explain(args) => args.output.json,
        Verb::Why(args) => args.output.json,
        Verb::Profile(args) => match &args.verb {
            ProfileVerb::List(output) | ProfileVerb::Check { output, .. } => output.json,
            ProfileVerb::Show { .. } => false,
        },
        _ => false,
    }
}
