//! The line of a launch: load, resolve, plan, spawn, mediate, verify, release, wait, record.
#![forbid(unsafe_code)]

pub mod traffic;
