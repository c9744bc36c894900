//! Confinement, tried for real: every attempt succeeds outside first, and then must fail inside; every allow rule has
//! its opposite. Run as root and as an ordinary user (`bin/run.sh test` does both).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod absent;
mod broker;
mod browser;
mod caches;
mod crowds;
mod datagrams;
mod environment;
mod evidence;
mod executed;
mod files;
mod ghosts;
mod git;
mod git_surface;
mod harness;
mod intruder;
mod kernel;
mod lifetime;
mod limits;
mod machines;
mod mode;
mod network;
mod pane;
mod place;
mod processes;
mod profiles;
mod protected;
mod races;
mod reduced;
mod refusal;
mod registry;
mod replaced;
mod services;
mod signing;
mod sockets;
mod suspend;
mod terminal;
mod tester;
mod tools;
