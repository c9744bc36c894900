//! Landlock: the grants of the policy once more, by a wall that knows nothing of mounts (landlock(7)). It also keeps
//! what runs inside from tracing the sandbox's first process, which stands outside this domain.
//!
//! In reduced mode it is the only wall around files, and its TCP rights are the first around ports: connects that are
//! allowed are carried out by the supervisor, so nothing inside may make one itself.

use crate::base::AbsPath;
use crate::policy::{self, Access, Content, FileKind, Policy};
use crate::sys::mount::open_beneath;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc::{S_IFDIR, S_IFMT};
use nix::sys::stat::Mode;
use std::path::Path;

/// The newest ABI that is asked for; an older kernel gives what it knows, and `doctor` says what that is.
///
/// Beside it one right of ABI 9 is asked for: which socket files can be connected to. Where the kernel has it, connects
/// need not go to the supervisor (`seccomp::traps`); no rule of a folder gives it, only those of granted sockets do.
const ABI_ASKED: ABI = ABI::V6;
/// Nodes of the machine's /dev that a sandbox without a /dev of its own may use.
const NODES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// The first Landlock ABI that decides by itself which socket files can be connected to (`RESOLVE_UNIX`, Linux 7.1): those
/// that a rule names, and those that were made in the same domain. That is what the supervisor decides elsewhere.
pub const RESOLVES_UNIX: u32 = 9;

/// What a device may be used for.
fn device() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev
}

/// Puts this process and all that it starts into a new domain. `EOPNOTSUPP` if the kernel has no Landlock. `terminal` is
/// the sandbox's own.
pub fn apply(policy: &Policy, terminal: Option<&Path>) -> nix::Result<RulesetStatus> {
    let mut ruleset = ruleset(policy).map_err(refused)?;
    let root = nix::fcntl::open("/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut rules = match policy.mode() {
        policy::Mode::Full => furniture(),
        policy::Mode::Reduced => host_furniture(terminal),
    };
    rules.extend(grants(policy));
    for (path, rights) in rules {
        // Everything in the rules was there a moment ago: what cannot be opened, or has become a link since, is a
        // failure, not a grant to skip.
        let below_root = path.strip_prefix("/").unwrap_or(path);
        let here = Path::new(".");
        let fd = open_beneath(
            &root,
            if below_root.as_os_str().is_empty() {
                here
            } else {
                below_root
            },
        )?;
        let is_folder = nix::sys::stat::fstat(&fd)?.st_mode & S_IFMT == S_IFDIR;
        let rights = if is_folder {
            rights
        } else {
            rights & (AccessFs::from_file(ABI_ASKED) | resolve_unix())
        };
        ruleset = ruleset.add_rule(PathBeneath::new(fd, rights)).map_err(refused)?;
    }
    let status = ruleset.restrict_self().map_err(refused)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(status.ruleset)
}

/// What a domain of this kernel's ABI takes away: names of file rights and of scopes.
pub fn rights(abi: u32) -> (Vec<String>, Vec<String>) {
    let abi = ABI::from(i32::try_from(abi).unwrap_or(0)).min(ABI_ASKED);
    let names = |text: String| text.split(" | ").map(str::to_owned).collect();
    let files = AccessFs::from_all(abi).iter().map(|right| format!("{right:?}"));
    let scopes = Scope::from_all(abi).iter().map(|scope| format!("{scope:?}"));
    (
        names(files.collect::<Vec<_>>().join(" | ")),
        names(scopes.collect::<Vec<_>>().join(" | ")),
    )
}

/// The right to connect to a socket file, where the kernel knows it (ABI 9): asked for elsewhere, it would make every domain
/// look as if something were missing.
fn resolve_unix() -> BitFlags<AccessFs> {
    match crate::sys::support::landlock_abi() {
        Ok(abi) if abi >= RESOLVES_UNIX => AccessFs::ResolveUnix.into(),
        _ => BitFlags::EMPTY,
    }
}

/// What is handled; the ports that may be listened on are the only ones that a rule allows.
fn ruleset(policy: &Policy) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI_ASKED) | resolve_unix())?
        .scope(Scope::from_all(ABI_ASKED))?;
    if policy.mode() == policy::Mode::Full {
        return ruleset.create();
    }
    // One that is closed is the agent's own, which only the supervisor may connect to.
    let ports = policy.network.listen_ports.iter().chain(&policy.network.closed_ports);
    let ports = ports.map(|port| Ok(NetPort::new(port.get(), AccessNet::BindTcp)));
    let created = ruleset.handle_access(AccessNet::from_all(ABI_ASKED))?.create()?;
    created.add_rules(ports)
}

/// What every sandbox has that is of its own making.
fn furniture() -> Vec<(&'static Path, BitFlags<AccessFs>)> {
    let all = AccessFs::from_all(ABI_ASKED);
    let mut rules = vec![
        // Only what is granted is visible, so listing tells nothing new; without it `ls /` fails.
        (Path::new("/"), AccessFs::ReadDir.into()),
        // Not for writing: /proc/PID/mem of a sibling is a file like any other, and through it a tool would rewrite the
        // agent that gave it its orders. Knobs of one's own, oom_score_adj for one, are the price.
        (Path::new("/proc"), AccessFs::from_read(ABI_ASKED)),
        (Path::new("/dev/shm"), all),
        (Path::new("/dev"), device() | AccessFs::ReadDir),
    ];
    let queues = Path::new("/dev/mqueue");
    if queues.exists() {
        rules.push((queues, all));
    }
    rules
}

