//! Coding agents as data and pure functions: how each is found, started, asked whether it is ready, and fed in tests.
#![forbid(unsafe_code)]

mod answer;
mod elf;
mod environment;
mod error;
mod install;
mod opencode;
mod program;
mod ready;
pub mod scripted;
mod version;

pub use answer::{Answer, Verdict, Wrong};
pub use environment::Additions;
pub use error::AgentError;
pub use install::{InstallError, Installation, PINNED, Progress};
pub use program::{Candidate, Program, Search, Source};
pub use ready::{NotReady, Password, Patience, Probe, Ready, wait_ready};
pub use version::Version;

use crate::base::{AbsPath, Port, Secret};
use std::ffi::{OsStr, OsString};

/// Below Pinfold's own data folder: one folder for each agent.
const AGENTS_FOLDER: &str = "agents";

/// Every agent that Pinfold knows. A new one is one file and one line here.
pub const AGENTS: &[&dyn Agent] = &[&opencode::OpenCode];

/// The agent of that name.
pub fn named(name: &OsStr) -> Result<&'static dyn Agent, AgentError> {
    AGENTS
        .iter()
        .copied()
        .find(|agent| name == agent.name())
        .ok_or_else(|| AgentError::Unknown {
            name: name.to_owned(),
            known: AGENTS.iter().map(|agent| agent.name()).collect(),
        })
}

/// The two halves of an agent, each in its own sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The model loop and every tool.
    Server,
    /// A screen.
    Client,
}

/// Where the client begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// With a new session.
    Fresh,
    /// With the last session of the server's folder.
    Last,
}

/// What Pinfold must know about one agent. Nothing here starts a program; only [`Agent::find`] reads files.
pub trait Agent: Sync {
    /// The name in configuration and records, for example `opencode`.
    fn name(&self) -> &'static str;

    /// The name of the shipped profile for that side.
    fn profile(&self, side: Side) -> &'static str;

    /// Finds the program: as configured, else on the person's PATH, else Pinfold's own installation.
    fn find(&self, search: &Search<'_>) -> Result<Candidate, AgentError>;

    /// The command that prints the version. It is untrusted like any other: run it inside a sandbox.
    fn version_argv(&self, candidate: &Candidate) -> Vec<OsString>;

    /// Reads what the version command printed; a version that Pinfold has no contract for is refused.
    fn parse_version(&self, output: &[u8]) -> Result<Version, AgentError>;

    /// The server's command; it listens on 127.0.0.1 and `port` in its own network namespace.
    fn server_argv(&self, program: &Program, port: Port) -> Vec<OsString>;

    /// The client's command; `port` is where the supervisor's join listens in the client's namespace. `user` are
    /// the person's own arguments; one that would undo the join or the password is refused.
    fn client_argv(
        &self,
        program: &Program,
        port: Port,
        resume: Resume,
        user: &[OsString],
    ) -> Result<Vec<OsString>, AgentError>;

    /// Words from elsewhere (a profile's `command_args`) without those that no sandboxed command may get.
    fn strip(&self, words: Vec<OsString>) -> Vec<OsString>;

    /// What that side's environment gets and what it must not have.
    fn additions(&self, side: Side, password: &Secret) -> Additions;

    /// How to ask the server whether it is ready.
    fn probe(&self, program: &Program, port: Port, password: &Secret) -> Probe;

    /// The variables that the shipped profiles may name, without the `$`. `data` is Pinfold's own data folder.
    fn variables(&self, program: &Program, data: &AbsPath) -> Vec<(&'static str, OsString)>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_an_agent_by_name_and_names_the_known_ones_otherwise() {
        assert_eq!(named(OsStr::new("opencode")).unwrap().name(), "opencode");
        let Err(error) = named(OsStr::new("open\ncode")) else {
            panic!("an unknown name was taken")
        };
        assert_eq!(
            error.to_string(),
            r#"no agent is called "open\ncode" (known: opencode)"#
        );
    }

    #[test]
    fn no_two_agents_share_a_name() {
        let mut names: Vec<_> = AGENTS.iter().map(|agent| agent.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), AGENTS.len());
    }
}
