//! What one launch asks for beside its profile.

use crate::base::Port;
use crate::policy::frozen::{Access, Promise};
use std::ffi::OsString;
use std::path::PathBuf;

/// A path granted on the command line; it must exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandGrant {
    /// The flag as typed, for messages: `--allow` or `--read`.
    pub flag: String,
    /// Absolute, or relative to the request's `workdir`.
    pub path: PathBuf,
    pub access: Access,
}

/// A variable asked for on the command line; it wins over the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvWish {
    /// `--env NAME`: as the launcher has it.
    Pass(OsString),
    /// `--env NAME=VALUE`.
    Set(OsString, OsString),
}

/// What one launch asks for beside its profile. `Default` asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The workspace root, fixed at launch (see `workspace_root`); not granted when the profile's access is `none`.
    pub root: Option<PathBuf>,
    /// Where the command starts, absolute: the root is taken instead when it is not inside what is granted.
    pub workdir: PathBuf,
    pub grants: Vec<CommandGrant>,
    /// `--allow-domain`, as typed.
    pub allow_domains: Vec<String>,
    /// `--service NAME.pinfold=ADDRESS:PORT`, as typed.
    pub services: Vec<String>,
    pub open_ports: Vec<Port>,
    pub listen_ports: Vec<Port>,
    /// Ports inside that only the supervisor's join may reach.
    pub closed_ports: Vec<Port>,
    /// `--block-net`.
    pub block_net: bool,
    pub env: Vec<EnvWish>,
    /// Variables that the launch itself needs (passwords, proxies): they win over everything.
    pub added_env: Vec<(OsString, OsString)>,
    /// Values for `$NAME` in profile paths, for example `AGENT_BINARY`. Mounts from below one may be in Pinfold's folders.
    pub variables: Vec<(String, PathBuf)>,
    /// Pinfold's own configuration, state, data and runtime folders.
    pub own_folders: Vec<PathBuf>,
    /// Pinfold's own program: protected where it lies in something writable.
    pub own_program: Option<PathBuf>,
    /// `--allow-missing`.
    pub allow_missing: Vec<Promise>,
}
