//! Whether the agent is there, and what the profile's variables mean for it.

use crate::agent::{AGENTS, Agent, Candidate, Program, Side, Source};
use crate::base::{AbsPath, Explain as _, Fault, Secret};
use crate::launch::Setting;
use crate::launch::preview::{installed, pinned};
use crate::launch::version::version_of;
use crate::policy::Policy;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// How long the program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is known of the agent's program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentRow {
    pub name: &'static str,
    pub found: bool,
    pub path: Option<AbsPath>,
    pub version: Option<String>,
    pub problem: Option<String>,
    pub hint: Option<String>,
}

/// The agent, and its program where there is one.
pub struct Found {
    pub row: AgentRow,
    agent: Option<&'static dyn Agent>,
    program: Option<Program>,
}

/// Looks for the first known agent. A program that does not say its version in its package is asked, in a sandbox.
pub fn find(workspace: &AbsPath, setting: &Setting) -> Found {
    let agent = AGENTS.first().copied();
    let mut row = AgentRow {
        name: agent.map_or("none", Agent::name),
        found: false,
        path: None,
        version: None,
        problem: None,
        hint: None,
    };
    let candidate = match agent.map(|agent| (agent, installed(agent, Some(workspace), setting))) {
        Some((agent, Ok(candidate))) => (agent, candidate),
        Some((_, Err(error))) => {
            row.problem = Some(error.to_string());
            row.hint = error.hint();
            return Found {
                row,
                agent,
                program: None,
            };
        }
        None => {
            return Found {
                row,
                agent,
                program: None,
            };
        }
    };
    let (found, candidate) = candidate;
    row.path = Some(candidate.path.clone());
    let program = match versioned(found, candidate, setting) {
        Ok(program) => {
            row.found = true;
            row.version = Some(program.version.to_string());
            Some(program)
        }
        Err(fault) => {
            row.problem = Some(fault.to_string());
            row.hint = fault.hint();
            None
        }
    };
    Found { row, agent, program }
}

fn versioned(agent: &dyn Agent, candidate: Candidate, setting: &Setting) -> Result<Program, Fault> {
    let version = match candidate.hint {
        Some(version) => version,
        None => version_of(agent, &candidate, PATIENCE, setting)?,
    };
    Ok(candidate.with_version(version))
}

impl Found {
    /// The shipped profile of its server.
    pub fn profile(&self) -> &'static str {
        self.agent.map_or("default", |agent| agent.profile(Side::Server))
    }

    /// Values for the profile's variables. Without the agent Pinfold's own program stands in for it, and its data are
    /// in `stand_in`, so that the rest of the profile can be tried.
    pub fn variables(&self, stand_in: &AbsPath, setting: &Setting) -> Vec<(String, PathBuf)> {
        let Some(agent) = self.agent else { return Vec::new() };
        let (program, data) = match &self.program {
            Some(program) => (program.clone(), &setting.dirs.data),
            None => (
                Program {
                    path: AbsPath::new(&setting.program).unwrap_or_else(|_| AbsPath::root()),
                    source: Source::Own,
                    version: pinned(),
                },
                stand_in,
            ),
        };
        let variables = agent.variables(&program, data).into_iter();
        variables.map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    /// What the server of a launch gets in its environment beside the profile's.
    pub fn dress(&self, policy: &mut Policy) {
        if let Some(agent) = self.agent.filter(|agent| agent.profile(Side::Server) == policy.profile) {
            agent
                .additions(Side::Server, &Secret::fresh())
                .apply(&mut policy.environment);
        }
    }
}
