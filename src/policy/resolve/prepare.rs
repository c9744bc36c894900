//! What the caller must make before a launch, all of it in folders that it handed out itself.

use super::variables::Variables;
use super::{Request, ResolveError};
use crate::base::AbsPath;
use crate::policy::frozen::FileKind;
use crate::policy::host::{Host, HostKind};
use crate::policy::profile::{Mount, Mounted, Profile};
use crate::policy::walk::walk;

/// A host path that must exist before the launch: a folder (mode 0700), or an empty file to mount over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparation {
    pub path: AbsPath,
    pub kind: FileKind,
}

/// The folders of mounts with `create`, and the mount points that other mounts need in them; parents first. Those that
/// stand there already are listed too.
pub fn preparations(profile: &Profile, request: &Request, host: &dyn Host) -> Result<Vec<Preparation>, ResolveError> {
    let variables = Variables::new(request, host);
    let mut created: Vec<(AbsPath, AbsPath)> = Vec::new();
    let mut wanted = Vec::new();
    for mount in &profile.mounts {
        let Mounted::Path { from, create, .. } = &mount.mounted else {
            continue;
        };
        let at = place(&mount.at.text, mount, &variables, host)?.0;
        let (from, kind) = place(from, mount, &variables, host)?;
        if *create {
            wanted.push(Preparation {
                path: from.clone(),
                kind: FileKind::Dir,
            });
            created.push((at, from));
            continue;
        }
        let kind = match kind {
            Some(HostKind::Dir) => FileKind::Dir,
            Some(HostKind::File) => FileKind::File,
            _ => continue,
        };
        for (outer, source) in &created {
            if let Ok(rest) = at.as_path().strip_prefix(outer)
                && let Ok(path) = AbsPath::new(source.as_path().join(rest))
            {
                wanted.push(Preparation { path, kind });
            }
        }
    }
    Ok(wanted)
}

fn place(
    text: &str,
    mount: &Mount,
    variables: &Variables,
    host: &dyn Host,
) -> Result<(AbsPath, Option<HostKind>), ResolveError> {
    let written = variables.expand(text, &mount.at.origin)?;
    let walked =
        walk(&written, host).map_err(|error| ResolveError::walk(written.clone(), error, mount.at.origin.clone()))?;
    Ok((walked.path, walked.kind))
}
