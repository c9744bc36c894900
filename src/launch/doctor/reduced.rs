//! Where the machine gives no namespaces: what a launch without them would keep.

use super::layers::{self, LayerRow, State};
use super::promises::{self, PromiseRow};
use super::stage::Stage;
use super::trial::Sandbox;
use super::{ProbeRow, agent, judge};
use crate::base::Fault;
use crate::launch::Setting;
use crate::policy::{Promise, lost};
use crate::sys::support::landlock_abi;
use crate::verify::probe::{Shares, Targets, escape_set};
use serde::Serialize;
use std::ffi::OsStr;

/// A promise that a reduced launch goes without, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostRow {
    pub promise: Promise,
    pub why: &'static str,
}

/// What became of the same attempts in reduced mode.
#[derive(Debug, Serialize)]
pub struct Reduced {
    /// Everything but what is lost holds.
    pub ok: bool,
    pub lost: Vec<LostRow>,
    pub layers: Vec<LayerRow>,
    pub promises: Vec<PromiseRow>,
    pub probes: Vec<ProbeRow>,
    pub problem: Option<String>,
}

/// What a launch would have to be allowed to go without here.
pub fn given_up() -> Vec<String> {
    let mut names: Vec<String> = rows()
        .into_iter()
        .map(|row| row.promise.full_name().to_owned())
        .collect();
    names.dedup();
    names
}

fn rows() -> Vec<LostRow> {
    let lost = lost(landlock_abi().unwrap_or(0)).into_iter();
    lost.map(|(promise, why)| LostRow { promise, why }).collect()
}

/// Makes the attempts in a reduced sandbox.
pub fn examine(profile: &OsStr, agent: &agent::Found, stage: &mut Stage, setting: &Setting) -> Result<Reduced, Fault> {
    let sandbox = Sandbox::under(profile, agent, stage, &given_up(), setting)?;
    let planned = escape_set(&Targets {
        shares: Shares::Namespaces,
        ..stage.targets(setting, sandbox.joined)
    });
    let outside = stage.controls(&planned, &setting.signals)?;
    let trial = sandbox.run(&planned, stage, setting)?;
    let layers = layers::rows(&trial);
    let probes = judge(planned, outside, trial.outcomes.as_deref());
    let promises = promises::rows(&layers, &probes, promises::reduced_enforcers);
    let lost = rows();
    let is_lost = |promise: Promise| lost.iter().any(|row| row.promise == promise);
    let ok = trial.outcomes.is_some()
        && layers.iter().all(|row| row.state == State::Enforced)
        && promises.iter().all(|row| row.ok || is_lost(row.promise));
    Ok(Reduced {
        ok,
        lost,
        layers,
        promises,
        probes,
        problem: trial.problem.map(|fault| fault.to_string()),
    })
}
