//! What an agent's environment gets, and what it must not have.

use crate::policy::Environment;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// One side's changes to an environment. A pattern is a whole name, or a prefix that ends with `*`.
#[derive(Clone)]
pub struct Additions {
    /// Set last, whatever stood there.
    pub set: BTreeMap<OsString, OsString>,
    /// Not taken over from the person's environment, though a profile may set them on purpose.
    pub not_inherited: &'static [&'static str],
    /// Never there, a profile's own setting included.
    pub never: &'static [&'static str],
}

impl Additions {
    /// Whether a variable of the person's environment may come along as far as the agent is concerned.
    pub fn inherits(&self, name: &OsStr) -> bool {
        !matches(self.not_inherited, name) && !matches(self.never, name)
    }

    /// The last step over a resolved environment.
    pub fn apply(&self, environment: &mut Environment) {
        environment.0.retain(|name, _| !matches(self.never, name));
        environment.0.extend(self.set.clone());
    }
}

/// Names only: the values hold the password.
impl std::fmt::Debug for Additions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Additions")
            .field("set", &self.set.keys())
            .field("not_inherited", &self.not_inherited)
            .field("never", &self.never)
            .finish()
    }
}

fn matches(patterns: &[&str], name: &OsStr) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.as_bytes().starts_with(prefix.as_bytes()),
        None => name == *pattern,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn additions() -> Additions {
        Additions {
            set: BTreeMap::from([("SET".into(), "new".into())]),
            not_inherited: &["CONFIG*"],
            never: &["NAME"],
        }
    }

    #[test]
    fn inherits_neither_prefixes_nor_names_that_are_listed() {
        let table = [
            ("CONFIG", false),
            ("CONFIG_DIR", false),
            ("NAME", false),
            ("NAMES", true),
            ("PATH", true),
        ];
        for (name, expected) in table {
            assert_eq!(additions().inherits(OsStr::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn keeps_what_a_profile_set_but_never_what_is_forbidden() {
        let names = [
            ("CONFIG", "profile"),
            ("NAME", "profile"),
            ("SET", "old"),
            ("PATH", "/bin"),
        ];
        let mut environment = Environment(names.map(|(n, v)| (n.into(), v.into())).into());
        additions().apply(&mut environment);
        let expected = [("CONFIG", "profile"), ("PATH", "/bin"), ("SET", "new")];
        assert_eq!(
            environment,
            Environment(expected.map(|(n, v)| (n.into(), v.into())).into())
        );
    }

    #[test]
    fn does_not_show_values_when_printed() {
        let text = format!("{:?}", additions());
        assert!(text.contains("SET") && !text.contains("new"), "{text}");
    }
}
