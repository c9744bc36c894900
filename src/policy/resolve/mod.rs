//! A profile as written, a request and what the host says become one frozen policy.

mod breadth;
mod draft;
mod environment;
mod error;
mod git;
mod git_config;
mod git_surface;
mod mounts;
mod network;
mod places;
mod prepare;
mod protect;
mod request;
mod root;
#[cfg(test)]
mod tests;
mod variables;

pub use error::ResolveError;
pub use prepare::{Preparation, preparations};
pub use request::{CommandGrant, EnvWish, Request};
pub use root::{workspace_folder, workspace_root};

use super::frozen::{Access, Appearing, Datagrams, FileKind, Origin, Policy, Promise};
use super::host::{Host, HostKind};
use super::profile::{Profile, WorkdirAccess};
use super::remembered::Remembered;
use super::walk::walk;
use crate::base::AbsPath;
use breadth::Breadth;
use draft::Draft;
use git::GitFolder;
use places::Places;
use protect::Protection;
use variables::Variables;

/// Resolves once, early, into the frozen policy. Reads through `host` only, writes nothing.
pub fn resolve(profile: &Profile, request: &Request, host: &dyn Host) -> Result<Policy, ResolveError> {
    let host: &dyn Host = &Remembered::new(host);
    let variables = Variables::new(request, host);
    let breadth = Breadth::new(request, &variables, host)?;
    let root = granted_root(profile, request, &breadth, host)?;
    let mut places = Places {
        request,
        host,
        variables: &variables,
        breadth: &breadth,
        draft: Draft::default(),
    };
    places.fill(profile)?;
    let git = match &root {
        Some((root, access)) => root::grant_root(&mut places, profile, root, *access),
        None => GitFolder::Absent,
    };
    let denies = places.denies(profile)?;
    let mut draft = places.draft;
    draft.tidy(&denies, host)?;
    let mut protection = Protection {
        host,
        draft: &mut draft,
        found: Vec::new(),
    };
    if let Some((root, _)) = &root {
        protection.fill(profile, root, &git);
    }
    if let Some(program) = &request.own_program {
        let origin = Origin::built_in("own program", "Pinfold itself");
        protection.entry(&AbsPath::root(), program, &origin, Appearing::Refused);
    }
    protection.narrowed();
    let protected = protection.finish();
    let mut notes = profile.notes.clone();
    let environment = environment::resolve(profile, request, host, &variables, &mut notes)?;
    let network = network::resolve(profile, request, &mut notes)?;
    notes.append(&mut draft.notes);
    let workdir = workdir(request, &draft, root.as_ref().map(|(root, _)| root), host);
    Ok(Policy {
        profile: profile.name.clone(),
        root: root.map(|(root, _)| root),
        workdir,
        room: None,
        layer_size: profile.caches_size.unwrap_or(places::SCRATCH),
        binds: draft.binds,
        links: draft.links,
        made: draft.made,
        protected,
        masked: draft.masked,
        network,
        datagrams: profile.unix_datagrams.unwrap_or(Datagrams::Refused),
        environment,
        limits: profile.limits.clone(),
        weakened: weakened(profile, request),
        notes,
    })
}

/// The promises that were given up by name, each once.
fn weakened(profile: &Profile, request: &Request) -> Vec<Promise> {
    let written = profile.allow_missing.iter().map(|(promise, _)| *promise);
    let mut weakened: Vec<Promise> = request.allow_missing.iter().copied().chain(written).collect();
    weakened.sort();
    weakened.dedup();
    weakened
}

/// Whether the request's root may be a workspace, before anything else of a launch is known.
pub fn check_workspace(request: &Request, host: &dyn Host) -> Result<(), ResolveError> {
    let breadth = Breadth::new(request, &Variables::new(request, host), host)?;
    match &request.root {
        Some(root) => root::check_root(root, &breadth, host).map(drop),
        None => Ok(()),
    }
}

/// The checked root and what is given of it; nothing when the profile or the request has none.
fn granted_root(
    profile: &Profile,
    request: &Request,
    breadth: &Breadth,
    host: &dyn Host,
) -> Result<Option<(AbsPath, Access)>, ResolveError> {
    match (&request.root, profile.workdir) {
        (Some(root), Some(WorkdirAccess::Granted(access))) => {
            Ok(Some((root::check_root(root, breadth, host)?, access)))
        }
        _ => Ok(None),
    }
}

/// The asked-for folder if it shows inside, else the root, else `/`.
fn workdir(request: &Request, draft: &Draft, root: Option<&AbsPath>, host: &dyn Host) -> AbsPath {
    let asked = walk(&request.workdir, host)
        .ok()
        .filter(|walked| walked.kind == Some(HostKind::Dir))
        .map(|walked| walked.path);
    let masked = |path: &AbsPath| draft.masked.iter().any(|mask| path.is_within(mask));
    let shows = |path: &AbsPath| {
        draft
            .binds
            .iter()
            .any(|bind| bind.kind == FileKind::Dir && bind.source == bind.target && path.is_within(&bind.target))
            && !masked(path)
    };
    let private = |path: &AbsPath| {
        draft
            .made
            .iter()
            .any(|made| made.content.is_folder() && made.at == *path)
    };
    asked
        .filter(|path| shows(path) || private(path))
        .or(root.cloned())
        .unwrap_or_else(AbsPath::root)
}
