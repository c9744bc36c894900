//! seccomp: the rules of `profiles/seccomp/*.json` as filters, installed last (seccomp(2)).
//!
//! Three kinds of filter: a guard against foreign ABIs and unknown calls, one filter for each error number that the
//! rules give, and, where connect is mediated, one that hands it to the supervisor.

use crate::sys::names::{Call, NEWEST_CALL, call, constant};
use nix::errno::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The shipped rules.
const BASE: &str = include_str!("../../../profiles/seccomp/base.json");

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
    /// Compiles the shipped rules for this machine.
    pub fn compile() -> Result<Filters, FilterError> {
        let rules: Rules = serde_json::from_str(BASE)?;
        let mut plain = vec![guard()];
        let mut by_errno: BTreeMap<&str, BTreeMap<i64, Vec<SeccompRule>>> = BTreeMap::new();
        for rule in &rules.rules {
            let calls = by_errno.entry(&rule.errno).or_default();
            for name in &rule.calls {
                let unknown = || FilterError::Unknown {
                    rule: rule.name.clone(),
                    word: name.clone(),
                };
                let Call::Number(number) = call(name).ok_or_else(unknown)? else {
                    continue;
                };
                let slot = calls.entry(number).or_default();
                slot.extend(alternatives(rule)?);
            }
        }
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| FilterError::Architecture)?;
        for (errno, calls) in by_errno {
            let number = errno_number(errno).ok_or_else(|| FilterError::Unknown {
                rule: "errno".into(),
                word: errno.into(),
            })?;
            let action = SeccompAction::Errno(number);
            let filter = SeccompFilter::new(calls, SeccompAction::Allow, action, arch)?;
            plain.push(filter.try_into()?);
        }
        Ok(Filters {
            plain,
            mediate: mediate(),
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

/// Whether connect goes to the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mediated {
    Yes,
    No,
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
    let number = |word: &String| {
        constant(word).ok_or_else(|| FilterError::Unknown {
            rule: rule.name.clone(),
            word: word.clone(),
        })
    };
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
        _ => return None,
    };
    u32::try_from(errno as i32).ok()
}

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ABOVE: u16 = 0x25;
const RETURN: u16 = 0x06;
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const FAIL: u32 = 0x0005_0000;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

const fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// x32 calls (bit 30 set) and calls newer than the rules: ENOSYS. A 32-bit call has another architecture, for which the
/// rule filters themselves end the process.
fn guard() -> BpfProgram {
    let no_such_call = FAIL | Errno::ENOSYS as u32;
    vec![
        step(LOAD_WORD, 0, 0, ARCH_AT),
        step(JUMP_IF_EQUAL, 0, 2, ARCH),
        step(LOAD_WORD, 0, 0, NUMBER_AT),
        step(JUMP_IF_ABOVE, 0, 1, NEWEST_CALL),
        step(RETURN, 0, 0, no_such_call),
        step(RETURN, 0, 0, ALLOW),
    ]
}

/// Hands connect to the supervisor.
fn mediate() -> BpfProgram {
    let connect = match call("connect") {
        Some(Call::Number(number)) => u32::try_from(number).unwrap_or(u32::MAX),
        _ => u32::MAX,
    };
    vec![
        step(LOAD_WORD, 0, 0, NUMBER_AT),
        step(JUMP_IF_EQUAL, 0, 1, connect),
        step(RETURN, 0, 0, NOTIFY),
        step(RETURN, 0, 0, ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::{BASE, Filters, Mediated, Rules};
    use std::collections::BTreeSet;

    #[test]
    fn the_shipped_rules_compile() {
        let filters = Filters::compile().unwrap();
        assert!(filters.count(Mediated::No) >= 4);
        assert_eq!(filters.count(Mediated::Yes), filters.count(Mediated::No) + 1);
    }

    #[test]
    fn every_rule_has_a_name_of_its_own_a_reason_and_a_probe() {
        let rules: Rules = serde_json::from_str(BASE).unwrap();
        let mut names = BTreeSet::new();
        for rule in &rules.rules {
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
