//! What differs where the suite is run as on a machine without namespaces (`JAIL_MODE=reduced`).

use crate::place::{Mode, mode};

/// What of two is so in this mode.
pub fn by_mode<T>(full: T, reduced: T) -> T {
    match mode() {
        Mode::Full => full,
        Mode::Reduced => reduced,
    }
}

/// Ends a test of what reduced mode does not promise, with the reason, which stands in docs/reduced-mode.md.
macro_rules! only_in_full {
    ($reason:literal) => {
        if crate::place::mode() == crate::place::Mode::Reduced {
            return crate::mode::left_out($reason);
        }
    };
}
pub(crate) use only_in_full;

pub fn left_out(reason: &str) {
    eprintln!("only in full mode: {reason}");
}
