//! The policy that a launch would have, without making or running anything: for `explain` and `why`.

use super::wish::{broker_port, name_the_broker};
use super::{Additions, Setting, Wish};
use crate::agent::{self, Agent, AgentError, Candidate, PINNED, Program, Search, Side, Source, Version};
use crate::base::{AbsPath, Explain as _, Fault};
use crate::policy::profile::{Entry, Mounted, Profile};
use crate::policy::{Note, Policy, Request, Topic, resolve};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A policy to look at.
#[derive(Debug)]
pub struct Preview {
    pub policy: Policy,
    /// The profile is an agent's, and this is why its program is not there: its lines are left out.
    pub agent_missing: Option<Missing>,
}

/// An agent that is not installed, or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub problem: String,
    pub hint: Option<String>,
}

impl From<AgentError> for Missing {
    fn from(error: AgentError) -> Missing {
        Missing {
            problem: error.to_string(),
            hint: error.hint(),
        }
    }
}

/// A profile that a launch would take.
#[derive(Debug)]
pub struct Checked {
    pub profile: Profile,
    pub preview: Preview,
    /// Whether it was held against the workspace here, too.
    pub workspace: bool,
}

impl Wish {
    /// Resolves as a launch would; nothing is made, and no program is run to ask for its version.
    pub fn preview(&self, default: &str, setting: &Setting) -> Result<Preview, Fault> {
        self.check_variables(setting)?;
        let profile = self.profile(default, setting)?;
        let root = self.root(setting)?;
        let request = |additions| self.request(additions, setting);
        looked_at(profile, Some(&root), &request, setting)
    }

    /// Loads and resolves the profile as a launch would. Where this folder cannot be a workspace the rest is checked
    /// without one: that is not the profile's fault.
    pub fn check(&self, setting: &Setting) -> Result<Checked, Fault> {
        let profile = self.profile("", setting)?;
        let root = self.checked_root(setting).ok();
        let request = |mut additions: Additions| {
            if root.is_none() {
                additions.variables.push(("WORKDIR".into(), setting.here.clone()));
            }
            let mut request = self.request(additions, setting)?;
            request.root = root.as_ref().map(|root| root.as_path().to_owned());
            Ok(request)
        };
        let preview = looked_at(profile.clone(), root.as_ref(), &request, setting)?;
        let workspace = root.is_some();
        Ok(Checked {
            profile,
            preview,
            workspace,
        })
    }
}

/// The policy of a profile, with the values of its agent's program if that is installed.
fn looked_at(
    mut profile: Profile,
    root: Option<&AbsPath>,
    request: &dyn Fn(Additions) -> Result<Request, Fault>,
    setting: &Setting,
) -> Result<Preview, Fault> {
    let agent = agent_of(&profile);
    let names = variable_names(agent, &setting.dirs.data);
    let mut variables = Vec::new();
    let mut agent_missing = None;
    if agent.is_some() || uses(&profile, &names) {
        let agent = agent.or(agent::AGENTS.first().copied());
        match agent.map(|agent| (agent, installed(agent, root, setting))) {
            Some((agent, Ok(candidate))) => variables = values(agent, candidate, setting),
            Some((_, Err(error))) => {
                leave_out(&mut profile, &names);
                agent_missing = Some(error.into());
            }
            None => {}
        }
    }
    let request = request(Additions {
        variables,
        ..Additions::default()
    })?;
    let mut policy = resolve(&profile, &request, &setting.host)?;
    if [&policy.network.open_ports, &policy.network.listen_ports]
        .into_iter()
        .flatten()
        .any(|port| Some(*port) == broker_port())
    {
        return Err(super::wish::BrokersPort.into());
    }
    name_the_broker(&mut policy);
    Ok(Preview { policy, agent_missing })
}

/// The agent whose shipped profile this is, or extends.
fn agent_of(profile: &Profile) -> Option<&'static dyn Agent> {
    let of = |agent: &&&'static dyn Agent| {
        let names = [Side::Server, Side::Client].map(|side| agent.profile(side));
        profile.chain.iter().any(|link| names.contains(&link.as_str()))
    };
    agent::AGENTS.iter().find(of).copied()
}

