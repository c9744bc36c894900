//! The line of a launch: load, resolve, plan, spawn, mediate, verify, release, wait, record.
#![forbid(unsafe_code)]

pub mod attendance;
pub mod begin;
mod captured;
mod changed;
pub mod control;
pub mod denials;
pub mod doctor;
mod enclose;
mod interrupted;
mod mediation;
mod pair;
pub mod preview;
mod readiness;
mod record;
mod room;
pub mod run;
pub mod session;
mod setting;
mod subject;
mod traffic;
mod version;
mod watch;
mod wish;

pub use pair::{SessionWish, server_policy};
pub use setting::{Setting, SettingError};
pub use wish::{Additions, Wish};
