//! The promises: which layers keep each, and what the attempts say about it.

use super::ProbeRow;
use super::layers::{LayerRow, State};
use crate::policy::Promise;
use crate::verify::probe::Verdict;
use serde::Serialize;

/// One promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromiseRow {
    pub promise: Promise,
    /// The layers that keep it; one of them is enough.
    pub enforcers: Vec<&'static str>,
    /// Those of them that are not there.
    pub missing: Vec<&'static str>,
    /// Attempts that worked outside and were denied inside.
    pub held: usize,
    /// Attempts that worked inside.
    pub escaped: usize,
    /// Attempts that worked outside and met silence or an error inside.
    pub unproven: usize,
    /// Attempts without a control: they prove nothing.
    pub without_control: usize,
    pub ok: bool,
}

/// The layers that each keep a promise (`docs/promises.md`). What verification alone keeps needs every check.
pub fn enforcers(promise: Promise) -> &'static [&'static str] {
    match promise {
        Promise::Files => &["mounts", "landlock"],
        Promise::Protected | Promise::OutOfReach => &["mounts"],
        Promise::Network => &["namespaces", "network", "seccomp"],
        Promise::Sockets => &["namespaces", "mounts"],
        Promise::Processes => &["namespaces", "seccomp", "landlock"],
        Promise::Terminal => &["seccomp", "descriptors"],
        Promise::Environment => &["environment", "descriptors"],
        Promise::Verified | Promise::Honest => &[],
    }
}

/// The same in reduced mode. What the mediator decides hangs on the filters that hand the calls to it.
pub fn reduced_enforcers(promise: Promise) -> &'static [&'static str] {
    match promise {
        Promise::Files | Promise::Protected | Promise::OutOfReach => &["landlock"],
        Promise::Network | Promise::Sockets => &["seccomp", "landlock"],
        Promise::Processes => &["landlock", "seccomp"],
        Promise::Terminal => &["seccomp", "descriptors"],
        Promise::Environment => &["environment", "descriptors"],
        Promise::Verified | Promise::Honest => &[],
    }
}

/// A row for each promise, by the layers that keep it.
pub fn rows(
    layers: &[LayerRow],
    probes: &[ProbeRow],
    enforcers: fn(Promise) -> &'static [&'static str],
) -> Vec<PromiseRow> {
    Promise::ALL
        .into_iter()
        .map(|promise| row(promise, enforcers(promise), layers, probes))
        .collect()
}

fn row(promise: Promise, by_layers: &[&'static str], layers: &[LayerRow], probes: &[ProbeRow]) -> PromiseRow {
    let is_there = |name: &str| {
        layers
            .iter()
            .any(|layer| layer.name == name && layer.state == State::Enforced)
    };
    let missing: Vec<_> = by_layers.iter().copied().filter(|name| !is_there(name)).collect();
    let count = |wanted: &[Verdict]| {
        let of = probes.iter().filter(|probe| probe.planned.promise == promise);
        of.filter(|probe| wanted.contains(&probe.verdict)).count()
    };
    let (held, escaped) = (count(&[Verdict::Held]), count(&[Verdict::Escaped]));
    let unproven = count(&[Verdict::Unproven]);
    let without_control = count(&[Verdict::NoControl, Verdict::DeniedAnyway]);
    let enforced = match by_layers {
        [] => !layers.is_empty() && layers.iter().all(|layer| layer.state == State::Enforced),
        by_layers => missing.len() < by_layers.len(),
    };
    // A promise that was tried needs one attempt that proves something.
    let proven = held > 0 || (without_control == 0 && escaped == 0 && unproven == 0);
    PromiseRow {
        promise,
        enforcers: if by_layers.is_empty() {
            vec!["verification"]
        } else {
            by_layers.to_vec()
        },
        missing,
        held,
        escaped,
        unproven,
        without_control,
        ok: enforced && proven && escaped == 0 && unproven == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::probe::{Targets, escape_set};

    fn layer(name: &'static str, state: State) -> LayerRow {
        LayerRow {
            name,
            state,
            detail: String::new(),
            errno: None,
            fix: None,
        }
    }

    fn probe(verdict: Verdict) -> ProbeRow {
        let targets = Targets {
            secret: Some("/x".into()),
            ..Targets::default()
        };
        let planned = escape_set(&targets).into_iter().next().unwrap();
        assert_eq!(planned.promise, Promise::Files);
        ProbeRow {
            planned,
            outside: None,
            inside: None,
            verdict,
        }
    }

    fn files(layers: &[LayerRow], verdicts: &[Verdict]) -> bool {
        let probes: Vec<ProbeRow> = verdicts.iter().map(|verdict| probe(*verdict)).collect();
        rows(layers, &probes, enforcers)[0].ok
    }

    #[test]
    fn one_of_the_layers_is_enough_and_none_is_not() {
        let (mounts, landlock) = (|state| layer("mounts", state), |state| layer("landlock", state));
        let held = [Verdict::Held];
        assert!(files(&[mounts(State::Enforced), landlock(State::Failed)], &held));
        assert!(files(&[mounts(State::Unchecked), landlock(State::Enforced)], &held));
        assert!(!files(&[mounts(State::Unchecked), landlock(State::NotReached)], &held));
        assert!(!files(&[], &held));
    }

    #[test]
    fn an_escape_silence_or_no_control_at_all_is_no_pass() {
        let layers = [layer("mounts", State::Enforced)];
        assert!(files(&layers, &[Verdict::Held, Verdict::NoControl]));
        assert!(!files(&layers, &[Verdict::Held, Verdict::Escaped]));
        assert!(!files(&layers, &[Verdict::Held, Verdict::Unproven]));
        assert!(!files(&layers, &[Verdict::NoControl]));
        assert!(!files(&layers, &[Verdict::DeniedAnyway]));
    }

    #[test]
    fn what_verification_keeps_needs_every_layer() {
        let all = [layer("mounts", State::Enforced), layer("seccomp", State::Enforced)];
        let verified = |layers: &[LayerRow]| {
            let rows = rows(layers, &[], enforcers);
            rows.iter().find(|row| row.promise == Promise::Verified).unwrap().ok
        };
        assert!(verified(&all));
        assert!(!verified(&[all[0].clone(), layer("seccomp", State::Failed)]));
        assert!(!verified(&[]));
    }
}
