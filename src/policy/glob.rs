//! Patterns in the paths of profiles, expanded once: `*` and `?` within a name, `**` for any folders between.
//!
//! A pattern never leads through a link, so that nothing in a granted tree can make it lead out of there; the folders in
//! front of the first star are followed like every other path. A name that begins with a dot is matched by a dot only.

use super::host::{Host, HostKind};
use super::walk::{WalkError, walk};
use crate::base::AbsPath;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Paths that one pattern may come to; each is a mount or two.
pub(super) const MOST: usize = 1024;
/// Names that one pattern may look at: some hundredths of a second.
const LOOKS: usize = 20_000;
/// How far `**` goes down.
const DEEPEST: usize = 16;

/// Why a pattern is not expanded.
#[derive(Debug, thiserror::Error)]
pub(super) enum GlobError {
    #[error("it fits more than {MOST} paths")]
    Many,
    #[error("more than {LOOKS} names would have to be looked at when a launch starts")]
    Wide,
    #[error("there is a `..` behind a star")]
    Up,
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error("cannot list {path:?}: {source}")]
    List { path: PathBuf, source: io::Error },
}

/// Whether a path is a pattern.
pub(super) fn is_pattern(path: &Path) -> bool {
    path.components().any(|component| has_star(component.as_os_str()))
}

/// Whether a pattern has `**` in it.
pub(super) fn is_deep(path: &Path) -> bool {
    path.components().any(|component| component.as_os_str() == "**")
}

fn has_star(name: &OsStr) -> bool {
    name.as_bytes().iter().any(|byte| matches!(byte, b'*' | b'?'))
}

/// What the pattern comes to now, sorted: each with the front of the pattern as it is written.
pub(super) fn expand(pattern: &Path, host: &dyn Host) -> Result<Vec<PathBuf>, GlobError> {
    let mut front = PathBuf::new();
    let mut rest: Vec<OsString> = Vec::new();
    for component in pattern.components() {
        let name = component.as_os_str();
        if rest.is_empty() && !has_star(name) {
            front.push(component);
        } else if component == Component::ParentDir {
            return Err(GlobError::Up);
        } else {
            rest.push(name.to_owned());
        }
    }
    let walked = walk(&front, host)?;
    let mut search = Search {
        host,
        looks: 0,
        found: Vec::new(),
    };
    if walked.kind == Some(HostKind::Dir) {
        search.below(&walked.path, &front, &rest, 0)?;
    }
    search.found.sort();
    search.found.dedup();
    Ok(search.found)
}

struct Search<'a> {
    host: &'a dyn Host,
    looks: usize,
    found: Vec<PathBuf>,
}

