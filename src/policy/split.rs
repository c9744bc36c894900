//! A grant split around what lies below it and must not have its rights, for walls whose rights only add up on the way
//! down (landlock(7)). The limit: in a folder on the way nothing can be made or removed.

use super::frozen::{Access, Bind};
use super::host::{Host, HostKind};
use crate::base::AbsPath;

/// The most grants that one may become.
const MOST: usize = 8192;

/// A path below a grant, and what is left of the grant there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carve {
    pub path: AbsPath,
    /// Nothing, or reading.
    pub access: Option<Access>,
}

impl Carve {
    /// Nothing of it may be used.
    pub fn closed(path: AbsPath) -> Carve {
        Carve { path, access: None }
    }

    /// It may be read.
    pub fn readable(path: AbsPath) -> Carve {
        Carve {
            path,
            access: Some(Access::Read),
        }
    }
}

/// Why a grant cannot be split.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SplitError {
    #[error("{0} cannot be listed, so what is protected below it cannot be kept apart from the rest")]
    Unlisted(AbsPath),
    #[error("{0} holds more than {MOST} entries beside what is protected in it")]
    TooMany(AbsPath),
}

/// The grants that give what `grant` gives, but for the carves.
pub fn split(grant: &Bind, carves: &[Carve], host: &dyn Host) -> Result<Vec<Bind>, SplitError> {
    let mut parts = Parts {
        grant,
        carves,
        host,
        found: Vec::new(),
    };
    parts.add(&grant.source, grant.access)?;
    Ok(parts.found)
}

struct Parts<'a> {
    grant: &'a Bind,
    carves: &'a [Carve],
    host: &'a dyn Host,
    found: Vec<Bind>,
}

impl Parts<'_> {
    fn add(&mut self, at: &AbsPath, access: Access) -> Result<(), SplitError> {
        let access = match self.carves.iter().find(|carve| carve.path == *at) {
            None => access,
            Some(Carve { access: None, .. }) => return Ok(()),
            Some(Carve { access: Some(left), .. }) => access.min(*left),
        };
        let below = |carve: &&Carve| {
            carve.path != *at && carve.path.is_within(at) && carve.access.is_none_or(|left| left < access)
        };
        if !self.carves.iter().any(|carve| below(&carve)) {
            return self.give(at, access);
        }
        self.give(at, Access::List)?;
        let names = self.host.list(at).map_err(|_| SplitError::Unlisted(at.clone()))?;
        for name in names {
            let Ok(child) = at.join(&name) else { continue };
            // Rights do not go by a link's own place, but by where it leads.
            if self.host.kind(&child).is_ok_and(|kind| kind != HostKind::Link) {
                self.add(&child, access)?;
            }
        }
        Ok(())
    }

    fn give(&mut self, at: &AbsPath, access: Access) -> Result<(), SplitError> {
        if self.found.len() >= MOST {
            return Err(SplitError::TooMany(self.grant.source.clone()));
        }
        self.found.push(Bind {
            source: at.clone(),
            target: at.clone(),
            access,
            ..self.grant.clone()
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::frozen::{FileKind, Origin};
    use crate::policy::memory::MemoryHost;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn grant(access: Access) -> Bind {
        Bind {
            source: at("/w"),
            target: at("/w"),
            access,
            kind: FileKind::Dir,
            origin: Origin::built_in("test", ""),
        }
    }

    fn host() -> MemoryHost {
        MemoryHost::default()
            .file("/w/a", "")
            .link("/w/l", "a")
            .file("/w/.git/config", "")
            .file("/w/.git/HEAD", "")
            .file("/w/.git/hooks/secret", "")
            .dir("/w/src")
    }

    #[test]
    fn gives_the_rest_and_nothing_on_the_way() {
        use Access::{List, Read, ReadWrite};
        let both: &[(&str, Access)] = &[
            ("/w", List),
            ("/w/.git", List),
            ("/w/.git/HEAD", ReadWrite),
            ("/w/.git/config", Read),
            ("/w/a", ReadWrite),
            ("/w/src", ReadWrite),
        ];
        let within: &[(&str, Access)] = &[
            ("/w", List),
            ("/w/.git", List),
            ("/w/.git/HEAD", ReadWrite),
            ("/w/.git/config", ReadWrite),
            ("/w/.git/hooks", List),
            ("/w/a", ReadWrite),
            ("/w/src", ReadWrite),
        ];
        for (name, access, carves, expected) in [
            ("no carve", ReadWrite, vec![], &[("/w", ReadWrite)][..]),
            (
                "one elsewhere",
                ReadWrite,
                vec![Carve::closed(at("/x"))],
                &[("/w", ReadWrite)],
            ),
            (
                "the grant itself",
                ReadWrite,
                vec![Carve::readable(at("/w"))],
                &[("/w", Read)],
            ),
            (
                "the grant itself, closed",
                ReadWrite,
                vec![Carve::closed(at("/w"))],
                &[],
            ),
            (
                "reading is nothing less than reading",
                Read,
                vec![Carve::readable(at("/w/.git"))],
                &[("/w", Read)],
            ),
            (
                "one closed, one readable",
                ReadWrite,
                vec![
                    Carve::closed(at("/w/.git/hooks")),
                    Carve::readable(at("/w/.git/config")),
                ],
                both,
            ),
            (
                "a closed one in a readable one",
                ReadWrite,
                vec![
                    Carve::readable(at("/w/.git/hooks")),
                    Carve::closed(at("/w/.git/hooks/secret")),
                ],
                within,
            ),
        ] {
            let found = split(&grant(access), &carves, &host()).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|bind| (bind.source.to_string(), bind.access))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(path, access)| ((*path).to_owned(), *access))
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_listed_cannot_be_split() {
        let closed = host().closed("/w/.git");
        let carves = [Carve::closed(at("/w/.git/config"))];
        assert_eq!(
            split(&grant(Access::Read), &carves, &closed),
            Err(SplitError::Unlisted(at("/w/.git")))
        );
    }
}
