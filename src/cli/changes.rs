//! What a launch changed that the host may execute: a few lines at its end, all of it with `pinfold info NAME --changes`.

use super::Outcome;
use super::args::Info;
use super::list::store;
use super::output::{say, say_json, tell};
use crate::base::text::visible;
use crate::launch::changes::{Changes, kept};
use crate::launch::control::{Among, select};
use std::process::ExitCode;

/// Lines that are shown unasked.
const MOST: usize = 20;

/// Tells it on standard error, once; nothing where there is nothing to look at.
pub fn warn(changes: &Changes, name: &str) {
    let lines = lines(changes);
    for line in lines.iter().take(MOST) {
        tell(format_args!("pinfold: {line}"));
    }
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        tell(format_args!(
            "pinfold: and {more} more: `pinfold info {name} --changes`"
        ));
    }
    if let Some(again) = &changes.unseen {
        let left = again.left;
        tell(format_args!(
            "pinfold: {left} folders and what is in them were not looked at, for want of time: `pinfold info {name} --changes` does"
        ));
    }
}

/// Everything of one launch, and what was not looked at then is looked at now.
pub fn show(args: &Info) -> Outcome {
    let store = store()?;
    let name = args.select.session.clone().unwrap_or_default();
    let (changes, record) = match kept(&store, None, &name) {
        Some(changes) => (Some(changes), None),
        None => {
            let record = select(&store, args.select.session.as_deref(), Among::All)?;
            (kept(&store, Some(&record), &name), Some(record))
        }
    };
    let changes = changes.unwrap_or_default().complete();
    if args.select.output.json {
        say_json(&changes);
    } else if changes.is_empty() {
        say("nothing that the host may execute was changed");
    } else {
        lines(&changes).into_iter().for_each(say);
    }
    if let Some(record) = record {
        store.mark_seen(&record);
    }
    Ok(ExitCode::SUCCESS)
}

/// A line each; bytes of file names are escaped.
fn lines(changes: &Changes) -> Vec<String> {
    let shown = |path: &crate::base::AbsPath| visible(path.as_path());
    let mut lines = Vec::new();
    if changes.polled {
        lines.push(
            "absent protected paths were looked at twenty times a second: this machine had no watches left".into(),
        );
    }
    for refused in &changes.refused {
        let became = match refused.aside.last() {
            Some(aside) => format!("it is now {}", shown(aside)),
            None => "the link is back".to_owned(),
        };
        let times = if refused.times > 1 {
            format!(", {} times", refused.times)
        } else {
            String::new()
        };
        lines.push(format!(
            "{} was made inside{times} and moved aside ({became}): {}",
            shown(&refused.path),
            visible(&refused.reason)
        ));
    }
    for tried in &changes.tried {
        lines.push(format!(
            "a program tried to change {}, which is protected ({}): do it outside",
            shown(&tried.path),
            visible(&tried.reason)
        ));
    }
    for healed in &changes.healed {
        lines.push(format!(
            "{} was replaced from outside meanwhile, and protected again: look at it",
            shown(healed)
        ));
    }
    for unguarded in &changes.unguarded {
        lines.push(format!(
            "{} could not be watched: look whether it is there",
            shown(unguarded)
        ));
    }
    for change in &changes.changed {
        let many = if change.count > 1 {
            format!("{} files in ", change.count)
        } else {
            String::new()
        };
        lines.push(format!(
            "look at {many}{} before you use it: {}",
            shown(&change.path),
            visible(&change.reason)
        ));
    }
    lines
}
