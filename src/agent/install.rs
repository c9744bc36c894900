//! Installs OpenCode from npm into Pinfold's own data folder: never globally, whole or not at all.

mod error;

pub use error::InstallError;

use super::elf::{Image, read_image};
use super::opencode::{folder, packages, program_in};
use super::program::{Checked, check, on_path, trusted_path};
use crate::base::AbsPath;
use error::{files, npm_error};
use fs2::FileExt;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The version of OpenCode that is installed, demonstrated and tested.
pub const PINNED: &str = "1.18.33";

/// The person's variables that npm needs to reach its registry; everything else stays outside.
const PASSED_ON: &[&str] = &["HOME", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// The same in any case of letters.
const PASSED_ON_ANY_CASE: &[&str] = &["http_proxy", "https_proxy", "all_proxy", "no_proxy"];
const PASSED_ON_PREFIX: &[u8] = b"npm_config_";
/// What is kept of each of npm's outputs.
const OUTPUT_LIMIT: usize = 64 * 1024;
/// How often a running npm is looked at.
const TICK: Duration = Duration::from_millis(100);

/// What the person sees while it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A step begins.
    Step(String),
    /// Whole seconds since the installation began; once each second.
    Elapsed(u64),
}

/// One installation, not yet begun.
#[derive(Debug)]
pub struct Installation<'a> {
    /// Pinfold's own data folder; made if absent.
    pub data: &'a AbsPath,
    /// The folder that a sandboxed agent can write: neither npm nor Node is taken from it.
    pub workspace: Option<&'a AbsPath>,
    /// The person's environment.
    pub environment: &'a [(OsString, OsString)],
    /// For everything.
    pub limit: Duration,
}

impl Installation<'_> {
    /// Installs the pinned version and gives the path of the program. One installation at a time; the second waits
    /// and then begins anew. `progress` may break it off, at each second that has passed at the latest.
    pub fn run(self, progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<AbsPath, InstallError> {
        let start = Instant::now();
        let mut clock = Clock {
            start,
            limit: self.limit,
            told: 0,
            progress,
        };
        let path = self.variable("PATH").unwrap_or_default();
        let npm = on_path("npm", path, self.workspace)
            .into_iter()
            .next()
            .ok_or(InstallError::NoNpm)?;
        let home = folder(self.data);
        fs::create_dir_all(&home).map_err(files("make", &home))?;
        let _one_at_a_time = lock(&home, &mut clock)?;

        let package = packages(uses_musl()).swap_remove(0);
        let fresh = home.join(".installing");
        remove(&fresh)?;
        fs::create_dir(&fresh).map_err(files("make", &fresh))?;
        let spec = format!("{package}@{PINNED}");
        clock.tell(Progress::Step(format!("installing {spec} into {}", home.display())))?;
        let outcome = self
            .install(&npm, &fresh, &spec, &mut clock)
            .and_then(|()| verify(&fresh, &package))
            .and_then(|()| put_in_place(&fresh, &home));
        let cleared = remove(&fresh);
        outcome.and(cleared)?;
        // Whoever breaks off now gets what is there already.
        let _ = clock.tell(Progress::Step(format!("installed OpenCode {PINNED}")));
        Ok(AbsPath::new(program_in(&home, &package))?)
    }

    /// Runs npm with a clean environment, in a folder that holds no settings of a project.
    fn install(&self, npm: &Path, prefix: &Path, spec: &str, clock: &mut Clock<'_>) -> Result<(), InstallError> {
        let mut command = Command::new(npm);
        command.arg("install").arg("--prefix").arg(prefix);
        command.args([
            "--json",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--ignore-scripts",
            spec,
        ]);
        command.current_dir(prefix).env_clear().envs(self.passed_on());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(files("run", npm))?;
        let outputs = [child.stdout.take().map(collect), child.stderr.take().map(collect)];
        let status = clock.wait(&mut child, npm);
        // After a kill nobody reads on: a child of npm that still holds the pipe must not hold us.
        let status = status?;
        let [json, text] = outputs.map(|output| output.and_then(|o| o.join().ok()).unwrap_or_default());
        if status.success() {
            Ok(())
        } else {
            Err(npm_error(spec, prefix, status, &json, &text))
        }
    }

    fn passed_on(&self) -> Vec<(OsString, OsString)> {
        let path = trusted_path(self.variable("PATH").unwrap_or_default(), self.workspace);
        let kept = self.environment.iter().filter(|(name, _)| passes(name)).cloned();
        kept.chain([("PATH".into(), path)]).collect()
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_os_str())
    }
}

