//! Whether calls can be decided here at all, tried on the held command. Containers without ptrace refuse what it takes
//! (pidfd_getfd(2), process_vm_readv(2)), and so does Yama at its strictest; then every connect inside would fail.

use super::caller::{Caller, Last};
use crate::base::{Explain, Kind, Pid};
use nix::errno::Errno;

/// What is read from the command: it is a copy of this program, in which this stands at the same address.
static WORD: [u8; 8] = *b"pinfold.";

/// Nothing could be decided.
#[derive(Debug, thiserror::Error)]
#[error("calls of the sandbox cannot be decided: {step} failed ({errno}); without it nothing enforces P4 sockets")]
pub struct Undecidable {
    step: &'static str,
    errno: Errno,
}

impl Explain for Undecidable {
    fn kind(&self) -> Kind {
        Kind::Unconfined
    }
    fn hint(&self) -> Option<String> {
        Some(
            "a container's filter or a setting (kernel.yama.ptrace_scope 3) forbids it: let pidfd_getfd and process_vm_readv through"
                .into(),
        )
    }
}

/// Takes a descriptor of the held command and reads its memory, as for a call of its.
pub fn try_on(command: Pid) -> Result<(), Undecidable> {
    let failed = |step| move |errno| Undecidable { step, errno };
    let caller = Caller::new(command.get());
    let taking = failed("taking a descriptor of the command (pidfd_getfd)");
    let number = any_descriptor(command).ok_or(Errno::EBADF).map_err(&taking)?;
    caller.descriptor(number, &mut Last::default()).map_err(&taking)?;
    let reading = failed("reading the command's memory (process_vm_readv)");
    let seen = caller.memory(WORD.as_ptr().expose_provenance() as u64, WORD.len());
    match seen.map_err(&reading)? == WORD {
        true => Ok(()),
        false => Err(reading(Errno::EIO)),
    }
}

fn any_descriptor(command: Pid) -> Option<i32> {
    let open = std::fs::read_dir(format!("/proc/{command}/fd")).ok()?;
    open.flatten()
        .find_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::try_on;
    use crate::base::{Explain as _, Kind, Pid};

    #[test]
    fn a_process_is_read_and_one_that_is_not_there_is_told() {
        let pid = |number: u32| Pid::new(i32::try_from(number).unwrap()).unwrap();
        try_on(pid(std::process::id())).unwrap();
        let error = try_on(pid(1_999_999_999)).unwrap_err();
        assert_eq!(error.kind(), Kind::Unconfined);
        assert!(error.to_string().contains("pidfd_getfd"), "{error}");
    }
}
