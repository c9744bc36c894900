//! `pinfold run` as a person or a script meets it: exit statuses, bad input, arguments, output for scripts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod arguments;
mod broad;
mod folders;
#[path = "../jail/place.rs"]
mod place;
mod plan;
mod profile_verbs;
mod profiles;
mod status;
