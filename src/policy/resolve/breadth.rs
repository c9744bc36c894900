//! Refuses grants under which too much else stands. The list is data: `profiles/too-broad.json`.

use super::variables::Variables;
use super::{Request, ResolveError};
use crate::base::AbsPath;
use crate::policy::frozen::{Access, Origin};
use crate::policy::host::Host;
use crate::policy::walk::walk;
use serde::Deserialize;
use std::path::Path;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Extent {
    At,
    Within,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Refuse {
    Read,
    Write,
}

#[derive(Debug, Deserialize)]
struct Written {
    path: String,
    extent: Extent,
    refuse: Refuse,
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Table {
    paths: Vec<Written>,
}

struct Place {
    path: AbsPath,
    extent: Extent,
    refuse: Refuse,
    reason: String,
}

/// What is too broad on this host.
pub(super) struct Breadth {
    places: Vec<Place>,
    home: Option<AbsPath>,
    own: Vec<AbsPath>,
    /// Parts of Pinfold's own folders that the launch itself hands out.
    handed_out: Vec<AbsPath>,
}

impl Breadth {
    /// Resolves the list: links are followed, so that no other name of a place gets round it.
    pub fn new(request: &Request, variables: &Variables, host: &dyn Host) -> Result<Breadth, ResolveError> {
        let damaged = |error: serde_json::Error| ResolveError::Data("too-broad.json", error.to_string());
        let table: Table = serde_json::from_str(include_str!("../../../profiles/too-broad.json")).map_err(damaged)?;
        let home = host.home();
        let mut places = Vec::new();
        for Written {
            path,
            extent,
            refuse,
            reason,
        } in table.paths
        {
            if path.starts_with("$HOME") && home.is_none() {
                continue;
            }
            let origin = Origin {
                source: "built in".to_owned(),
                key: "too-broad.json".to_owned(),
                why: None,
            };
            let written = variables.expand(&path, &origin)?;
            let plain = AbsPath::new(&written).into_iter();
            for path in plain.chain(canonical(&written, host)) {
                places.push(Place {
                    path,
                    extent,
                    refuse,
                    reason: reason.clone(),
                });
            }
        }
        let all = |paths: &mut dyn Iterator<Item = &Path>| paths.filter_map(|path| canonical(path, host)).collect();
        Ok(Breadth {
            places,
            home: home.as_deref().and_then(|home| canonical(home, host)),
            own: all(&mut request.own_folders.iter().map(|path| path.as_path())),
            handed_out: all(&mut request.variables.iter().map(|(_, path)| path.as_path())),
        })
    }

    /// Why this canonical path is not to be granted, or nothing.
    pub fn refusal(&self, path: &AbsPath, access: Access) -> Option<String> {
        if let Some(home) = &self.home
            && home.is_within(path)
        {
            return Some(
                if home == path {
                    "that is the home folder"
                } else {
                    "the home folder is in it"
                }
                .to_owned(),
            );
        }
        let hit = |place: &&Place| {
            let covered = match place.extent {
                Extent::At => *path == place.path,
                Extent::Within => path.is_within(&place.path),
            };
            covered && (place.refuse == Refuse::Read || access == Access::ReadWrite)
        };
        if let Some(place) = self.places.iter().find(hit) {
            return Some(place.reason.clone());
        }
        // Nothing inside needs to read Pinfold's records and logs either; a folder around them may still be read.
        let touches = |own: &AbsPath| path.is_within(own) || (access == Access::ReadWrite && own.is_within(path));
        let handed_out = self.handed_out.iter().any(|out| path.is_within(out));
        (!handed_out && self.own.iter().any(touches))
            .then(|| "Pinfold's own configuration, state or data is there".to_owned())
    }
}

fn canonical(path: &Path, host: &dyn Host) -> Option<AbsPath> {
    walk(path, host)
        .map(|walked| walked.path)
        .or_else(|_| AbsPath::new(path))
        .ok()
}
