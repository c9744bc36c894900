//! The broker: the one way out of a sandbox. It listens inside the sandbox's network namespace, takes HTTP `CONNECT`
//! and absolute-form requests, decides by name and port, and dials the very address that it checked.
//!
//! From the wire inwards: [`head`], [`request`], [`response`], [`authority`] and [`body`] are pure readers of untrusted
//! bytes that take one reading or none; `rewrite` and `answer` make bytes; `route` decides, resolves and checks; `dial`
//! connects; `session`, `exchange` and [`join`] move bytes; [`Log`] keeps what was decided.
#![forbid(unsafe_code)]

mod account;
mod admission;
mod answer;
pub mod authority;
pub mod body;
mod broker;
mod dial;
mod exchange;
pub mod head;
mod inlet;
mod join;
mod judge;
mod log;
mod policy;
pub mod request;
mod resolve;
pub mod response;
mod rewrite;
mod route;
mod session;
#[cfg(test)]
mod tests;

pub use admission::Admission;
pub use broker::{Broker, Limits};
pub use join::join;
pub use judge::{Judge, Verdict};
pub use log::Log;
pub use policy::PolicyJudge;
pub use resolve::{Addresses, Resolve, System};