fn passes(name: &OsStr) -> bool {
    let lower = name.as_bytes().to_ascii_lowercase();
    PASSED_ON.iter().any(|n| name == *n)
        || PASSED_ON_ANY_CASE.iter().any(|n| lower == n.as_bytes())
        || lower.starts_with(PASSED_ON_PREFIX)
}

/// The time that an installation may take, and who is told how much of it has passed.
struct Clock<'a> {
    start: Instant,
    limit: Duration,
    told: u64,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
}

impl Clock<'_> {
    fn tell(&mut self, news: Progress) -> Result<(), InstallError> {
        match (self.progress)(news) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(InstallError::BrokenOff),
        }
    }

    /// Sleeps for a tick; an error once the time is over or nobody wants to wait.
    fn tick(&mut self, doing: &'static str) -> Result<(), InstallError> {
        let elapsed = self.start.elapsed();
        if elapsed >= self.limit {
            return Err(InstallError::TooSlow {
                limit: self.limit,
                doing,
            });
        }
        if elapsed.as_secs() > self.told {
            self.told = elapsed.as_secs();
            self.tell(Progress::Elapsed(self.told))?;
        }
        std::thread::sleep(TICK.min(self.limit - elapsed));
        Ok(())
    }

    /// Waits for the child's end; kills it when the time is over or nobody wants to wait.
    fn wait(&mut self, child: &mut Child, npm: &Path) -> Result<ExitStatus, InstallError> {
        loop {
            if let Some(status) = child.try_wait().map_err(files("wait for", npm))? {
                return Ok(status);
            }
            if let Err(reason) = self.tick("npm was running") {
                // Already gone is as good as killed, and the wait only collects it.
                let _ = child.kill();
                let _ = child.wait();
                return Err(reason);
            }
        }
    }
}

/// Holds the folder for one installation; freed by the kernel if we die.
fn lock(home: &Path, clock: &mut Clock<'_>) -> Result<File, InstallError> {
    let place = home.join(".lock");
    let file = File::options()
        .create(true)
        .append(true)
        .open(&place)
        .map_err(files("open", &place))?;
    while let Err(error) = FileExt::try_lock_exclusive(&file) {
        if error.raw_os_error() != fs2::lock_contended_error().raw_os_error() {
            return Err(files("lock", &place)(error));
        }
        clock.tick("another installation was running")?;
    }
    Ok(file)
}

fn verify(prefix: &Path, package: &str) -> Result<(), InstallError> {
    match check(&program_in(prefix, package), None) {
        Ok(Checked::Program(_)) => Ok(()),
        Ok(Checked::Script(_)) => Err(InstallError::Script {
            package: package.to_owned(),
        }),
        Err(source) => Err(InstallError::NoProgram {
            package: package.to_owned(),
            source,
        }),
    }
}

/// Renames the fresh `node_modules` to where the old one stands; the old one comes back if that fails.
fn put_in_place(fresh: &Path, home: &Path) -> Result<(), InstallError> {
    let (new, place, old) = (
        fresh.join("node_modules"),
        home.join("node_modules"),
        fresh.join("replaced"),
    );
    match fs::rename(&place, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(files("move", &place)(error)),
        _ => {}
    }
    fs::rename(&new, &place).map_err(|error| {
        // If even this fails, the first error is still the one to tell.
        let _ = fs::rename(&old, &place);
        files("put in place", &place)(error)
    })
}

fn remove(folder: &Path) -> Result<(), InstallError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(files("remove", folder)(error)),
        _ => Ok(()),
    }
}

/// Whether this machine's programs use musl, as its shell does.
fn uses_musl() -> bool {
    match read_image(Path::new("/bin/sh")) {
        Ok(Image::Program { loader: Some(loader) }) => loader
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(b"ld-musl-")),
        _ => false,
    }
}

/// Reads to the end, keeping what was last.
fn collect(mut source: impl io::Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let (mut kept, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = source.read(&mut piece) {
            kept.extend_from_slice(&piece[..count]);
            kept.drain(..kept.len().saturating_sub(OUTPUT_LIMIT));
        }
        kept
    })
}

#[cfg(test)]
mod tests;
