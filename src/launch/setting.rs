//! What every launch of this process shares, looked up once.

use crate::base::{AbsPath, Dirs, Environ, Explain, Fault, Kind};
use crate::policy::LiveHost;
use crate::sandbox::attend::Signals;
use crate::state::Logs;
use std::path::PathBuf;

/// The process's environment, folders, signals and own program.
#[derive(Debug)]
pub struct Setting {
    pub environ: Environ,
    pub dirs: Dirs,
    pub host: LiveHost,
    pub signals: Signals,
    /// Pinfold's own program.
    pub program: PathBuf,
    /// Where this process was started.
    pub here: PathBuf,
}

/// Something about this process that a launch cannot do without is missing.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    #[error("the folder that pinfold was started in is gone or cannot be reached ({0})")]
    Here(std::io::Error),
    #[error("pinfold cannot find its own program ({0})")]
    Program(std::io::Error),
    #[error("signals cannot be taken ({0})")]
    Signals(nix::errno::Errno),
}

impl Explain for SettingError {
    fn kind(&self) -> Kind {
        match self {
            SettingError::Here(_) => Kind::Target,
            _ => Kind::Startup,
        }
    }
    fn hint(&self) -> Option<String> {
        matches!(self, SettingError::Here(_))
            .then(|| "change to a folder that exists, or name one with --workdir".into())
    }
}

impl Setting {
    /// Looks everything up, and takes this process's signals from here on.
    pub fn find() -> Result<Setting, Fault> {
        let signals = Signals::take().map_err(SettingError::Signals)?;
        let environ: Environ = std::env::vars_os().collect();
        let dirs = Dirs::resolve(&environ, nix::unistd::geteuid())?;
        Ok(Setting {
            environ,
            dirs,
            host: LiveHost::new(),
            signals,
            program: std::env::current_exe().map_err(SettingError::Program)?,
            here: std::env::current_dir().map_err(SettingError::Here)?,
        })
    }

    /// Where people keep profiles of their own.
    pub fn profile_folders(&self) -> Vec<PathBuf> {
        vec![self.dirs.config.as_path().join("profiles")]
    }

    /// Where the mediator of a launch tells what it refused; the folder is made when there is something to tell.
    pub fn refused(&self, session: &str) -> Option<AbsPath> {
        Logs::refused_in(&self.dirs.state, session).ok()
    }

    /// The folders that no launch may hand in.
    pub fn own_folders(&self) -> Vec<PathBuf> {
        let Dirs {
            config,
            state,
            data,
            runtime,
        } = &self.dirs;
        [config, state, data, runtime]
            .map(|folder: &AbsPath| folder.as_path().to_owned())
            .to_vec()
    }
}
