//! The line of one command whose words are read instead of shown: the doctor's attempts.

use super::Setting;
use super::attendance::{Attendance, OnFailure, Outcome, Unconfined};
use super::mediation::{Mediation, inlets};
use super::run::RunError;
use super::session::expectation;
use super::subject::handed_out;
use super::watch::Watch;
use crate::base::{AbsPath, Explain, Fault, Kind, LaunchId, Port};
use crate::policy::Policy;
use crate::sandbox::door::DoorGone;
use crate::sandbox::{Doors, Exit, Order, SpawnError, Stream, spawn};
use crate::verify::{NetSubject, Report, held};
use nix::fcntl::OFlag;
use std::ffi::OsString;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Duration;

/// What to run, and how much of it to wait for.
pub struct Capture<'a> {
    pub argv: Vec<OsString>,
    /// All of its standard input.
    pub input: Vec<u8>,
    /// Where network decisions are written; without one no broker is there.
    pub network_log: Option<&'a AbsPath>,
    /// Bytes of its standard output that are read; more is not waited for.
    pub most: u64,
    pub limit: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Captured {
    pub exit: Exit,
    pub output: Vec<u8>,
    /// The verification before release.
    pub report: Report,
}

/// Why there is nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("the command was not released, because verification failed: {}", Unconfined::of(.0).0)]
    NotVerified(Report),
    #[error("a stream for the command cannot be made ({0})")]
    Stream(std::io::Error),
    #[error("{0}")]
    Other(Fault),
}

impl Explain for CaptureError {
    fn kind(&self) -> Kind {
        match self {
            CaptureError::Spawn(error) => error.kind(),
            CaptureError::NotVerified(_) => Kind::Unconfined,
            CaptureError::Stream(_) => Kind::Startup,
            CaptureError::Other(fault) => fault.kind(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            CaptureError::Spawn(error) => error.hint(),
            CaptureError::Other(fault) => fault.hint(),
            _ => None,
        }
    }
}

fn other(error: impl Explain + 'static) -> CaptureError {
    CaptureError::Other(error.into())
}

/// Runs it enclosed, verified like every other command, and reads what it writes. This process has one thread before
/// and after.
pub fn captured(policy: &Policy, capture: Capture<'_>, setting: &Setting) -> Result<Captured, CaptureError> {
    let launch = LaunchId::fresh();
    let (streams, reader) = streams(&capture)?;
    let inlets: Vec<Port> = capture.network_log.map(|_| inlets(policy)).unwrap_or_default();
    let order = Order {
        argv: capture.argv,
        streams,
        inlets,
        door: Doors::None,
    };
    let mut jailed = spawn(policy, order)?;
    let mut mediation = Mediation::new(None);
    let log = capture.network_log.map(|path| (&launch, path));
    mediation.add(&mut jailed, policy, log, None).map_err(other)?;
    let _traffic = mediation.start().map_err(other)?;
    let network = NetSubject {
        handed_out: handed_out(&jailed.facts),
        ..NetSubject::default()
    };
    let subject = expectation(&jailed, policy, network).map_err(CaptureError::Other)?;
    let passed = held(&subject).map_err(CaptureError::NotVerified)?;
    let report = passed.report().clone();
    let running = jailed.release(passed).map_err(other)?;
    let output = read(reader, capture.most).map_err(CaptureError::Stream)?;
    let watch = Watch::start(vec![subject]).map_err(|error| other(RunError::NoWatch(error)))?;
    let (outcome, _) = Attendance::new(&[&running], None, &setting.signals, &watch, OnFailure::Stop)
        .within(capture.limit)
        .wait(|_| {});
    running.end();
    let output = output.join().unwrap_or_default();
    match outcome {
        Outcome::Ended(_, exit) => Ok(Captured { exit, output, report }),
        Outcome::Unconfined(report) => Err(other(Unconfined::of(&report))),
        Outcome::DoorGone => Err(other(DoorGone)),
        Outcome::Broken(errno) => Err(other(RunError::Broken(errno))),
    }
}

/// The command's streams, and our end of its output.
fn streams(capture: &Capture<'_>) -> Result<([Stream; 3], OwnedFd), CaptureError> {
    let failed = |errno: nix::errno::Errno| CaptureError::Stream(errno.into());
    let (reader, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(failed)?;
    let null = || {
        let mode = nix::sys::stat::Mode::empty();
        nix::fcntl::open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, mode).map_err(failed)
    };
    let input = if capture.input.is_empty() {
        null()?
    } else {
        memory(&capture.input).map_err(CaptureError::Stream)?
    };
    // A terminal of the sandbox's own, which nobody reads: it is there to be tried.
    Ok(([Stream::File(input), Stream::File(writer), Stream::Terminal], reader))
}

/// A file in memory that holds these bytes: a pipe would hold only so many before anybody reads.
fn memory(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
    let mut file = std::fs::File::from(nix::sys::memfd::memfd_create(c"pinfold-input", flags)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Reads while the command runs, so that a full pipe does not hold it; it ends with the sandbox.
fn read(reader: OwnedFd, most: u64) -> std::io::Result<JoinHandle<Vec<u8>>> {
    let work = move || {
        let mut output = Vec::new();
        let _ = std::fs::File::from(reader).take(most).read_to_end(&mut output);
        output
    };
    std::thread::Builder::new().name("output".into()).spawn(work)
}
