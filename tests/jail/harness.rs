//! Attempts: what an enclosed command must not manage, tried outside as the control and then inside.
//!
//! An attempt is a piece of Python that raises `OSError` where it is stopped. It counts as denied only with one of the
//! error numbers that the layer gives: a time-out, a missing program or silence is a defect of the test.

use crate::place::{Ended, Place, finish};
use std::ffi::OsString;
use std::process::Command;

/// Runs the attempt in its first argument; the rest are the attempt's own, from `argv[1]` on.
const RUNNER: &str = r#"
import ctypes, errno, os, signal, socket, stat, struct, subprocess, sys, time
body, argv = sys.argv[1], sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    "One system call by number; every word as 64 bits or as bytes."
    plain = [ctypes.c_char_p(w) if isinstance(w, bytes) else ctypes.c_void_p(w) if isinstance(w, int) else w for w in words]
    result = libc.syscall(ctypes.c_long(number), *plain)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
def deny(name):
    raise OSError(getattr(errno, name), "as told")
try:
    exec(body, globals())
except OSError as error:
    print("denied", errno.errorcode.get(error.errno, repr(error)), flush=True)
    os._exit(77)
print("done", flush=True)
os._exit(0)
"#;

/// The same interpreter on both sides, whatever comes first on somebody's PATH.
pub const PYTHON: &str = "/usr/bin/python3";

/// One thing to try.
pub struct Attempt {
    body: String,
    arguments: Vec<OsString>,
}

/// What came of a control and an attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Succeeds outside, is denied inside as it should be.
    Held,
    /// Succeeds inside.
    Escape,
    /// Does not succeed outside, so the denial inside would mean nothing.
    NoControl(String),
    /// Neither: the test is wrong, or the sandbox breaks in another way.
    Broken(String),
}

enum Tried {
    Done,
    Denied(String),
    Neither(String),
}

impl Attempt {
    pub fn python(body: &str) -> Attempt {
        Attempt {
            body: body.to_owned(),
            arguments: Vec::new(),
        }
    }

    pub fn with(mut self, argument: impl Into<OsString>) -> Attempt {
        self.arguments.push(argument.into());
        self
    }

    pub fn argv(&self) -> Vec<OsString> {
        let mut argv: Vec<OsString> = [PYTHON, "-I", "-S", "-c", RUNNER, &self.body]
            .map(OsString::from)
            .to_vec();
        argv.extend(self.arguments.iter().cloned());
        argv
    }
}

fn tried(ended: &Ended) -> Tried {
    let out = ended.out();
    let last = out.lines().last().unwrap_or_default();
    match (ended.code(), last.split_once(' ')) {
        (0, _) if last == "done" => Tried::Done,
        (77, Some(("denied", name))) => Tried::Denied(name.to_owned()),
        (code, _) => Tried::Neither(format!("status {code}\nstdout: {out}\nstderr: {}", ended.err())),
    }
}

impl Place {
    /// Runs an attempt on the host, in a copy of the workspace: what it destroys there is not missed.
    fn try_outside(&self, attempt: &Attempt) -> Tried {
        let twin = self.path().join("twin");
        if !twin.exists() {
            finish(Command::new("cp").arg("-a").arg(&self.work).arg(&twin)).expect(0);
        }
        let argv = attempt.argv();
        tried(&finish(self.command(&argv[0]).args(&argv[1..]).current_dir(twin)))
    }

    fn try_inside(&self, options: &[&str], attempt: &Attempt) -> Tried {
        tried(&finish(&mut self.run(options, &attempt.argv())))
    }

    /// Tries `control` outside and `attempt` inside; they differ where outside and inside have different names.
    pub fn compare(&self, control: &Attempt, options: &[&str], attempt: &Attempt, errors: &[&str]) -> Verdict {
        match self.try_outside(control) {
            Tried::Done => {}
            Tried::Denied(name) => return Verdict::NoControl(name),
            Tried::Neither(text) => return Verdict::Broken(format!("outside: {text}")),
        }
        match self.try_inside(options, attempt) {
            Tried::Done => Verdict::Escape,
            Tried::Denied(name) if errors.contains(&name.as_str()) => Verdict::Held,
            Tried::Denied(name) => Verdict::Broken(format!("denied with {name}, not one of {errors:?}")),
            Tried::Neither(text) => Verdict::Broken(format!("inside: {text}")),
        }
    }

    /// The attempt succeeds outside, and inside it ends with one of the errors.
    #[track_caller]
    pub fn denies(&self, options: &[&str], attempt: &Attempt, errors: &[&str]) {
        let verdict = self.compare(attempt, options, attempt, errors);
        assert_eq!(verdict, Verdict::Held, "\n{}", attempt.body);
    }

    /// The same where what is tried may not exist on this machine: then it is no attempt, and that is said.
    #[track_caller]
    pub fn denies_if_here(&self, options: &[&str], attempt: &Attempt, errors: &[&str]) {
        match self.compare(attempt, options, attempt, errors) {
            Verdict::NoControl(name) => skip(&format!("the control fails with {name}: {}", attempt.body)),
            verdict => assert_eq!(verdict, Verdict::Held, "\n{}", attempt.body),
        }
    }

    /// The attempt succeeds inside: the opposite of a denial.
    #[track_caller]
    pub fn allows(&self, options: &[&str], attempt: &Attempt) {
        match self.try_inside(options, attempt) {
            Tried::Done => {}
            Tried::Denied(name) => panic!("denied with {name}:\n{}", attempt.body),
            Tried::Neither(text) => panic!("{text}\n{}", attempt.body),
        }
    }
}

/// Says why something was not tried; where all must be, that is a failure.
#[track_caller]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    assert_ne!(std::env::var("JAIL_MUST_WORK").as_deref(), Ok("1"), "skipped: {reason}");
}

/// Says why an ordinary user cannot make the control of an attempt, which the run as root then makes: no skip, since
/// both runs belong to the suite. As root it is a failure of the test that calls it.
#[track_caller]
pub fn covered_by_root(reason: &str) {
    eprintln!("left to the run as root: {reason}");
    assert!(!is_root(), "root was to try this: {reason}");
}

/// Says that a kernel was built without what an attempt is made on: there is nothing that could be closed.
pub fn not_in_this_kernel(what: &str) {
    eprintln!("not in this kernel: {what}");
}

/// Says that a tool which the suite's set-up leaves out is not installed: it is tried where it is there anyway.
pub fn not_here(tool: &str) {
    eprintln!("not installed here: {tool}");
}

/// Whether this test has the rights of root, which some controls need.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
