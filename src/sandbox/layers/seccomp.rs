//! seccomp: the rules of `profiles/seccomp/*.json` as filters, installed last (seccomp(2)).
//!
//! Three kinds of filter: a flat one (`flat`) with everything that one comparison decides, one filter for each error
//! number of the rules that need more, and, where connect is mediated, one that hands it to the supervisor.

mod flat;
mod traps;

pub use traps::{Trap, traps};

use crate::policy::Mode;
use crate::sys::names::{Call, call, constant};
use nix::errno::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The shipped rules, for every mode and for reduced mode.
const BASE: &str = include_str!("../../../profiles/seccomp/base.json");
const REDUCED: &str = include_str!("../../../profiles/seccomp/reduced.json");

/// A rule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    #[serde(rename = "note")]
    _note: String,
    pub rules: Vec<Rule>,
}

/// One rule: these calls, under these conditions (all of them), fail with this error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    pub errno: String,
    pub calls: Vec<String>,
    #[serde(default)]
    pub when: Vec<Condition>,
    pub reason: String,
    pub probe: String,
    /// The wish with which this rule is left out, because the supervisor decides instead.
    #[serde(default)]
    pub lifted_by: Option<Trap>,
}

/// What must be so of one argument. Arguments are compared as the kernel reads them: the low 32 bits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub arg: u8,
    #[serde(default)]
    pub mask: Option<String>,
    #[serde(default)]
    pub any_bits: Vec<String>,
    #[serde(default)]
    pub is_one_of: Vec<String>,
    #[serde(default)]
    pub is_none_of: Vec<String>,
}

/// Why the rules could not be compiled; a defect of the shipped data, which a test keeps away.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error("seccomp rules: {0}")]
    Json(#[from] serde_json::Error),
    #[error("seccomp rule {rule}: {word:?} is not known")]
    Unknown { rule: String, word: String },
    #[error("seccomp rules: {0}")]
    Backend(#[from] seccompiler::BackendError),
    #[error("seccomp rules: this architecture has no filter backend")]
    Architecture,
    #[error("seccomp rules: too many for one filter")]
    Length,
}

impl crate::base::Explain for FilterError {
    fn kind(&self) -> crate::base::Kind {
        crate::base::Kind::Startup
    }
}

/// Compiled filters, made before the child exists.
#[derive(Debug)]
pub struct Filters {
    plain: Vec<BpfProgram>,
    mediate: BpfProgram,
}

impl Filters {
    /// Compiles the shipped rules of this mode for this machine, and what hands these calls to the supervisor.
    pub fn compile(mode: Mode, traps: &[Trap]) -> Result<Filters, FilterError> {
        let mut rules: Rules = serde_json::from_str(BASE)?;
        if mode == Mode::Reduced {
            let more: Rules = serde_json::from_str(REDUCED)?;
            rules.rules.extend(more.rules);
        }
        rules
            .rules
            .retain(|rule| rule.lifted_by.is_none_or(|trap| !traps.contains(&trap)));
        let mut flat = Vec::new();
        let mut by_errno: BTreeMap<u32, BTreeMap<i64, Vec<SeccompRule>>> = BTreeMap::new();
        for rule in &rules.rules {
            let errno = errno_number(&rule.errno).ok_or_else(|| rule.unknown(&rule.errno))?;
            let test = flat_test(rule)?;
            for name in &rule.calls {
                let Call::Number(number) = call(name).ok_or_else(|| rule.unknown(name))? else {
                    continue;
                };
                if let Some(test) = test {
                    flat.push(flat::Deny {
                        call: u32::try_from(number).map_err(|_| rule.unknown(name))?,
                        test,
                        errno,
                    });
                } else {
                    let calls = by_errno.entry(errno).or_default();
                    calls.entry(number).or_default().extend(alternatives(rule)?);
                }
            }
        }
        let mut plain = vec![flat::assemble(&flat).ok_or(FilterError::Length)?];
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| FilterError::Architecture)?;
        for (errno, calls) in by_errno {
            let action = SeccompAction::Errno(errno);
            let filter = SeccompFilter::new(calls, SeccompAction::Allow, action, arch)?;
            plain.push(filter.try_into()?);
        }
        Ok(Filters {
            plain,
            mediate: flat::mediating(&traps::calls(traps)),
        })
    }

    /// How many filters a process shows in /proc/PID/status (`Seccomp_filters`).
    pub fn count(&self, mediated: Mediated) -> u32 {
        let count = self.plain.len() + usize::from(mediated == Mediated::Yes);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Installs all; the listener for mediated calls comes back.
    pub fn install(&self, mediated: Mediated) -> nix::Result<Option<std::os::fd::OwnedFd>> {
        for program in &self.plain {
            crate::sys::seccomp::install(program)?;
        }
        match mediated {
            Mediated::Yes => crate::sys::seccomp::install_listener(&self.mediate).map(Some),
            Mediated::No => Ok(None),
        }
    }
}

/// Whether the filter that hands calls to the supervisor is put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mediated {
    Yes,
    No,
}

