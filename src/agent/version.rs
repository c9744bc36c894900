//! Versions of agents, as they print them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A version `major.minor.patch`; what follows the patch is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// The first `N.N.N` in bytes of unknown origin, for example in `opencode v2.0.20\n`.
    pub fn first_in(bytes: &[u8]) -> Option<Version> {
        let starts = (0..bytes.len()).filter(|&i| {
            let after_word = i > 0 && (bytes[i - 1].is_ascii_digit() || bytes[i - 1] == b'.');
            bytes[i].is_ascii_digit() && !after_word
        });
        starts.map(|i| &bytes[i..]).find_map(Version::at_start)
    }

    fn at_start(bytes: &[u8]) -> Option<Version> {
        let (major, rest) = number(bytes)?;
        let (minor, rest) = number(rest.strip_prefix(b".")?)?;
        let (patch, _) = number(rest.strip_prefix(b".")?)?;
        Some(Version { major, minor, patch })
    }
}

/// Leading decimal digits as a number, and the rest.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let end = bytes.iter().position(|b| !b.is_ascii_digit()).unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((text.parse().ok()?, &bytes[end..]))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_first_three_numbers() {
        let table: [(&[u8], _); 11] = [
            (b"1.18.33\n", Some((1, 18, 33))),
            (b"opencode v2.0.20\n", Some((2, 0, 20))),
            (b"0.0.0-dev-202609212252", Some((0, 0, 0))),
            (b"\xff\xfe 1.2.3-beta.4+5", Some((1, 2, 3))),
            (b"warning: 12 of 3.4 things\nv1.2.3", Some((1, 2, 3))),
            (b"1.2.3.4", Some((1, 2, 3))),
            (b"lildax vlocal\n", None),
            (b"", None),
            (b"1.2", None),
            (b"1..2.3", None),
            (b"99999999999.1.1", None),
        ];
        for (text, expected) in table {
            let got = Version::first_in(text).map(|v| (v.major, v.minor, v.patch));
            assert_eq!(got, expected, "{}", text.escape_ascii());
        }
    }
}
