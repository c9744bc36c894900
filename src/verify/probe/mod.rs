//! The attempts that an enclosed process makes, and the same outside as their control. Each is harmless where it
//! succeeds: what it makes it removes, what it changes it changes back.

mod files;
mod kernel;
mod outcome;
mod own;
mod plan;
mod processes;
mod sockets;
#[cfg(test)]
mod tests;

pub use outcome::{Outcome, Tried, Verdict};
pub use plan::{Planned, Targets, escape_set};

use std::ffi::OsString;

/// Why an attempt could not even be made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UsageError {
    #[error("there is no attempt {0:?}")]
    Unknown(String),
    #[error("{attempt} takes {usage}")]
    Arguments { attempt: &'static str, usage: &'static str },
}

impl crate::base::Explain for UsageError {
    fn kind(&self) -> crate::base::Kind {
        crate::base::Kind::Config
    }
    fn hint(&self) -> Option<String> {
        let names: Vec<_> = ATTEMPTS.iter().map(|attempt| attempt.name).collect();
        Some(format!("the attempts are {}", names.join(", ")))
    }
}

/// What an attempt met, before it is named.
type Met = Result<Tried, nix::errno::Errno>;

/// One thing to try.
struct Attempt {
    name: &'static str,
    /// For messages: what the arguments are.
    usage: &'static str,
    /// How many arguments there may be.
    count: std::ops::RangeInclusive<usize>,
    run: fn(&[OsString]) -> (Tried, String),
}

const fn attempt(
    name: &'static str,
    usage: &'static str,
    count: std::ops::RangeInclusive<usize>,
    run: fn(&[OsString]) -> (Tried, String),
) -> Attempt {
    Attempt {
        name,
        usage,
        count,
        run,
    }
}

/// Every attempt by name.
static ATTEMPTS: [Attempt; 37] = [
    attempt("connect-unix", "the path of a socket", 1..=1, |a| {
        sockets::connect_unix(&a[0])
    }),
    attempt("connect-abstract", "the name of a socket without its NUL", 1..=1, |a| {
        sockets::connect_abstract(&a[0])
    }),
    attempt("connect-tcp", "an address and port", 1..=1, |a| {
        sockets::connect_tcp(&a[0])
    }),
    attempt("udp", "the address and port of something that answers", 1..=1, |a| {
        sockets::udp(&a[0])
    }),
    attempt(
        "http-proxy",
        "a name and port to ask the proxy of HTTPS_PROXY for",
        1..=1,
        |a| sockets::http_proxy(&a[0]),
    ),
    attempt("reach", "a name and port, by the proxy if there is one", 1..=1, |a| {
        sockets::reach(&a[0])
    }),
    attempt("raw-socket", "nothing", 0..=0, |_| plain(sockets::raw())),
    attempt("vsock", "nothing", 0..=0, |_| plain(sockets::vsock())),
    attempt("netlink", "nothing", 0..=0, |_| plain(sockets::netlink())),
    attempt("packet", "nothing", 0..=0, |_| plain(sockets::packet())),
    attempt("read", "a file", 1..=1, |a| plain(files::read(&a[0]))),
    attempt("list", "a folder", 1..=1, |a| plain(files::list(&a[0]))),
    attempt("write", "a file, which is opened but not changed", 1..=1, |a| {
        plain(files::write(&a[0]))
    }),
    attempt("create", "a path where nothing is", 1..=1, |a| {
        plain(files::create(&a[0]))
    }),
    attempt("rename", "a path and another where nothing is", 2..=2, |a| {
        plain(files::rename(&a[0], &a[1]))
    }),
    attempt("link", "a file and a path where nothing is", 2..=2, |a| {
        plain(files::link(&a[0], &a[1]))
    }),
    attempt("mknod", "a path where nothing is", 1..=1, |a| {
        plain(files::mknod(&a[0]))
    }),
    attempt("chmod-suid", "a file of one's own", 1..=1, |a| {
        plain(files::chmod_suid(&a[0]))
    }),
    attempt("core-pattern", "nothing", 0..=0, |_| plain(files::core_pattern())),
    attempt("open-tty", "a terminal, /dev/tty if none is named", 0..=1, |a| {
        plain(files::open_tty(a.first()))
    }),
    attempt("signal", "a process id", 1..=1, |a| plain(processes::signal(&a[0]))),
    attempt("ptrace", "a process id", 1..=1, |a| plain(processes::trace(&a[0]))),
    attempt("read-proc", "a process id", 1..=1, |a| {
        plain(processes::read_environment(&a[0]))
    }),
    attempt("io-uring", "nothing", 0..=0, |_| plain(kernel::io_uring())),
    attempt("unshare-user", "nothing", 0..=0, |_| plain(kernel::unshare_user())),
    attempt("mount", "nothing", 0..=0, |_| plain(kernel::mount())),
    attempt("mount-new", "nothing", 0..=0, |_| plain(kernel::mount_new())),
    attempt("bpf", "nothing", 0..=0, |_| plain(kernel::bpf())),
    attempt("perf", "nothing", 0..=0, |_| plain(kernel::perf())),
    attempt("userfaultfd", "nothing", 0..=0, |_| plain(kernel::userfaultfd())),
    attempt("keyctl", "nothing", 0..=0, |_| plain(kernel::keyctl())),
    attempt("tiocsti", "nothing; the terminal is standard input", 0..=0, |_| {
        plain(kernel::inject())
    }),
    attempt("tiocsti-high", "nothing; the terminal is standard input", 0..=0, |_| {
        plain(kernel::inject_high_bits())
    }),
    attempt(
        "env",
        "names to look for, or nothing for all",
        0..=usize::MAX,
        own::environment,
    ),
    attempt("fds", "nothing", 0..=0, |_| own::descriptors()),
    attempt(
        "own-abstract",
        "nothing; a socket of one's own, which must work",
        0..=0,
        |_| plain(sockets::own_abstract()),
    ),
    attempt(
        "own-tcp",
        "nothing; a listener of one's own, which must work",
        0..=0,
        |_| plain(sockets::own_tcp()),
    ),
];

fn plain(met: Met) -> (Tried, String) {
    match met {
        Ok(tried) => (tried, String::new()),
        Err(errno) => (Tried::from_errno(errno), errno.desc().to_owned()),
    }
}

/// The names of all attempts.
pub fn names() -> impl Iterator<Item = &'static str> {
    ATTEMPTS.iter().map(|attempt| attempt.name)
}

/// Makes one attempt in this process. It takes at most a few seconds; silence is `TimedOut`, never a denial.
pub fn attempt_by_name(name: &str, args: &[OsString]) -> Result<Outcome, UsageError> {
    let attempt = ATTEMPTS
        .iter()
        .find(|attempt| attempt.name == name)
        .ok_or_else(|| UsageError::Unknown(name.to_owned()))?;
    if !attempt.count.contains(&args.len()) {
        return Err(UsageError::Arguments {
            attempt: attempt.name,
            usage: attempt.usage,
        });
    }
    let (result, detail) = (attempt.run)(args);
    Ok(Outcome {
        attempt: attempt.name.to_owned(),
        result,
        detail,
    })
}
