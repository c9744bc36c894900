//! The line of a launch: load, resolve, plan, spawn, mediate, verify, release, wait, record.
#![forbid(unsafe_code)]

pub mod attendance;
mod changed;
mod mediation;
pub mod run;
mod setting;
mod subject;
mod traffic;
mod watch;
mod wish;

pub use setting::{Setting, SettingError};
pub use wish::{Additions, Wish};
