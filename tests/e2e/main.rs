//! Launches from end to end: the built `pinfold`, the real kernel, a real tmux or a real terminal, and either the real
//! OpenCode with a scripted model or an agent made to misbehave (`fake/agent.c`).
//!
//! `PINFOLD_TEST_OPENCODE` names the real OpenCode, `PINFOLD_BIN` another `pinfold` than the one just built. What cannot
//! be tested here says why and passes, unless `JAIL_MUST_WORK=1`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod agent;
mod endings;
#[path = "../jail/intruder.rs"]
mod intruder;
mod kept;
mod names;
mod pane;
mod place;
mod port;
mod records;
mod starting;
mod suspend;
mod turn;
mod wrong;
