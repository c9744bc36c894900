//! `pinfold shell`: a shell under the policy of a session's server, in a sandbox of its own.

use super::Outcome;
use super::args::Shell;
use super::list::store;
use super::run::{passed_on, warn, warnings};
use crate::base::LaunchId;
use crate::launch::Setting;
use crate::launch::begin::recorded_policy;
use crate::launch::control::{Among, select};
use crate::launch::run::{Progress, enclosed};
use std::ffi::{OsStr, OsString};

/// Opens it; the shell's exit status is passed on.
pub fn run(args: Shell) -> Outcome {
    let setting = Setting::find()?;
    let record = select(&store()?, args.session.as_deref(), Among::All)?;
    let mut policy = recorded_policy(&record, &setting)?;
    policy.weakened.extend(args.allow_missing);
    policy.weakened.sort();
    policy.weakened.dedup();
    let shell = || {
        vec![
            policy
                .environment
                .0
                .get(OsStr::new("SHELL"))
                .cloned()
                .unwrap_or_else(|| OsString::from("/bin/sh")),
        ]
    };
    let argv = if args.command.is_empty() { shell() } else { args.command };
    let program = argv.first().cloned().unwrap_or_default();
    let exit = enclosed(
        &LaunchId::fresh(),
        &policy,
        argv,
        &setting,
        &mut |progress| match progress {
            Progress::Resolved(policy) => warnings(policy),
            Progress::Changed(paths) => warn(paths),
            _ => {}
        },
    )?;
    Ok(passed_on(exit, &program))
}
