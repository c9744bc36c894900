//! Every attempt by name, with the layers of the sandbox that stop it.

use super::{Tried, files, kernel, own, plain, processes, sockets};
use std::ffi::OsString;
use std::ops::RangeInclusive;

/// One thing to try.
pub(super) struct Attempt {
    pub name: &'static str,
    /// For messages: what the arguments are.
    pub usage: &'static str,
    /// How many arguments there may be.
    pub count: RangeInclusive<usize>,
    /// Each of these layers stops it by itself; none where it must work inside.
    pub layers: &'static [&'static str],
    pub run: fn(&[OsString]) -> (Tried, String),
}

const NONE: RangeInclusive<usize> = 0..=0;
const ONE: RangeInclusive<usize> = 1..=1;
const MAYBE: RangeInclusive<usize> = 0..=1;
const TWO: RangeInclusive<usize> = 2..=2;
const ANY: RangeInclusive<usize> = 0..=usize::MAX;

macro_rules! attempts {
    ($($name:literal, $usage:literal, $count:expr, [$($layer:literal),*], $run:expr;)*) => {
        &[$(Attempt { name: $name, usage: $usage, count: $count, layers: &[$($layer),*], run: $run }),*]
    };
}

/// Every attempt. One that needs nothing but its own process has no argument.
#[rustfmt::skip]
pub(super) static ATTEMPTS: &[Attempt] = attempts![
    "connect-unix", "the path of a socket", ONE, ["mounts"], |a| sockets::connect_unix(&a[0]);
    "unix-datagram", "the path of a datagram socket", ONE, ["mounts", "seccomp"], |a| sockets::unix_datagram(&a[0]);
    "unix-datagram-pair", "the path of a datagram socket", ONE, ["seccomp"], |a| sockets::unix_datagram_pair(&a[0]);
    "connect-abstract", "the name of a socket without its NUL", ONE, ["namespaces", "landlock"], |a| sockets::connect_abstract(&a[0]);
    "connect-tcp", "an address and port", ONE, ["namespaces", "network"], |a| sockets::connect_tcp(&a[0]);
    "fast-open", "an address and port", ONE, ["seccomp", "namespaces"], |a| sockets::fast_open(&a[0]);
    "udp", "the address and port of something that answers", ONE, ["namespaces", "network"], |a| sockets::udp(&a[0]);
    "http-proxy", "a name and port to ask the proxy of HTTPS_PROXY for", ONE, ["network"], |a| sockets::http_proxy(&a[0]);
    "reach", "a name and port, by the proxy if there is one", ONE, ["network"], |a| sockets::reach(&a[0]);
    "raw-socket", "nothing", NONE, ["seccomp", "capabilities"], |_| plain(sockets::raw());
    "vsock", "nothing", NONE, ["seccomp"], |_| plain(sockets::vsock());
    "netlink", "nothing", NONE, ["seccomp"], |_| plain(sockets::netlink());
    "packet", "nothing", NONE, ["seccomp", "capabilities"], |_| plain(sockets::packet());
    "read", "a file", ONE, ["mounts", "landlock"], |a| plain(files::read(&a[0]));
    "list", "a folder", ONE, ["mounts"], |a| plain(files::list(&a[0]));
    "write", "a file, which is opened but not changed", ONE, ["mounts", "landlock"], |a| plain(files::write(&a[0]));
    "create", "a path where nothing is", ONE, ["mounts", "landlock"], |a| plain(files::create(&a[0]));
    "rename", "a path and another where nothing is", TWO, ["mounts"], |a| plain(files::rename(&a[0], &a[1]));
    "link", "a file and a path where nothing is", TWO, ["mounts", "landlock"], |a| plain(files::link(&a[0], &a[1]));
    "file-handle", "a file", ONE, ["seccomp"], |a| plain(files::handle(&a[0]));
    "mknod", "a path where nothing is", ONE, ["seccomp", "capabilities"], |a| plain(files::mknod(&a[0]));
    "chmod-suid", "a file of one's own", ONE, ["seccomp"], |a| plain(files::chmod_suid(&a[0]));
    "core-pattern", "nothing", NONE, ["mounts"], |_| plain(files::core_pattern());
    "open-tty", "a terminal, /dev/tty if none is named", MAYBE, ["mounts"], |a| plain(files::open_tty(a.first()));
    "signal", "a process id", ONE, ["namespaces", "landlock"], |a| plain(processes::signal(&a[0]));
    "ptrace", "a process id", ONE, ["seccomp", "namespaces", "landlock"], |a| plain(processes::trace(&a[0]));
    "read-proc", "a process id", ONE, ["namespaces"], |a| plain(processes::read_environment(&a[0]));
    "io-uring", "nothing", NONE, ["seccomp"], |_| plain(kernel::io_uring());
    "unshare-user", "nothing", NONE, ["seccomp"], |_| plain(kernel::unshare_user());
    "clone3", "nothing", NONE, ["seccomp"], |_| plain(kernel::clone3());
    "mount", "nothing", NONE, ["seccomp", "capabilities"], |_| plain(kernel::mount());
    "mount-new", "nothing", NONE, ["seccomp", "capabilities"], |_| plain(kernel::mount_new());
    "bpf", "nothing", NONE, ["seccomp", "capabilities"], |_| plain(kernel::bpf());
    "perf", "nothing", NONE, ["seccomp"], |_| plain(kernel::perf());
    "userfaultfd", "nothing", NONE, ["seccomp"], |_| plain(kernel::userfaultfd());
    "keyctl", "nothing", NONE, ["seccomp"], |_| plain(kernel::keyctl());
    "limit-another", "a process id", ONE, ["seccomp", "namespaces"], |a| plain(processes::limit(&a[0]));
    "renice-another", "a process id", ONE, ["seccomp", "namespaces"], |a| plain(processes::renice(&a[0]));
    "system-v-memory", "nothing", NONE, ["seccomp"], |_| plain(kernel::shared_memory());
    "message-queue", "nothing", NONE, ["seccomp"], |_| plain(kernel::message_queue());
    "extended-attribute", "a file of one's own", ONE, ["seccomp"], |a| plain(files::extended_attribute(&a[0]));
    "syslog", "nothing", NONE, ["seccomp", "capabilities"], |_| plain(kernel::syslog());
    "tiocsti", "a terminal, standard input if none is named", MAYBE, ["seccomp"], |a| plain(kernel::inject(a.first()));
    "tiocsti-high", "a terminal, standard input if none is named", MAYBE, ["seccomp"], |a| plain(kernel::inject_high_bits(a.first()));
    "core-dump", "nothing", NONE, ["limits"], |_| plain(own::core_dump());
    "gain-privileges", "nothing", NONE, ["privileges"], |_| plain(own::gain_privileges());
    "env", "names to look for, or nothing for all", ANY, ["environment"], own::environment;
    "fds", "nothing", NONE, ["descriptors"], |_| own::descriptors();
    "own-port", "a port of one's own, to listen on and connect to", ONE, ["seccomp"], |a| plain(sockets::own_port(&a[0]));
    "own-abstract", "nothing; a socket of one's own, which must work", NONE, [], |_| plain(sockets::own_abstract());
    "own-tcp", "nothing; a listener of one's own, which must work", NONE, [], |_| plain(sockets::own_tcp());
];