impl Search<'_> {
    /// Everything below `folder` that fits `rest`; `written` is the folder as it is to be shown.
    fn below(&mut self, folder: &AbsPath, written: &Path, rest: &[OsString], deep: usize) -> Result<(), GlobError> {
        let Some((first, behind)) = rest.split_first() else {
            return Ok(());
        };
        if first == "**" {
            return self.deep(folder, written, rest, behind, deep);
        }
        if !has_star(first) {
            return self.step(folder, written, first, behind, deep);
        }
        for name in self.names(folder)? {
            if fits(first.as_bytes(), name.as_bytes()) {
                self.step(folder, written, &name, behind, deep)?;
            }
        }
        Ok(())
    }

    /// `**`: what is behind it here, and in every folder below.
    fn deep(
        &mut self,
        folder: &AbsPath,
        written: &Path,
        rest: &[OsString],
        behind: &[OsString],
        deep: usize,
    ) -> Result<(), GlobError> {
        match behind {
            // A `**` at the end is the folder with all that is in it.
            [] => self.keep(written.to_owned())?,
            _ => self.below(folder, written, behind, deep)?,
        }
        if behind.is_empty() || deep == DEEPEST {
            return Ok(());
        }
        for name in self.names(folder)? {
            let Ok(at) = folder.join(&name) else { continue };
            if !name.as_bytes().starts_with(b".") && self.kind(&at)? == Some(HostKind::Dir) {
                self.below(&at, &written.join(&name), rest, deep + 1)?;
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        folder: &AbsPath,
        written: &Path,
        name: &OsStr,
        behind: &[OsString],
        deep: usize,
    ) -> Result<(), GlobError> {
        let Ok(at) = folder.join(name) else { return Ok(()) };
        match (self.kind(&at)?, behind) {
            (None | Some(HostKind::Link), _) => Ok(()),
            (Some(_), []) => self.keep(written.join(name)),
            (Some(HostKind::Dir), _) => self.below(&at, &written.join(name), behind, deep),
            (Some(_), _) => Ok(()),
        }
    }

    fn keep(&mut self, path: PathBuf) -> Result<(), GlobError> {
        if self.found.len() == MOST {
            return Err(GlobError::Many);
        }
        self.found.push(path);
        Ok(())
    }

    fn kind(&mut self, at: &AbsPath) -> Result<Option<HostKind>, GlobError> {
        self.look(1)?;
        // What cannot be looked at cannot be granted either.
        Ok(self.host.kind(at).ok())
    }

    /// The names in a folder; none in one that may not be listed, which cannot be shown inside either.
    fn names(&mut self, folder: &AbsPath) -> Result<Vec<OsString>, GlobError> {
        let names = match self.host.list(folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Vec::new(),
            listed => listed.map_err(|source| GlobError::List {
                path: folder.as_path().to_owned(),
                source,
            })?,
        };
        self.look(names.len())?;
        Ok(names)
    }

    fn look(&mut self, more: usize) -> Result<(), GlobError> {
        self.looks = self.looks.saturating_add(more);
        if self.looks > LOOKS {
            Err(GlobError::Wide)
        } else {
            Ok(())
        }
    }
}

/// Whether a pattern fits a whole name.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    // The last star is the only one that has to be tried again.
    let (mut p, mut n, mut again) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                again = Some((p + 1, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match again {
                Some((behind, at)) => {
                    again = Some((behind, at + 1));
                    p = behind;
                    n = at + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::memory::MemoryHost;

    fn found(pattern: &str, host: &MemoryHost) -> Vec<String> {
        let found = expand(Path::new(pattern), host).unwrap();
        found.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn stars_fit_within_a_name() {
        for (pattern, name, fit) in [
            ("foo-*", "foo-1", true),
            ("foo-*", "foo-", true),
            ("foo-*", "bar-1", false),
            ("*.rs", "a.rs", true),
            ("*.rs", ".rs", false),
            (".*", ".rs", true),
            ("*", ".hidden", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "aabbx", false),
            ("a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), fit, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_is_expanded_in_order_and_never_through_a_link() {
        let host = MemoryHost::debian()
            .file("/c/foo-2/bin/x", "")
            .file("/c/foo-1/bin/x", "")
            .dir("/c/foo-3")
            .dir("/c/.foo-4")
            .link("/c/foo-5", "/etc")
            .file("/etc/bin/x", "")
            .link("/cc", "/c");
        assert_eq!(found("/c/foo-*", &host), ["/c/foo-1", "/c/foo-2", "/c/foo-3"]);
        assert_eq!(found("/c/foo-*/bin", &host), ["/c/foo-1/bin", "/c/foo-2/bin"]);
        assert_eq!(
            found("/cc/foo-?/bin/*", &host),
            ["/cc/foo-1/bin/x", "/cc/foo-2/bin/x"],
            "the front is followed"
        );
        assert_eq!(found("/c/**/x", &host), ["/c/foo-1/bin/x", "/c/foo-2/bin/x"]);
        assert_eq!(found("/c/foo-1/**", &host), ["/c/foo-1"]);
        assert!(found("/nowhere/*", &host).is_empty());
        assert!(matches!(expand(Path::new("/c/*/../x"), &host), Err(GlobError::Up)));
    }

    #[test]
    fn a_pattern_is_bounded_in_what_it_fits_and_in_what_it_looks_at() {
        let many = |count: usize| {
            (0..count).fold(MemoryHost::default(), |host, number| {
                host.file(&format!("/d/f{number}"), "")
            })
        };
        assert_eq!(found("/d/f*", &many(MOST)).len(), MOST);
        assert!(matches!(
            expand(Path::new("/d/f*"), &many(MOST + 1)),
            Err(GlobError::Many)
        ));
        assert_eq!(found("/d/f?", &many(MOST + 1)).len(), 10);
        let wide = (0..3).fold(MemoryHost::default(), |host, folder| {
            (0..LOOKS / 2).fold(host, |host, file| host.file(&format!("/w/d{folder}/{file}"), ""))
        });
        assert!(matches!(
            expand(Path::new("/w/**/nothing"), &wide),
            Err(GlobError::Wide)
        ));
    }
}
