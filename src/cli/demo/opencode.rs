//! OpenCode's program: found, or installed into Pinfold's own data folder.

use super::{DemoError, asked_to_end, progress};
use crate::agent::{AgentError, Installation, Progress, Search, named};
use crate::base::{AbsPath, Fault};
use crate::launch::Setting;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// About 60 MB over a slow line.
const LIMIT: Duration = Duration::from_secs(900);
/// How often an installation tells that it goes on, in seconds.
const NEWS: u64 = 5;

/// Where it is.
pub fn find(binary: Option<&Path>, setting: &Setting) -> Result<AbsPath, Fault> {
    let binary = binary.map(|binary| setting.here.join(binary));
    let search = Search {
        configured: binary.as_deref(),
        path: setting.environ.get(OsStr::new("PATH")).map(OsString::as_os_str),
        workspace: None,
        data: &setting.dirs.data,
    };
    match named(OsStr::new("opencode"))?.find(&search) {
        Ok(candidate) => Ok(candidate.path),
        Err(AgentError::Missing { .. }) => install(setting),
        Err(error) => Err(error.into()),
    }
}

fn install(setting: &Setting) -> Result<AbsPath, Fault> {
    let environment: Vec<_> = setting.environ.clone().into_iter().collect();
    let installation = Installation {
        data: &setting.dirs.data,
        workspace: None,
        environment: &environment,
        limit: LIMIT,
    };
    let mut interrupted = None;
    let outcome = installation.run(&mut |news| {
        match news {
            Progress::Step(step) => progress(&step),
            Progress::Elapsed(seconds) if seconds % NEWS == 0 => progress(&format!("npm is at work ({seconds} s)")),
            Progress::Elapsed(_) => {}
        }
        interrupted = interrupted.or_else(|| asked_to_end(&setting.signals));
        interrupted.map_or(ControlFlow::Continue(()), |_| ControlFlow::Break(()))
    });
    match interrupted {
        Some(signal) => Err(DemoError::Interrupted(signal).into()),
        None => Ok(outcome?),
    }
}
