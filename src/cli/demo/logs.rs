//! The launch's logs, kept beside the person's own when the demonstration's folder goes.

use super::DemoError;
use crate::base::text::visible;
use crate::base::{AbsPath, Explain, Fault, Kind};
use crate::launch::Setting;
use crate::state::Store;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The session that they are filed under; the next demonstration replaces them.
const NAME: &str = "demo";

/// A log that cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("the log {} cannot be kept: {source}", visible(path))]
struct LogError {
    path: PathBuf,
    source: std::io::Error,
}

impl Explain for LogError {
    fn kind(&self) -> Kind {
        Kind::Startup
    }
}

/// Copies the logs of the only session of `launch` and says where they are now.
pub fn keep(launch: &Store, setting: &Setting) -> Result<Vec<PathBuf>, Fault> {
    let Some(record) = launch.list()?.records.into_iter().next() else {
        return Ok(Vec::new());
    };
    let kept = Store::open(&setting.dirs)?;
    let place = |path: Result<AbsPath, _>| path.map_err(|_| DemoError::Place(NAME.into()));
    let server = place(kept.logs().server(NAME))?;
    let network = place(kept.logs().network(NAME))?;
    let pairs = [(record.server_log, server), (record.network_log, network)];
    let mut copies = Vec::new();
    for (from, to) in pairs {
        let Some(from) = from else { continue };
        let failed = |source| LogError {
            path: to.as_path().to_owned(),
            source,
        };
        let mut copy = kept.logs().append(&to)?;
        copy.set_len(0).map_err(failed)?;
        let mut log = File::open(&from).map_err(failed)?;
        std::io::copy(&mut log, &mut copy).map_err(failed)?;
        copies.push(to.as_path().to_owned());
    }
    Ok(copies)
}

/// One log for a person.
pub fn line(log: &Path) -> String {
    format!("log: {}", visible(log))
}
