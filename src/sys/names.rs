//! The kernel's names for numbers, as `profiles/seccomp/*.json` writes them.

macro_rules! numbers {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), libc::$name as u64)),*]
    };
}

/// Constants that a rule may name.
const CONSTANTS: &[(&str, u64)] = numbers![
    CLONE_NEWUSER,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWNET,
    CLONE_NEWIPC,
    CLONE_NEWUTS,
    CLONE_NEWCGROUP,
    S_IFMT,
    S_IFCHR,
    S_IFBLK,
    S_ISUID,
    O_CREAT,
    TIOCSTI,
    TIOCLINUX,
    TIOCCONS,
    TIOCSETD,
    AF_UNIX,
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    NETLINK_ROUTE,
    IPPROTO_IP,
    IPPROTO_TCP,
    IPPROTO_UDP,
    SOCK_RAW,
    SOCK_DGRAM,
    SOCK_RDM,
    SOCK_SEQPACKET,
    SOCK_DCCP,
    MSG_FASTOPEN,
];

/// Constants that libc does not have (or calls deprecated): CLONE_NEWTIME (linux/sched.h), the part of a socket's type
/// that is not flags, and the bit of O_TMPFILE that is not O_DIRECTORY (asm-generic/fcntl.h).
const OWN: &[(&str, u64)] = &[
    ("CLONE_NEWTIME", 0x80),
    ("SOCK_TYPE_MASK", 0xf),
    ("SOCK_PACKET", 10),
    ("ITSELF", 0),
    ("PRIO_USER", 2),
    ("IOPRIO_WHO_USER", 3),
    ("__O_TMPFILE", 0o20_000_000),
];

macro_rules! calls {
    ($($name:literal => $number:ident),* $(,)?) => {
        &[$(($name, libc::$number)),*]
    };
}

#[rustfmt::skip]
const CALLS: &[(&str, libc::c_long)] = calls![
    "unshare" => SYS_unshare, "clone" => SYS_clone, "clone3" => SYS_clone3, "setns" => SYS_setns,
    "mount" => SYS_mount, "umount2" => SYS_umount2, "pivot_root" => SYS_pivot_root, "chroot" => SYS_chroot,
    "open_tree" => SYS_open_tree, "move_mount" => SYS_move_mount, "fsopen" => SYS_fsopen, "fsconfig" => SYS_fsconfig,
    "fsmount" => SYS_fsmount, "fspick" => SYS_fspick, "mount_setattr" => SYS_mount_setattr, "swapon" => SYS_swapon,
    "swapoff" => SYS_swapoff, "quotactl" => SYS_quotactl, "quotactl_fd" => SYS_quotactl_fd,
    "open_by_handle_at" => SYS_open_by_handle_at, "name_to_handle_at" => SYS_name_to_handle_at,
    "ptrace" => SYS_ptrace, "process_vm_readv" => SYS_process_vm_readv, "process_vm_writev" => SYS_process_vm_writev,
    "process_madvise" => SYS_process_madvise, "kcmp" => SYS_kcmp, "pidfd_getfd" => SYS_pidfd_getfd,
    "bpf" => SYS_bpf, "perf_event_open" => SYS_perf_event_open, "userfaultfd" => SYS_userfaultfd,
    "io_uring_setup" => SYS_io_uring_setup, "io_uring_enter" => SYS_io_uring_enter,
    "io_uring_register" => SYS_io_uring_register,
    "add_key" => SYS_add_key, "request_key" => SYS_request_key, "keyctl" => SYS_keyctl,
    "reboot" => SYS_reboot, "kexec_load" => SYS_kexec_load, "kexec_file_load" => SYS_kexec_file_load,
    "init_module" => SYS_init_module, "finit_module" => SYS_finit_module, "delete_module" => SYS_delete_module,
    "acct" => SYS_acct, "syslog" => SYS_syslog, "settimeofday" => SYS_settimeofday,
    "clock_settime" => SYS_clock_settime, "clock_adjtime" => SYS_clock_adjtime, "adjtimex" => SYS_adjtimex,
    "sethostname" => SYS_sethostname, "setdomainname" => SYS_setdomainname, "vhangup" => SYS_vhangup,
    "fanotify_init" => SYS_fanotify_init, "lookup_dcookie" => SYS_lookup_dcookie, "nfsservctl" => SYS_nfsservctl,
    "openat" => SYS_openat, "openat2" => SYS_openat2, "mknodat" => SYS_mknodat, "fchmod" => SYS_fchmod, "fchmodat" => SYS_fchmodat, "ioctl" => SYS_ioctl,
    "socket" => SYS_socket, "socketpair" => SYS_socketpair, "connect" => SYS_connect, "sendto" => SYS_sendto, "sendmsg" => SYS_sendmsg,
    "sendmmsg" => SYS_sendmmsg, "bind" => SYS_bind, "listen" => SYS_listen,
    "shmget" => SYS_shmget, "shmat" => SYS_shmat, "shmctl" => SYS_shmctl, "msgget" => SYS_msgget, "msgsnd" => SYS_msgsnd,
    "msgrcv" => SYS_msgrcv, "msgctl" => SYS_msgctl, "semget" => SYS_semget, "semop" => SYS_semop, "semctl" => SYS_semctl,
    "semtimedop" => SYS_semtimedop, "mq_open" => SYS_mq_open, "mq_unlink" => SYS_mq_unlink,
    "prlimit64" => SYS_prlimit64, "setpriority" => SYS_setpriority, "ioprio_set" => SYS_ioprio_set,
    "sched_setaffinity" => SYS_sched_setaffinity, "sched_setscheduler" => SYS_sched_setscheduler,
    "sched_setparam" => SYS_sched_setparam, "sched_setattr" => SYS_sched_setattr,
    "setxattr" => SYS_setxattr, "lsetxattr" => SYS_lsetxattr, "fsetxattr" => SYS_fsetxattr,
    "removexattr" => SYS_removexattr, "lremovexattr" => SYS_lremovexattr, "fremovexattr" => SYS_fremovexattr,
];

