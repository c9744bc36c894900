//! The verbs that tell about policy and about this machine, black box: `explain`, `why`, `profile`, `probe`, `doctor`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod doctor;
mod place;
mod policy;
