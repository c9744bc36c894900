//! The throw-away sandbox: the profile as it would be launched, with the attempts as its command.

use super::agent::Found;
use super::probe_argv;
use super::stage::{Stage, StageError};
use super::targets::plant_descriptor;
use crate::base::{Explain as _, Fault, Port};
use crate::launch::captured::{Capture, CaptureError, captured};
use crate::launch::{Additions, Setting, Wish};
use crate::policy::{Mode, Policy};
use crate::sandbox::plan::{Frame, plan};
use crate::sandbox::{Exit, SpawnError};
use crate::verify::Report;
use crate::verify::probe::{Outcome, Planned, Try};
use nix::errno::Errno;
use std::ffi::OsStr;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

/// Bytes of the answer that are read.
const LONGEST: u64 = 1 << 20;
/// How long all attempts may take: most are denied at once, some meet two seconds of silence.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox to be made.
pub struct Sandbox {
    policy: Policy,
    pub joined: Option<Port>,
}

/// How far its making came.
pub enum Made {
    /// Complete; the verification says whether it holds.
    Verified(Report),
    Step {
        layer: Option<&'static str>,
        step: String,
        errno: Option<Errno>,
        hint: Option<String>,
    },
}

/// What came of it.
pub struct Trial {
    /// The layers in the order of the plan.
    pub order: Vec<&'static str>,
    pub mode: Mode,
    pub made: Made,
    /// What the attempts met; nothing if they were not made.
    pub outcomes: Option<Vec<Outcome>>,
    pub problem: Option<Fault>,
}

/// The attempts did not come to an end.
#[derive(Debug, thiserror::Error)]
#[error("the attempts inside came to no end ({0})")]
struct NoAnswer(String);

impl crate::base::Explain for NoAnswer {
    fn kind(&self) -> crate::base::Kind {
        crate::base::Kind::Unknown
    }
}

impl Sandbox {
    /// The profile as a server would have it: with the agent's program, and a port that is joined to a client.
    /// `allow_missing` is what it may go without.
    pub fn under(
        profile: &OsStr,
        agent: &Found,
        stage: &Stage,
        allow_missing: &[String],
        setting: &Setting,
    ) -> Result<Sandbox, Fault> {
        let joined = free_port();
        let wish = Wish {
            profile: Some(profile.to_owned()),
            read: vec![setting.program.clone().into()],
            workdir: Some(stage.workspace().as_path().into()),
            allow_missing: allow_missing.to_vec(),
            ..Wish::default()
        };
        let additions = Additions {
            closed_ports: joined.into_iter().collect(),
            variables: agent.variables(&stage.at("agent"), setting),
            ..Additions::default()
        };
        let mut policy = wish.policy(agent.profile(), additions, setting)?;
        agent.dress(&mut policy);
        Ok(Sandbox { policy, joined })
    }

    /// A sandbox under the plainest profile, to see what the layers give where the asked-for one does not load.
    pub fn plain(agent: &Found, stage: &Stage, setting: &Setting) -> Result<Sandbox, Fault> {
        Sandbox::under(
            OsStr::new(crate::launch::run::DEFAULT_PROFILE),
            agent,
            stage,
            &[],
            setting,
        )
    }

    /// Makes it, has it verified, and makes the attempts inside.
    pub fn run(self, planned: &[Planned], stage: &Stage, setting: &Setting) -> Result<Trial, Fault> {
        let tries: Vec<Try> = planned.iter().map(|one| Try::new(one.attempt, &one.args)).collect();
        let log = stage.at("network.log");
        let capture = Capture {
            argv: probe_argv(&setting.program, "--batch"),
            input: serde_json::to_vec(&tries).map_err(StageError::Json)?,
            network_log: Some(&log),
            most: LONGEST,
            limit: PATIENCE,
        };
        let planted = plant_descriptor().map_err(StageError::io)?;
        let (mut order, mut mode) = (order(&self.policy), Mode::Full);
        let result = captured(&self.policy, capture, setting);
        drop(planted);
        let (made, outcomes) = match result {
            Ok(captured) => {
                (order, mode) = (self::order(&captured.policy), captured.policy.mode());
                (
                    Made::Verified(captured.report),
                    outcomes(captured.exit, &captured.output)?,
                )
            }
            Err(CaptureError::NotVerified(report)) => (Made::Verified(report), Err(no_sandbox())),
            Err(CaptureError::Enclose(error)) => match error.step() {
                Some(step) => (failed(step), Err(error.into())),
                None => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        };
        let (outcomes, problem) = match outcomes {
            Ok(outcomes) => (Some(outcomes), None),
            Err(fault) => (None, Some(fault)),
        };
        Ok(Trial {
            order,
            mode,
            made,
            outcomes,
            problem,
        })
    }
}

fn no_sandbox() -> Fault {
    NoAnswer("verification failed, so nothing was released".into()).into()
}

/// The attempts' answer. A signal was for the doctor: it was passed on.
fn outcomes(exit: Exit, output: &[u8]) -> Result<Result<Vec<Outcome>, Fault>, StageError> {
    let said = match exit {
        Exit::Code(0) => serde_json::from_slice(output).map_err(|error| error.to_string()),
        Exit::Signal(number) if nix::sys::signal::Signal::try_from(number).is_ok_and(super::stage::is_an_end) => {
            return Err(StageError::Interrupted);
        }
        exit => Err(crate::launch::session::describe(exit)),
    };
    Ok(said.map_err(|text| NoAnswer(text).into()))
}

fn failed(error: &SpawnError) -> Made {
    match error {
        SpawnError::Step {
            step,
            layer,
            errno,
            hint,
        } => Made::Step {
            layer: *layer,
            step: format!("{step} failed ({errno})"),
            errno: Some(*errno),
            hint: hint.clone(),
        },
        other => Made::Step {
            layer: None,
            step: other.to_string(),
            errno: None,
            hint: other.hint(),
        },
    }
}

/// The layers of the plan, each once.
fn order(policy: &Policy) -> Vec<&'static str> {
    let frame = Frame {
        uid: 0,
        gid: 0,
        inlets: Vec::new(),
        terminal: false,
    };
    let mut order = Vec::new();
    for layer in plan(policy, &frame).iter().filter_map(crate::sandbox::plan::Op::layer) {
        if !order.contains(&layer) {
            order.push(layer);
        }
    }
    order
}

/// A port that nobody listens on, outside as well, so that the control can.
fn free_port() -> Option<Port> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    listener.local_addr().ok().and_then(|address| Port::new(address.port()))
}
