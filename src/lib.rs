//! Pinfold runs coding agents in enclosed terminal panes and checks from outside that the enclosure holds.
//!
//! The layers, from the top; imports point down this list only (`tests/architecture.rs`):
//! `cli` · `hub`, `overlay` · `plugin`, `web` · `launch` · `host`, `agent`, `state`, `protocol`, `sandbox` ·
//! `verify` · `policy` · `base` · `sys`.

pub mod agent;
pub mod base;
pub mod cli;
pub mod host;
pub mod hub;
pub mod launch;
pub mod overlay;
pub mod plugin;
pub mod policy;
pub mod protocol;
pub mod sandbox;
pub mod state;
pub mod sys;
pub mod verify;
pub mod web;

/// Sanitises the process, parses its arguments, runs one verb and prints at most one error.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