/// What decides a rule without conditions, or with one about bits of one argument; nothing for any other rule.
fn flat_test(rule: &Rule) -> Result<Option<flat::Test>, FilterError> {
    match rule.when.as_slice() {
        [] => Ok(Some(flat::Test::Always)),
        [one] if one.mask.is_none() && one.is_one_of.is_empty() && one.is_none_of.is_empty() => {
            let mut bits = 0;
            for word in &one.any_bits {
                let bit = constant(word).and_then(|bit| u32::try_from(bit).ok());
                bits |= bit
                    .filter(|bit| bit.is_power_of_two())
                    .ok_or_else(|| rule.unknown(word))?;
            }
            Ok((bits != 0).then_some(flat::Test::AnyBit { arg: one.arg, bits }))
        }
        _ => Ok(None),
    }
}

impl Rule {
    fn unknown(&self, word: &str) -> FilterError {
        FilterError::Unknown {
            rule: self.name.clone(),
            word: word.to_owned(),
        }
    }
}

/// The alternatives of a rule, each a conjunction that the backend can test; a call without conditions has none,
/// which the backend reads as "always".
fn alternatives(rule: &Rule) -> Result<Vec<SeccompRule>, FilterError> {
    let mut products: Vec<Vec<SeccompCondition>> = vec![Vec::new()];
    for condition in &rule.when {
        let choices = choices(rule, condition)?;
        products = products
            .into_iter()
            .flat_map(|so_far| {
                choices
                    .iter()
                    .map(move |choice| [so_far.clone(), choice.clone()].concat())
            })
            .collect();
    }
    let conjunctions = products.into_iter().filter(|conditions| !conditions.is_empty());
    Ok(conjunctions.map(SeccompRule::new).collect::<Result<_, _>>()?)
}

fn choices(rule: &Rule, condition: &Condition) -> Result<Vec<Vec<SeccompCondition>>, FilterError> {
    let number = |word: &String| constant(word).ok_or_else(|| rule.unknown(word));
    let compare = |op, value| SeccompCondition::new(condition.arg, SeccompCmpArgLen::Dword, op, value);
    let mask = condition.mask.as_ref().map(number).transpose()?;
    let mut choices = Vec::new();
    for word in &condition.any_bits {
        let bit = number(word)?;
        choices.push(vec![compare(SeccompCmpOp::MaskedEq(bit), bit)?]);
    }
    for word in &condition.is_one_of {
        let op = mask.map_or(SeccompCmpOp::Eq, SeccompCmpOp::MaskedEq);
        choices.push(vec![compare(op, number(word)?)?]);
    }
    if !condition.is_none_of.is_empty() {
        let none: Result<Vec<_>, FilterError> = condition
            .is_none_of
            .iter()
            .map(|word| Ok(compare(SeccompCmpOp::Ne, number(word)?)?))
            .collect();
        choices.push(none?);
    }
    Ok(choices)
}

fn errno_number(name: &str) -> Option<u32> {
    let errno = match name {
        "EPERM" => Errno::EPERM,
        "ENOSYS" => Errno::ENOSYS,
        "EACCES" => Errno::EACCES,
        "EAFNOSUPPORT" => Errno::EAFNOSUPPORT,
        "EPROTONOSUPPORT" => Errno::EPROTONOSUPPORT,
        "EOPNOTSUPP" => Errno::EOPNOTSUPP,
        _ => return None,
    };
    u32::try_from(errno as i32).ok()
}

#[cfg(test)]
mod tests {
    use super::{BASE, Filters, Mediated, REDUCED, Rules, Trap};
    use crate::policy::Mode;
    use std::collections::BTreeSet;

    #[test]
    fn the_shipped_rules_compile() {
        for mode in [Mode::Full, Mode::Reduced] {
            let filters = Filters::compile(mode, &[Trap::Connect]).unwrap();
            assert!(filters.count(Mediated::No) >= 4);
            assert_eq!(filters.count(Mediated::Yes), filters.count(Mediated::No) + 1);
        }
    }

    #[test]
    fn datagrams_are_refused_unless_their_sends_are_decided() {
        let of = |traps: &[Trap]| {
            let filters = Filters::compile(Mode::Full, traps).unwrap();
            filters.plain.iter().map(Vec::len).sum::<usize>()
        };
        assert_eq!(of(&[]), of(&[Trap::Connect, Trap::Bind]));
        assert!(of(&[Trap::Sends]) < of(&[]), "no rule is lifted");
        let rules: Rules = serde_json::from_str(BASE).unwrap();
        let lifted = rules.rules.iter().filter(|rule| rule.lifted_by.is_some());
        let names: Vec<&str> = lifted.map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["unix-datagrams", "unix-datagram-pairs"]);
    }

    #[test]
    fn every_rule_has_a_name_of_its_own_a_reason_and_a_probe() {
        let files = [BASE, REDUCED].map(|text| serde_json::from_str::<Rules>(text).unwrap());
        let mut names = BTreeSet::new();
        for rule in files.iter().flat_map(|file| &file.rules) {
            assert!(names.insert(&rule.name), "{} twice", rule.name);
            assert!(
                !rule.reason.is_empty() && !rule.probe.is_empty() && !rule.calls.is_empty(),
                "{}",
                rule.name
            );
        }
    }

    #[test]
    fn a_misspelt_word_is_refused() {
        let bad = BASE.replacen("\"setns\"", "\"setnss\"", 1);
        let rules: Rules = serde_json::from_str(&bad).unwrap();
        assert!(
            rules
                .rules
                .iter()
                .any(|r| r.calls.iter().any(|c| crate::sys::names::call(c).is_none()))
        );
    }
}
