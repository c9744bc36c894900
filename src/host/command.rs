//! Running a multiplexer's own program: clean environment, bounded time, bounded output.

use super::error::HostError;
use crate::base::AbsPath;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a command may take.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// How much of each output is kept; the rest is read and dropped.
const KEPT: usize = 64 * 1024;
/// How long outputs stay open for a program that has ended: something that it left behind may still hold them.
const GRACE: Duration = Duration::from_millis(200);
const TICK: Duration = Duration::from_millis(5);

/// What a command said.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Runs a program to its end in `folder`, without input, in a process group of its own. Its environment is a PATH of
/// the system's folders and a UTF-8 locale; nothing of ours. After `limit` of monotonic time the whole group is killed.
pub(super) fn run(
    program: &AbsPath,
    args: &[OsString],
    folder: &AbsPath,
    limit: Duration,
) -> Result<Output, HostError> {
    let spawn = |source| HostError::Spawn {
        program: program.clone(),
        source,
    };
    let mut command = Command::new(program.as_path());
    command
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut running = Running {
        child: command.spawn().map_err(spawn)?,
        ended: None,
    };
    let deadline = Instant::now() + limit;
    let outcome = running.outcome(deadline).map_err(spawn)?;
    outcome.ok_or_else(|| HostError::Timeout {
        program: program.clone(),
        limit,
    })
}

/// A child that does not outlive this value.
struct Running {
    child: Child,
    /// How and when it ended, once it has been waited for; until then its number cannot be given to another.
    ended: Option<(ExitStatus, Instant)>,
}

impl Running {
    /// Nothing at the deadline.
    fn outcome(&mut self, deadline: Instant) -> io::Result<Option<Output>> {
        let mut stdout = Pipe::new(self.child.stdout.take())?;
        let mut stderr = Pipe::new(self.child.stderr.take())?;
        loop {
            if self.ended.is_none() {
                self.ended = self.child.try_wait()?.map(|status| (status, Instant::now()));
            }
            stdout.drain()?;
            stderr.drain()?;
            let now = Instant::now();
            let closed = stdout.source.is_none() && stderr.source.is_none();
            match self.ended {
                Some((status, since)) if closed || now > since + GRACE => {
                    return Ok(Some(Output {
                        status,
                        stdout: stdout.kept,
                        stderr: stderr.kept,
                    }));
                }
                None if now >= deadline => return Ok(None),
                _ => wait(&[stdout.fd(), stderr.fd()])?,
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // No look at the child first: that would wait for one that ended just now, and its group would live on.
        if self.ended.is_none() {
            if let Ok(group) = i32::try_from(self.child.id()) {
                let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
            }
            let _ = self.child.wait();
        }
    }
}

/// One output of the child, until it closes.
struct Pipe<R> {
    source: Option<R>,
    kept: Vec<u8>,
}

impl<R: Read + AsFd> Pipe<R> {
    fn new(source: Option<R>) -> io::Result<Pipe<R>> {
        if let Some(source) = &source {
            fcntl(source, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(Pipe {
            source,
            kept: Vec::new(),
        })
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is there, at most a few blocks, so that an endless writer does not hold us past the deadline.
    fn drain(&mut self) -> io::Result<()> {
        let mut block = [0; 8192];
        for _ in 0..16 {
            let Some(source) = &mut self.source else { return Ok(()) };
            match source.read(&mut block) {
                Ok(0) => self.source = None,
                Ok(size) => self.kept.extend(block[..size].iter().take(KEPT - self.kept.len())),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// Until there is output, or for a moment: the end of the child is looked for in between.
fn wait(outputs: &[Option<BorrowedFd<'_>>]) -> io::Result<()> {
    let mut fds: Vec<_> = outputs
        .iter()
        .flatten()
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
        .collect();
    let tick = PollTimeout::try_from(TICK).unwrap_or(PollTimeout::ZERO);
    match poll(&mut fds, tick) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> Result<Output, HostError> {
        let program = AbsPath::new("/bin/sh").unwrap();
        run(&program, &["-c".into(), script.into()], &AbsPath::root(), limit)
    }

    #[test]
    fn passes_status_and_both_outputs_on_and_no_environment() {
        let output = sh(
            "env | cut -d= -f1 | sort | tr '\\n' ' '; pwd; cat; echo wrong >&2; exit 3",
            LIMIT,
        )
        .unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "LC_ALL PATH PWD /\n");
        assert_eq!(output.stderr, b"wrong\n");
    }

    #[test]
    fn keeps_a_bounded_part_of_a_flood() {
        let output = sh("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2", LIMIT).unwrap();
        assert!(output.status.success());
        assert_eq!((output.stdout.len(), output.stderr.len()), (KEPT, KEPT));
    }

    #[test]
    fn stops_the_whole_group_at_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("pids");
        let script = format!("trap '' TERM; sleep 60 & echo $! > '{}'; yes", note.display());
        let started = Instant::now();
        let error = sh(&script, Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error, HostError::Timeout { .. }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(5));
        let pid = std::fs::read_to_string(note).unwrap().trim().parse().unwrap();
        let child = crate::base::ProcessRecord::of(crate::base::Pid::new(pid).unwrap());
        let gone = Instant::now();
        while child.as_ref().is_ok_and(|c| c.is_alive()) && gone.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!child.is_ok_and(|c| c.is_alive()));
    }

    #[test]
    fn does_not_wait_for_what_a_command_leaves_behind() {
        let started = Instant::now();
        let output = sh("sleep 3 & echo done", LIMIT).unwrap();
        assert_eq!(output.stdout, b"done\n");
        assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn says_which_program_could_not_be_run() {
        let program = AbsPath::new("/none/such").unwrap();
        let error = run(&program, &[], &AbsPath::root(), LIMIT).unwrap_err();
        assert!(error.to_string().starts_with("cannot run /none/such: "), "{error}");
    }
}