/// What of the machine's own stands in for it in reduced mode. Not /dev/shm, which other programs share, and no terminal
/// but the sandbox's own: /dev/pts holds everybody's.
fn host_furniture(terminal: Option<&Path>) -> Vec<(&Path, BitFlags<AccessFs>)> {
    let nodes = NODES.iter().map(|node| (Path::new(*node), device()));
    let proc = (Path::new("/proc"), AccessFs::from_read(ABI_ASKED));
    nodes
        .chain([proc])
        .chain(terminal.map(|terminal| (terminal, device())))
        .collect()
}

/// What the policy grants.
fn grants(policy: &Policy) -> Vec<(&Path, BitFlags<AccessFs>)> {
    let all = AccessFs::from_all(ABI_ASKED);
    let read = AccessFs::from_read(ABI_ASKED);
    let mut rules: Vec<(&Path, BitFlags<AccessFs>)> = Vec::new();
    for bind in &policy.binds {
        let rights = match (bind.kind, bind.access) {
            (FileKind::Socket, _) => all | resolve_unix(),
            (_, Access::List) => AccessFs::ReadDir.into(),
            (_, Access::Read) => read,
            (_, Access::Layered | Access::ReadWrite) => all,
        };
        rules.push((bind.target.as_path(), rights));
    }
    for made in &policy.made {
        let rights = match made.content {
            Content::Scratch { .. } => all,
            Content::Sealed | Content::File(_) => read,
        };
        rules.push((made.at.as_path(), rights));
    }
    rules
}

fn refused(error: landlock::RulesetError) -> Errno {
    let source = std::error::Error::source(&error);
    let mut source = source;
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            return io.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        }
        source = cause.source();
    }
    Errno::EOPNOTSUPP
}

/// Tries to read the canary: 0 if it could be read, otherwise the error number.
pub fn read_canary(canary: &AbsPath) -> i32 {
    match std::fs::File::open(canary) {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(Errno::EIO as i32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::AbsPath;
    use crate::policy::memory::MemoryHost;
    use crate::policy::{Request, load, resolve};

    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum May {
        Nothing,
        Read,
        Write,
    }

    /// What the mounts let be done: the innermost one decides.
    fn by_mounts(policy: &Policy, path: &AbsPath) -> May {
        let binds = policy.binds.iter().map(|bind| match bind.access {
            Access::List | Access::Read => (&bind.target, May::Read),
            Access::Layered | Access::ReadWrite => (&bind.target, May::Write),
        });
        let made = policy.made.iter().map(|made| match made.content {
            Content::Scratch { .. } => (&made.at, May::Write),
            Content::Sealed | Content::File(_) => (&made.at, May::Read),
        });
        let over = binds.chain(made).filter(|(at, _)| path.is_within(at));
        over.max_by_key(|(at, _)| at.as_path().components().count())
            .map_or(May::Nothing, |(_, may)| may)
    }

    /// What Landlock lets be done: the rights on the way down add up.
    fn by_landlock(policy: &Policy, path: &AbsPath) -> May {
        let rules = grants(policy).into_iter();
        let rights = rules
            .filter(|(at, _)| path.as_path().starts_with(at))
            .fold(BitFlags::EMPTY, |all, (_, rights)| all | rights);
        match (
            rights.contains(AccessFs::ReadFile),
            rights.contains(AccessFs::WriteFile),
        ) {
            (_, true) => May::Write,
            (true, false) => May::Read,
            (false, false) => May::Nothing,
        }
    }

    #[test]
    fn both_walls_come_from_one_policy_and_agree() {
        let own = r#"{"extends": "default", "filesystem": {"read": ["/data/r"], "allow": ["/data/r/inner"]}}"#;
        let host = MemoryHost::debian()
            .dir("/data/w/.git/hooks")
            .dir("/data/r/inner")
            .file("/data/own.json", own);
        let profile = load("/data/own.json", &[], &host).unwrap();
        let request = Request {
            root: Some("/data/w".into()),
            workdir: "/data/w".into(),
            ..Request::default()
        };
        let policy = resolve(&profile, &request, &host).unwrap();
        for (path, expected) in [
            ("/data/w/file", May::Write),
            ("/data/w/.git/index", May::Write),
            ("/data/r/file", May::Read),
            ("/data/r/inner/file", May::Write),
            ("/data/own.json", May::Nothing),
            ("/usr/bin/sh", May::Read),
            ("/etc/shadow", May::Nothing),
            ("/home/ann/new", May::Write),
            ("/tmp/new", May::Write),
        ] {
            let at = AbsPath::new(path).unwrap();
            assert_eq!(by_mounts(&policy, &at), expected, "mounts: {path}");
            assert_eq!(by_landlock(&policy, &at), expected, "landlock: {path}");
        }
        for bind in &policy.binds {
            let (mounts, landlock) = (by_mounts(&policy, &bind.target), by_landlock(&policy, &bind.target));
            assert!(
                landlock >= mounts,
                "{}: landlock refuses what the mounts allow",
                bind.target
            );
        }
    }
}
