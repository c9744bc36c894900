//! Promises that may be given up, by the names that people type.

use super::frozen::Promise;
use std::str::FromStr;

/// What was written is no promise, or one that is never given up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromiseError {
    #[error("{text:?} is none of the promises that can be given up: {}", listed())]
    Unknown { text: String },
    #[error("{} is never given up", .0.full_name())]
    Never(Promise),
}

impl Promise {
    /// Number and name, for example `P5 processes`.
    pub fn full_name(self) -> &'static str {
        match self {
            Promise::Files => "P1 files",
            Promise::Protected => "P2 protected paths",
            Promise::Network => "P3 network",
            Promise::Sockets => "P4 unix sockets",
            Promise::Processes => "P5 processes",
            Promise::Terminal => "P6 terminal",
            Promise::Environment => "P7 environment",
            Promise::Verified => "P8 verified first",
            Promise::OutOfReach => "P9 out of reach",
            Promise::Honest => "P10 honest",
        }
    }

    /// Whether a launch may go without it. Without the last three nothing that is said of a launch could be believed.
    pub fn can_be_missing(self) -> bool {
        !matches!(self, Promise::Verified | Promise::OutOfReach | Promise::Honest)
    }
}

impl FromStr for Promise {
    type Err = PromiseError;
    /// Takes `P5`, `processes` and `P5 processes`; a `-` is as good as a space.
    fn from_str(text: &str) -> Result<Promise, PromiseError> {
        let asked = text.to_lowercase().replace('-', " ");
        let is = |promise: &Promise| {
            let full = promise.full_name().to_lowercase();
            full == asked
                || full
                    .split_once(' ')
                    .is_some_and(|(number, name)| number == asked || name == asked)
        };
        match Promise::ALL.into_iter().find(is) {
            Some(promise) if promise.can_be_missing() => Ok(promise),
            Some(promise) => Err(PromiseError::Never(promise)),
            None => Err(PromiseError::Unknown { text: text.to_owned() }),
        }
    }
}

fn listed() -> String {
    let names = Promise::ALL.into_iter().filter(|promise| promise.can_be_missing());
    names.map(Promise::full_name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_named_by_number_or_name_and_the_last_three_are_never_given_up() {
        for text in ["P5", "p5", "processes", "P5 processes"] {
            assert_eq!(text.parse(), Ok(Promise::Processes), "{text}");
        }
        assert_eq!("unix-sockets".parse(), Ok(Promise::Sockets));
        for promise in Promise::ALL {
            let name = serde_json::to_value(promise).unwrap();
            assert_eq!(name, promise.full_name(), "one name in records and on the command line");
            assert_eq!(promise.full_name().parse::<Promise>().is_ok(), promise.can_be_missing());
        }
        for text in ["P8", "verified first", "P9", "P10", "honest"] {
            assert!(matches!(text.parse::<Promise>(), Err(PromiseError::Never(_))), "{text}");
        }
        for text in ["", "P", "P11", "p55", "all", "*"] {
            let error = text.parse::<Promise>().unwrap_err();
            assert!(
                error.to_string().contains("P7 environment") && !error.to_string().contains("P8"),
                "{error}"
            );
        }
    }
}
