//! What is remembered of launches: one file per pane, who owns it, and the logs. See design.md §8.
#![forbid(unsafe_code)]

mod claim;
mod error;
mod logs;
pub mod prune;
mod reconcile;
mod record;
mod slot;
mod store;

pub use claim::{Claim, Taken};
pub use error::{Problem, Reason, StateError};
pub use logs::{KEPT, Logs};
pub use reconcile::{PATIENCE, reconcile};
pub use record::{LastError, Lifecycle, Record, Request, Side, Timings, VERSION};
pub use store::{Begun, Listing, Store};

use crate::base::LaunchId;

/// `<prefix>-<agent>-<12 hexadecimal digits of the launch>`, with every character but letters, digits, `.`, `_` and `-`
/// replaced by `_`, so that it can stand in file names and arguments.
pub fn session_name(prefix: &str, agent: &str, launch: &LaunchId) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            c
        } else {
            '_'
        }
    };
    format!("{prefix}-{agent}-{launch}").chars().map(plain).collect()
}

#[cfg(test)]
mod tests;
