//! What a launch may do: profiles as written, and the frozen policy that they resolve to. Pure: what it must know of
//! the host comes in through `Host`.
#![forbid(unsafe_code)]

mod explain;
mod frozen;
mod glob;
mod host;
mod live;
#[cfg(test)]
pub(crate) mod memory;
pub mod net;
mod outside;
pub mod profile;
mod reduced;
pub mod remedy;
mod remembered;
mod resolve;
mod split;
mod walk;
mod weakening;
mod why;

pub use explain::{Explanation, Line, Section, explain};
pub use frozen::{
    Access, Appearing, Bind, Content, Datagrams, Environment, FileKind, Limits, Link, Made, Mode, NetPolicy, Network,
    Note, Origin, Policy, Promise, Protected, Rule, Service, Topic, parse_processors, parse_size,
};
pub use host::{Host, HostKind};
pub use live::LiveHost;
pub use outside::{Sought, sought};
pub use profile::{Profile, ProfileError, load};
pub use reduced::{Furniture, ReduceError, Reduced, lost, reduce};
pub use resolve::{
    CommandGrant, EnvWish, Preparation, Request, ResolveError, check_workspace, preparations, resolve,
    workspace_folder, workspace_root,
};
pub use split::{Absent, Piece, Reach, SplitError, split};
pub use weakening::PromiseError;
pub use why::{Answer, Question, Verdict, why};
