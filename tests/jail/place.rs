//! A fresh place for one test, and the program under test in it: folders, an environment without surprises, and a
//! limit on how long anything may take. Only processes that were started here are ended, by their id.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest that one command may take; far more than any needs, even on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(40);

/// The program under test.
pub fn program() -> PathBuf {
    std::env::var_os("PINFOLD_BIN").map_or_else(|| env!("CARGO_BIN_EXE_pinfold").into(), PathBuf::from)
}

/// Runs a command in a process in which system calls fail.
pub const FILTER: &str = include_str!("filter.pl");

/// What this run of the suite is about: `JAIL_MODE=reduced` is a machine that gives no namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Full,
    Reduced,
}

pub fn mode() -> Mode {
    match std::env::var("JAIL_MODE").as_deref() {
        Ok("reduced") => Mode::Reduced,
        _ => Mode::Full,
    }
}

/// The rule under which no namespace can be made: clone3 is not there.
pub fn no_namespaces() -> String {
    format!("{}={}", nix::libc::SYS_clone3, nix::libc::ENOSYS)
}

/// What a launch needs to be told there.
pub fn mode_options() -> &'static [&'static str] {
    match mode() {
        Mode::Full => &[],
        Mode::Reduced => &["--allow-missing", "P5"],
    }
}

/// Folders of one test: `home`, `garden` (the workspace), `secrets` (granted to nobody), all on the host.
pub struct Place {
    folder: TempDir,
    pub home: PathBuf,
    pub work: PathBuf,
    pub secrets: PathBuf,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

impl Place {
    pub fn new() -> Place {
        let folder = TempDir::new().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let [home, work, secrets] = ["home", "garden", "secrets"].map(|name| path.join(name));
        for folder in [&home, &work, &secrets] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(secrets.join("key"), "the secret key\n").unwrap();
        Place {
            folder,
            home,
            work,
            secrets,
        }
    }

    /// Where the folders are.
    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// A program in the workspace, in the environment that both sides of every test have.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.work).env_clear().stdin(Stdio::null());
        command
            .env("HOME", &self.home)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8");
        command
    }

    /// The program itself, on a machine as the mode wants it.
    pub fn launcher(&self) -> Command {
        match mode() {
            Mode::Full => self.command(program()),
            Mode::Reduced => self.filtered(&no_namespaces()),
        }
    }

    /// The program itself, where system calls fail by these rules of `filter.pl`.
    pub fn filtered(&self, rules: &str) -> Command {
        let mut command = self.command("/usr/bin/perl");
        let prctl = nix::libc::SYS_prctl.to_string();
        command.args(["-TUX", "-e", FILTER, &prctl, rules]).arg(program());
        command
    }

    /// `pinfold run [options] -- command`.
    pub fn run<A: AsRef<OsStr>, B: AsRef<OsStr>>(&self, options: &[A], argv: &[B]) -> Command {
        let mut command = self.launcher();
        command
            .arg("run")
            .args(mode_options())
            .args(options)
            .arg("--")
            .args(argv);
        command
    }

    /// The same with a shell script as the command.
    pub fn sh(&self, options: &[&str], script: &str) -> Command {
        self.run(options, &["sh", "-c", script])
    }
}

impl Ended {
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }

    /// The exit status as a shell gives it.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Fails with everything that was said unless the status is this one.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code(), code, "\nstdout: {}\nstderr: {}", self.out(), self.err());
        self
    }
}

/// Runs a command to its end and takes what it says.
#[track_caller]
pub fn finish(command: &mut Command) -> Ended {
    let started = Started::new(command);
    started.finish()
}

/// A command under way; dropped, it is ended.
pub struct Started {
    pub child: Child,
    out: Receiver<Vec<u8>>,
    err: Receiver<Vec<u8>>,
}

impl Started {
    #[track_caller]
    pub fn new(command: &mut Command) -> Started {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = collect(child.stdout.take().unwrap());
        let err = collect(child.stderr.take().unwrap());
        Started { child, out, err }
    }

    pub fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(self.pid(), signal).unwrap();
    }

    /// Waits for the end, and fails if it does not come.
    #[track_caller]
    pub fn finish(mut self) -> Ended {
        let status = self.wait();
        let limit = Duration::from_secs(5);
        let out = self
            .out
            .recv_timeout(limit)
            .expect("something still holds stdout after the end");
        let err = self
            .err
            .recv_timeout(limit)
            .expect("something still holds stderr after the end");
        Ended { status, out, err }
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "still running after {LIMIT:?}");
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (to, all) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = to.send(bytes);
    });
    all
}

/// Tries until something is so, within the limit of a slow machine.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < end, "not within ten seconds: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A number of seconds for `sleep` that no other process on this machine was given.
pub fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("3{}.{number:06}", std::process::id())
}

/// The processes of this machine with a word in their arguments.
pub fn processes_with(word: &str) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let has = |pid: &i32| {
        let arguments = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
        arguments.windows(word.len()).any(|window| window == word.as_bytes())
    };
    pids.filter(has).collect()
}
