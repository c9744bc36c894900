//! What this machine can enforce: asked of the kernel, tried in a throw-away sandbox, and attacked from inside.
//!
//! Every attempt is first made outside on targets that are really there; only what works there and is denied inside
//! counts. Silence and errors are no denial.

mod agent;
mod host;
mod kernel;
mod layers;
mod promises;
mod reduced;
mod stage;
mod targets;
mod trial;

pub use agent::AgentRow;
pub use host::HostRow;
pub use kernel::KernelRow;
pub use layers::{LayerRow, State};
pub use promises::PromiseRow;
pub use reduced::{LostRow, Reduced};
pub use stage::StageError;
pub use targets::serve;

use super::Setting;
use crate::base::Fault;
use crate::verify::probe::{Outcome, Planned, Verdict, escape_set};
use serde::Serialize;
use stage::Stage;
use std::ffi::{OsStr, OsString};
use std::time::Instant;
use trial::{Made, Sandbox, Trial};

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// Every layer is there, every promise has an enforcer, and every attempt with a control was denied.
    pub ok: bool,
    pub layers: Vec<LayerRow>,
    pub kernel: Vec<KernelRow>,
    pub host: Vec<HostRow>,
    pub agent: AgentRow,
    pub profile: ProfileRow,
    pub promises: Vec<PromiseRow>,
    pub probes: Vec<ProbeRow>,
    /// Where the machine gives no namespaces: what a launch keeps that is allowed to go without some promises.
    pub reduced: Option<Reduced>,
    /// Why attempts could not be made inside, or not all of them.
    pub problem: Option<String>,
    pub took_ms: u64,
}

/// The profile under which the attempts are made.
#[derive(Debug, Serialize)]
pub struct ProfileRow {
    pub name: String,
    pub ok: bool,
    pub problem: Option<String>,
    pub hint: Option<String>,
}

/// One attempt, outside and inside.
#[derive(Debug, Serialize)]
pub struct ProbeRow {
    #[serde(flatten)]
    pub planned: Planned,
    /// What it met outside; nothing if the control could not be made.
    pub outside: Option<Outcome>,
    /// What it met inside; nothing if there was no inside.
    pub inside: Option<Outcome>,
    pub verdict: Verdict,
}

/// Tries the escapes under `profile`. This process has one thread.
pub fn examine(profile: &OsStr, mut setting: Setting) -> Result<Diagnosis, Fault> {
    let begun = Instant::now();
    let mut stage = Stage::open(&setting)?;
    setting.host = setting.host.with_variables(stage.tokens());
    let agent = agent::find(&stage.workspace(), &setting);
    let sandbox = Sandbox::under(profile, &agent, &stage, &[], &setting);
    let planned = match &sandbox {
        Ok(sandbox) => escape_set(&stage.targets(&setting, sandbox.joined)),
        Err(_) => Vec::new(),
    };
    let outside = stage.controls(&planned, &setting.signals)?;
    let row = profile_row(profile, sandbox.as_ref().err());
    let trial = match sandbox {
        Ok(sandbox) => sandbox.run(&planned, &stage, &setting)?,
        Err(_) => Sandbox::plain(&agent, &stage, &setting)?.run(&[], &stage, &setting)?,
    };
    let reduced = match (&trial.made, row.ok) {
        (
            Made::Step {
                layer: Some("namespaces" | "mounts" | "network"),
                ..
            },
            true,
        ) => Some(reduced::examine(profile, &agent, &mut stage, &setting)?),
        _ => None,
    };
    drop(stage);
    let mut found = diagnosis(begun, agent.row, row, planned, outside, trial, &setting);
    found.reduced = reduced;
    Ok(found)
}

fn profile_row(name: &OsStr, fault: Option<&Fault>) -> ProfileRow {
    ProfileRow {
        name: crate::base::text::visible(name),
        ok: fault.is_none(),
        problem: fault.map(ToString::to_string),
        hint: fault.and_then(Fault::hint),
    }
}

fn diagnosis(
    begun: Instant,
    agent: AgentRow,
    profile: ProfileRow,
    planned: Vec<Planned>,
    outside: Vec<Outcome>,
    trial: Trial,
    setting: &Setting,
) -> Diagnosis {
    let host = host::read();
    let mut layers = layers::rows(&trial);
    host::advise(&mut layers, &host, &setting.program);
    let kernel = kernel::rows();
    let probes = judge(planned, outside, trial.outcomes.as_deref());
    let promises = promises::rows(&layers, &probes, promises::enforcers);
    let ok = profile.ok
        && trial.outcomes.is_some()
        && layers.iter().all(|row| row.state == State::Enforced)
        && kernel.iter().all(|row| row.available || !row.needed)
        && promises.iter().all(|row| row.ok);
    Diagnosis {
        ok,
        layers,
        kernel,
        host,
        agent,
        profile,
        promises,
        probes,
        reduced: None,
        problem: trial.problem.map(|fault| match fault.hint() {
            Some(hint) => format!("{fault}: {hint}"),
            None => fault.to_string(),
        }),
        took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

/// Puts each attempt and its control side by side. Where one of them is missing nothing is proven.
fn judge(planned: Vec<Planned>, outside: Vec<Outcome>, inside: Option<&[Outcome]>) -> Vec<ProbeRow> {
    let rows = planned.into_iter().enumerate().map(|(index, planned)| {
        let outside = outside.get(index).cloned();
        let inside = inside.and_then(|inside| inside.get(index)).cloned();
        let verdict = match (&outside, &inside) {
            (Some(outside), Some(inside)) => Verdict::of(outside, inside),
            (Some(_), None) => Verdict::Unproven,
            (None, _) => Verdict::NoControl,
        };
        ProbeRow {
            planned,
            outside,
            inside,
            verdict,
        }
    });
    rows.collect()
}

/// The words of this program's own verb for attempts.
fn probe_argv(program: &std::path::Path, word: &str) -> Vec<OsString> {
    vec![program.into(), "probe".into(), word.into()]
}
