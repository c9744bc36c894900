//! Landlock: the grants of the policy once more, by a wall that knows nothing of mounts (landlock(7)). It also keeps
//! what runs inside from tracing the sandbox's first process, which stands outside this domain.

use crate::base::AbsPath;
use crate::policy::{Access, Content, FileKind, Policy};
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope,
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

/// Puts this process and all that it starts into a new domain. `EOPNOTSUPP` if the kernel has no Landlock.
pub fn apply(policy: &Policy) -> nix::Result<()> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI_ASKED) | AccessFs::ResolveUnix)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI_ASKED)))
        .and_then(Ruleset::create)
        .map_err(refused)?;
    let mut ruleset = ruleset;
    for (path, rights) in rules(policy) {
        // Everything in the rules was mounted a moment ago: what cannot be opened is a failure, not a grant to skip.
        let fd = nix::fcntl::open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        let is_folder = nix::sys::stat::fstat(&fd)?.st_mode & S_IFMT == S_IFDIR;
        let rights = if is_folder {
            rights
        } else {
            rights & (AccessFs::from_file(ABI_ASKED) | AccessFs::ResolveUnix)
        };
        ruleset = ruleset.add_rule(PathBeneath::new(fd, rights)).map_err(refused)?;
    }
    let status = ruleset.restrict_self().map_err(refused)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(())
}

/// What the domain allows, from the policy and from the sandbox's own furniture.
fn rules(policy: &Policy) -> Vec<(&Path, BitFlags<AccessFs>)> {
    let all = AccessFs::from_all(ABI_ASKED);
    let read = AccessFs::from_read(ABI_ASKED);
    let use_only = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut rules: Vec<(&Path, BitFlags<AccessFs>)> = vec![
        // Only what is granted is visible, so listing tells nothing new; without it `ls /` fails.
        (Path::new("/"), AccessFs::ReadDir.into()),
        // Not for writing: /proc/PID/mem of a sibling is a file like any other, and through it a tool would rewrite the
        // agent that gave it its orders. Knobs of one's own, oom_score_adj for one, are the price.
        (Path::new("/proc"), read),
        (Path::new("/dev/shm"), all),
        (Path::new("/dev"), use_only | AccessFs::ReadDir),
    ];
    let queues = Path::new("/dev/mqueue");
    if queues.exists() {
        rules.push((queues, all));
    }
    for bind in &policy.binds {
        let rights = match (bind.kind, bind.access) {
            (FileKind::Socket, _) => all | AccessFs::ResolveUnix,
            (_, Access::Read) => read,
            (_, Access::ReadWrite) => all,
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
