//! Follows a written path through the host's links, once, the way the kernel does, and remembers every link on the way.

use super::frozen::Link;
use super::host::{Host, HostKind};
use crate::base::AbsPath;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows in one path (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Where a written path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Walked {
    /// The canonical path; below the last existing folder the rest is taken as written.
    pub path: AbsPath,
    /// What stands there; nothing if it is absent. Never `Link`.
    pub kind: Option<HostKind>,
    /// The links that were followed, in order.
    pub links: Vec<Link>,
}

/// Why a path could not be followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WalkError {
    #[error("{0:?} is not an absolute path")]
    Relative(PathBuf),
    #[error("{0:?} leads through more than {MOST_LINKS} links")]
    Loop(PathBuf),
    #[error("cannot look at {path:?}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Path(#[from] crate::base::PathError),
}

/// Follows `written`, which must be absolute; `..` means the folder above as the kernel sees it.
pub(super) fn walk(written: &Path, host: &dyn Host) -> Result<Walked, WalkError> {
    if !written.is_absolute() {
        return Err(WalkError::Relative(written.to_owned()));
    }
    let mut rest = names(written);
    let mut walked = Walked {
        path: AbsPath::root(),
        kind: Some(HostKind::Dir),
        links: Vec::new(),
    };
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            walked.path = walked.path.parent().unwrap_or_else(AbsPath::root);
            walked.kind = walked.kind.filter(|kind| *kind == HostKind::Dir);
            continue;
        }
        let next = walked.path.join(&name)?;
        if walked.kind != Some(HostKind::Dir) {
            // Below something absent, or below a file: nothing can stand here.
            walked = Walked {
                path: next,
                kind: None,
                ..walked
            };
            continue;
        }
        match host.kind(&next) {
            Ok(HostKind::Link) => {
                let to = host.read_link(&next).map_err(|source| io_error(&next, source))?;
                if walked.links.len() == MOST_LINKS {
                    return Err(WalkError::Loop(written.to_owned()));
                }
                if to.is_absolute() {
                    walked.path = AbsPath::root();
                }
                let mut ahead = names(&to);
                ahead.append(&mut rest);
                rest = ahead;
                walked.links.push(Link { at: next, to });
            }
            Ok(kind) => {
                walked = Walked {
                    path: next,
                    kind: Some(kind),
                    ..walked
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                walked = Walked {
                    path: next,
                    kind: None,
                    ..walked
                };
            }
            Err(source) => return Err(io_error(&next, source)),
        }
    }
    Ok(walked)
}

fn io_error(path: &AbsPath, source: io::Error) -> WalkError {
    WalkError::Io {
        path: path.as_path().to_owned(),
        source,
    }
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::memory::MemoryHost;

    #[test]
    fn remembers_every_link_of_a_chain() {
        let host = MemoryHost::debian().link("/etc/a", "b").link("/etc/b", "../bin/sh");
        let walked = walk(Path::new("/etc/a"), &host).unwrap();
        assert_eq!(walked.path, AbsPath::new("/usr/bin/sh").unwrap());
        let at: Vec<_> = walked.links.iter().map(|l| l.at.to_string()).collect();
        assert_eq!(at, ["/etc/a", "/etc/b", "/bin"]);
    }

    #[test]
    fn ends_a_loop_of_links() {
        let host = MemoryHost::default().link("/a", "b").link("/b", "a");
        assert!(matches!(walk(Path::new("/a"), &host), Err(WalkError::Loop(_))));
    }

    #[test]
    fn goes_up_where_the_kernel_goes_up_not_where_the_text_does() {
        let host = MemoryHost::default().dir("/x/y").link("/l", "/x/y").file("/x/f", "");
        assert_eq!(
            walk(Path::new("/l/../f"), &host).unwrap().path,
            AbsPath::new("/x/f").unwrap()
        );
    }

    #[test]
    fn keeps_the_absent_rest_as_written() {
        let host = MemoryHost::default().link("/home", "/data").dir("/data");
        let walked = walk(Path::new("/home/ann/p"), &host).unwrap();
        assert_eq!((walked.path.to_string().as_str(), walked.kind), ("/data/ann/p", None));
    }
}
