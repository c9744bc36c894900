//! The line of a launch: load, resolve, plan, spawn, mediate, verify, release, wait, record.
#![forbid(unsafe_code)]

pub mod attendance;
pub mod begin;
mod captured;
pub mod changes;
pub mod control;
pub mod denials;
pub mod doctor;
pub mod enclose;
mod heal;
mod interrupted;
mod mediation;
mod pair;
pub mod preview;
mod protection;
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
