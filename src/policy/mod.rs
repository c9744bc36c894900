//! What a launch may do: profiles as written, and the frozen policy that they resolve to. Pure: what it must know of
//! the host comes in through `Host`.
#![forbid(unsafe_code)]

mod frozen;

pub use frozen::{
    Access, Bind, Content, Environment, FileKind, Limits, Link, Made, NetPolicy, Network, Origin, Policy, Promise,
    Protected, Rule, Service,
};