/// Calls that only this machine's older ABI has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: &[(&str, libc::c_long)] = calls![
    "uselib" => SYS_uselib, "ioperm" => SYS_ioperm, "iopl" => SYS_iopl, "modify_ldt" => SYS_modify_ldt,
    "mknod" => SYS_mknod, "chmod" => SYS_chmod, "open" => SYS_open, "creat" => SYS_creat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[(&str, libc::c_long)] = &[];

/// Calls newer than libc's table; the number is one for all architectures (asm-generic/unistd.h).
const NEWER: &[(&str, libc::c_long)] = &[
    ("fchmodat2", 452),
    ("statmount", 457),
    ("setxattrat", 463),
    ("removexattrat", 466),
    ("file_setattr", 469),
    ("listmount", 458),
    ("open_tree_attr", 467),
];

/// Names that a rule may use although this architecture never had the call.
const FOREIGN: &[&str] = &[
    "uselib",
    "ioperm",
    "iopl",
    "modify_ldt",
    "mknod",
    "chmod",
    "open",
    "creat",
    "vm86",
];

/// The highest call number that was looked at when the rules were written (Linux 6.16); anything above is unknown.
pub const NEWEST_CALL: u32 = 469;

/// What a name in a rule stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Number(i64),
    /// A known name that this architecture has no number for.
    NotHere,
}

/// A system call by name.
pub fn call(name: &str) -> Option<Call> {
    let tables = [CALLS, OLDER, NEWER];
    let known = tables
        .iter()
        .flat_map(|table| table.iter())
        .find(|(known, _)| *known == name);
    match known {
        Some((_, number)) => Some(Call::Number(*number)),
        None => FOREIGN.contains(&name).then_some(Call::NotHere),
    }
}

/// A constant by name.
pub fn constant(name: &str) -> Option<u64> {
    CONSTANTS
        .iter()
        .chain(OWN)
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}