/// Finds the agent's program without running it.
pub(super) fn installed(agent: &dyn Agent, root: Option<&AbsPath>, setting: &Setting) -> Result<Candidate, AgentError> {
    agent.find(&Search {
        configured: None,
        path: setting.environ.get(OsStr::new("PATH")).map(OsString::as_os_str),
        workspace: root,
        data: &setting.dirs.data,
    })
}

/// What the profile's variables mean for this program. One that does not say its version counts as the pinned one.
fn values(agent: &dyn Agent, candidate: Candidate, setting: &Setting) -> Vec<(String, PathBuf)> {
    let version = candidate.hint.unwrap_or_else(pinned);
    let program = candidate.with_version(version);
    let values = agent.variables(&program, &setting.dirs.data).into_iter();
    values.map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// The version that Pinfold installs.
pub(super) fn pinned() -> Version {
    Version::first_in(PINNED.as_bytes()).unwrap_or(Version {
        major: 1,
        minor: 0,
        patch: 0,
    })
}

/// The names of the variables that only an installed agent gives a value.
pub(super) fn variable_names(agent: Option<&'static dyn Agent>, data: &AbsPath) -> Vec<&'static str> {
    let nowhere = Program {
        path: AbsPath::root(),
        source: Source::Own,
        version: pinned(),
    };
    let agents = agent.map_or_else(|| agent::AGENTS.to_vec(), |agent| vec![agent]);
    let variables = agents.iter().flat_map(|agent| agent.variables(&nowhere, data));
    variables.map(|(name, _)| name).collect()
}

fn mentions(text: &str, names: &[&str]) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split('$').skip(1).any(|behind| {
        let behind = behind.strip_prefix('{').unwrap_or(behind);
        let end = behind.find(|c| !word(c)).unwrap_or(behind.len());
        behind.get(..end).is_some_and(|name| names.contains(&name))
    })
}

fn source(mounted: &Mounted) -> &str {
    match mounted {
        Mounted::Path { from, .. } => from,
        Mounted::Entries { of, .. } => of,
    }
}

fn uses(profile: &Profile, names: &[&str]) -> bool {
    let grants = profile.grants.iter().map(|grant| grant.entry.text.as_str());
    let mounts = profile.mounts.iter();
    let mut texts = grants.chain(mounts.flat_map(|mount| [mount.at.text.as_str(), source(&mount.mounted)]));
    texts.any(|text| mentions(text, names))
}

/// Takes out the lines that say something about the agent's program, and notes them.
fn leave_out(profile: &mut Profile, names: &[&str]) {
    let mut notes = Vec::new();
    let mut left_out = |entry: &Entry| {
        notes.push(Note {
            topic: Topic::LeftOut,
            subject: entry.text.clone(),
            text: "the agent is not installed".to_owned(),
            origin: entry.origin.clone(),
        });
    };
    profile.grants.retain(|grant| {
        let keep = !mentions(&grant.entry.text, names);
        if !keep {
            left_out(&grant.entry);
        }
        keep
    });
    profile.mounts.retain(|mount| {
        let keep = !mentions(source(&mount.mounted), names) && !mentions(&mount.at.text, names);
        if !keep {
            left_out(&mount.at);
        }
        keep
    });
    profile.notes.append(&mut notes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_recognised_by_its_whole_name() {
        let names = ["AGENT_BINARY"];
        for text in ["$AGENT_BINARY", "${AGENT_BINARY}/x", "$HOME/$AGENT_BINARY"] {
            assert!(mentions(text, &names), "{text}");
        }
        for text in ["$AGENT_BINARY_2", "AGENT_BINARY", "$HOME", ""] {
            assert!(!mentions(text, &names), "{text}");
        }
    }

    #[test]
    fn the_lines_of_an_agent_that_is_not_there_are_left_out_with_a_note() {
        let host = crate::policy::LiveHost::new();
        let mut profile = crate::policy::load("opencode-server", &[], &host).unwrap();
        let names = variable_names(agent_of(&profile), &AbsPath::root());
        let before = profile.mounts.len();
        assert!(uses(&profile, &names));
        leave_out(&mut profile, &names);
        assert!(!uses(&profile, &names));
        assert_eq!(profile.mounts.len(), before - 1);
        let subjects: Vec<&str> = profile.notes.iter().map(|note| note.subject.as_str()).collect();
        assert!(subjects.contains(&"$AGENT_BINARY"), "{subjects:?}");
    }
}
