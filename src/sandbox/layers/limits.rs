//! Resource limits (getrlimit(2)); never above what the caller itself has.

use crate::policy::Limits;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Lowers what the policy limits; no core dumps ever leave the sandbox. Where no control group bounds memory, each process
/// has its bound on private memory (RLIMIT_DATA): of what a limit can be set on without one it is the closest to what a
/// process uses.
pub fn apply(limits: &Limits, memory_each: Option<u64>) -> nix::Result<()> {
    lower(Resource::RLIMIT_DATA, memory_each)?;
    lower(Resource::RLIMIT_CORE, Some(0))?;
    lower(Resource::RLIMIT_NPROC, limits.processes)?;
    lower(Resource::RLIMIT_NOFILE, limits.open_files)?;
    lower(Resource::RLIMIT_AS, limits.address_space)
}

fn lower(resource: Resource, to: Option<u64>) -> nix::Result<()> {
    let Some(to) = to else { return Ok(()) };
    let (_, hard) = getrlimit(resource)?;
    let to = to.min(hard);
    setrlimit(resource, to, to)
}
