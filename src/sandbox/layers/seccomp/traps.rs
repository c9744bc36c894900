//! Which calls go to the supervisor: as few as this policy and this kernel let be.

use super::flat::Handed;
use crate::base::Port;
use crate::policy::{Datagrams, Mode};
use crate::sandbox::layers::landlock::RESOLVES_UNIX;
use crate::sys::names::{Call, call};
use serde::Deserialize;

/// Calls that the supervisor decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trap {
    Connect,
    Bind,
    /// Which may open a port to others.
    Listen,
    /// Sends that have or may have an address: sendto where it has one, sendmsg and sendmmsg always, since theirs is
    /// behind a pointer that a filter cannot read.
    Sends,
    /// chmod and its kin, which Landlock does not see.
    Permissions,
}

/// Everything that can be.
const ALL: [Trap; 5] = [Trap::Connect, Trap::Bind, Trap::Listen, Trap::Sends, Trap::Permissions];

/// What is trapped. In a network namespace of its own not bind: where a socket file can be made is decided
/// by the mounts and Landlock, and every other address is the sandbox's own. `landlock` is the kernel's ABI, 0 if it has
/// none.
pub fn traps(mode: Mode, datagrams: Datagrams, closed: &[Port], landlock: u32) -> &'static [Trap] {
    match datagrams {
        // On the machine's own network every address is somebody's.
        Datagrams::Mediated if mode == Mode::Reduced => &ALL,
        Datagrams::Refused if mode == Mode::Reduced => &[Trap::Connect, Trap::Bind, Trap::Listen, Trap::Permissions],
        Datagrams::Mediated => &[Trap::Connect, Trap::Sends],
        // A filter cannot tell a connect to a port from one to a socket file.
        Datagrams::Refused if !closed.is_empty() => &[Trap::Connect],
        Datagrams::Refused if landlock >= RESOLVES_UNIX => &[],
        Datagrams::Refused => &[Trap::Connect],
    }
}

/// The calls behind each trap, and when.
pub(super) fn calls(traps: &[Trap]) -> Vec<(u32, Handed)> {
    let calls = traps.iter().flat_map(|trap| match trap {
        Trap::Connect => &[("connect", Handed::Always)][..],
        Trap::Bind => &[("bind", Handed::Always)],
        Trap::Listen => &[("listen", Handed::Always)],
        Trap::Permissions => &[
            ("chmod", Handed::Always),
            ("fchmod", Handed::Always),
            ("fchmodat", Handed::Always),
        ],
        Trap::Sends => &[
            ("sendmsg", Handed::Always),
            ("sendmmsg", Handed::Always),
            ("sendto", Handed::WithPointer(4)),
        ],
    });
    let number = |name| match call(name) {
        Some(Call::Number(number)) => u32::try_from(number).ok(),
        // One that this architecture never had cannot be made.
        _ => None,
    };
    calls
        .filter_map(|(name, handed)| Some((number(name)?, *handed)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Trap, calls, traps};
    use crate::base::Port;
    use crate::policy::{Datagrams, Mode};

    #[test]
    fn a_connect_goes_to_the_supervisor_unless_landlock_decides_all_of_it() {
        let (none, closed) = (Vec::new(), vec![Port::new(20_000).unwrap()]);
        let (connect, sends) = (&[Trap::Connect][..], &[Trap::Connect, Trap::Sends][..]);
        let table = [
            (Datagrams::Refused, &none, 0, connect),
            (Datagrams::Refused, &none, 6, connect),
            (Datagrams::Refused, &none, 8, connect),
            (Datagrams::Refused, &none, 9, &[]),
            (Datagrams::Refused, &none, 12, &[]),
            (Datagrams::Refused, &closed, 8, connect),
            (Datagrams::Refused, &closed, 9, connect),
            (Datagrams::Mediated, &none, 8, sends),
            (Datagrams::Mediated, &none, 9, sends),
            (Datagrams::Mediated, &closed, 9, sends),
        ];
        for (datagrams, closed, abi, expected) in table {
            assert_eq!(
                traps(Mode::Full, datagrams, closed, abi),
                expected,
                "{datagrams:?} {closed:?} {abi}"
            );
        }
    }

    #[test]
    fn on_the_machines_own_network_bind_and_listen_are_decided_too_whatever_landlock_knows() {
        for abi in [0, 9] {
            let quiet = traps(Mode::Reduced, Datagrams::Refused, &[], abi);
            assert_eq!(quiet, [Trap::Connect, Trap::Bind, Trap::Listen, Trap::Permissions]);
            let sends = traps(Mode::Reduced, Datagrams::Mediated, &[], abi);
            assert_eq!(sends, super::ALL);
        }
    }

    #[test]
    fn every_trapped_call_has_a_number_here() {
        // aarch64 has no chmod.
        let expected = if cfg!(target_arch = "x86_64") { 9 } else { 8 };
        assert_eq!(calls(&super::ALL).len(), expected);
    }
}
