//! What the kernel knows, by asking it: a file or a version number may say otherwise (some kernels list Landlock and do
//! not have it).

use crate::sandbox::bounds::{Bound, Unbounded, tried};
use crate::sys::support;
use nix::errno::Errno;
use serde::Serialize;

/// One thing that the kernel can or cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelRow {
    pub name: &'static str,
    pub available: bool,
    /// Whether a launch is refused without it.
    pub needed: bool,
    /// The version it has, or the kernel's answer.
    pub detail: String,
    /// What it is for, and what to do where it is missing.
    pub note: &'static str,
}

/// The flaws of Landlock that this kernel has mended, by their numbers (Documentation/userspace-api/landlock.rst).
fn mended(errata: Result<u32, Errno>) -> String {
    match errata {
        Err(_) => "which of its flaws are mended is not told before Linux 6.15".into(),
        Ok(0) => "no flaw mended".into(),
        Ok(bits) => {
            let numbers: Vec<String> = (0..32)
                .filter(|bit| bits & (1 << bit) != 0)
                .map(|bit| (bit + 1).to_string())
                .collect();
            format!("flaws mended: {}", numbers.join(", "))
        }
    }
}

/// Asks for everything. To see whether limits can be kept it makes control groups and removes them; a controller that was
/// handed down for them stays handed down.
pub fn rows() -> Vec<KernelRow> {
    let abi = support::landlock_abi();
    let landlock = row(
        "Landlock",
        true,
        abi.map(drop),
        match abi {
            Err(Errno::EOPNOTSUPP) => {
                "built in, but not switched on: add `landlock` to the kernel's `lsm=` list at boot"
            }
            _ => "the second wall around files and sockets; Linux 5.13 or newer has it",
        },
    );
    let landlock = KernelRow {
        detail: abi.map_or(landlock.detail, |abi| {
            format!("ABI {abi}, {}", mended(support::landlock_errata()))
        }),
        ..landlock
    };
    let mut rows = vec![
        landlock,
        row(
            "seccomp filters",
            true,
            support::seccomp_filter(),
            "refuse system calls; Linux 4.14 or newer",
        ),
        row(
            "seccomp notification",
            true,
            support::seccomp_notification(),
            "lets the supervisor decide about a connect; Linux 5.5 or newer",
        ),
        row(
            "killable waits",
            false,
            support::seccomp_killable_wait(),
            "a signal does not repeat a connect that was carried out already; Linux 5.19 or newer",
        ),
        row(
            "pidfd_getfd",
            true,
            support::pidfd_getfd(),
            "connects on a duplicate of the caller's socket; Linux 5.6 or newer",
        ),
        row(
            "new mount calls",
            true,
            support::new_mounts(),
            "put the sandbox's view together without a race; Linux 5.12 or newer",
        ),
    ];
    rows.extend(tried().into_iter().map(limit));
    rows
}

/// What would keep a limit here, where a profile or the command line asks for one.
fn limit((name, tried): (&'static str, Result<Bound, Unbounded>)) -> KernelRow {
    KernelRow {
        name: match name {
            "memory" => "limit on memory",
            "processes" => "limit on processes",
            _ => "limit on processors",
        },
        available: tried.is_ok(),
        needed: false,
        detail: match tried {
            Ok(Bound { by, but: Some(but), .. }) => format!("{by}, {but}"),
            Ok(Bound { by, .. }) => by,
            Err(none) => format!("no: {}", none.why),
        },
        note: "for a launch that asks for it; what cannot be kept refuses it",
    }
}

fn row(name: &'static str, needed: bool, answer: nix::Result<()>, note: &'static str) -> KernelRow {
    KernelRow {
        name,
        available: answer.is_ok(),
        needed,
        detail: match answer {
            Ok(()) => "yes".to_owned(),
            Err(errno) => format!("no ({errno})"),
        },
        note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mended_flaws_have_their_numbers() {
        assert_eq!(mended(Ok(0)), "no flaw mended");
        assert_eq!(mended(Ok(0b1101)), "flaws mended: 1, 3, 4");
        assert!(mended(Err(Errno::EINVAL)).contains("6.15"));
    }

    #[test]
    fn an_answer_of_the_kernel_is_a_row() {
        let missing = row("x", true, Err(Errno::ENOSYS), "y");
        assert!(!missing.available && missing.detail.contains("ENOSYS"), "{missing:?}");
        assert!(row("x", true, Ok(()), "y").available);
        assert!(rows().iter().any(|row| row.name == "seccomp filters" && row.available));
    }
}
