//! Every parser of bytes that nobody vouches for, on inputs that nobody thought of: what a trapped call names, the
//! paths behind it, and profiles. Runs on stable Rust.
//!
//! `PINFOLD_FUZZ_SECONDS` is the time for each target (one second if it is not set), `PINFOLD_FUZZ_SEED` repeats a run.
//! A failure prints the seed, the round and the input; an input that once failed belongs into `fuzz/corpus`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod harness;
mod notify;
mod path;
mod profile;

use harness::fuzz;

#[test]
fn addresses() {
    fuzz("address", notify::address).unwrap();
}

#[test]
fn messages() {
    fuzz("message", notify::message).unwrap();
}

#[test]
fn paths() {
    fuzz("path", path::as_the_kernel).unwrap();
}

#[test]
fn profiles() {
    fuzz("profile", profile::load).unwrap();
}

/// A harness that finds nothing would be worth nothing: defects of the usual kinds are planted, and must be found.
#[test]
fn planted_defects_are_found() {
    let panics = |input: &[u8], _: &mut harness::Random| {
        let length = input
            .first_chunk::<2>()
            .map_or(0, |bytes| usize::from(u16::from_ne_bytes(*bytes)));
        assert!(length != 10 || input.len() <= 24, "planted");
        Ok(())
    };
    let failure = fuzz("address", panics).unwrap_err();
    assert!(
        failure.contains("planted") && failure.contains("PINFOLD_FUZZ_SEED="),
        "{failure}"
    );
    let mapped = |input: &[u8], _: &mut harness::Random| notify::mapped_is_v4(input, |ip| ip);
    assert!(fuzz("address", mapped).unwrap_err().contains("v4-mapped"));
    let loses_dots = |input: &[u8], random: &mut harness::Random| path::differs(input, random, path::without_dots);
    assert!(fuzz("path", loses_dots).unwrap_err().contains("kernel"));
}
