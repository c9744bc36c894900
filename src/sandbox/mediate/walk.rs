//! Following a path as the caller sees it: pure, over a view of the caller's files. The kernel cannot be asked to do
//! it: for whoever else asks, `/proc/self` is another process, and a link of /proc that leads to an open file or a
//! working folder is either followed with the asker's rights or not at all (proc(5), openat2(2)).

use nix::errno::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// As many links as the kernel follows in one path (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
/// As long as the kernel lets a path be (`PATH_MAX`).
const LONGEST: usize = 4096;

/// The files that a caller sees.
pub trait View {
    /// Something that was found, and stays what it is.
    type Place: Clone;
    /// The caller's root.
    fn root(&self) -> Result<Self::Place, Errno>;
    /// The caller's working folder.
    fn workdir(&self) -> Result<Self::Place, Errno>;
    /// The folder above, which at the root is the root.
    fn above(&self, folder: &Self::Place) -> Result<Self::Place, Errno>;
    /// What a name in a folder is; the name is neither empty nor `.` nor `..`, and has no slash.
    fn step(&self, folder: &Self::Place, name: &OsStr) -> Result<Step<Self::Place>, Errno>;
}

/// What stands under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<P> {
    Folder(P),
    /// Anything that has nothing below it.
    Leaf(P),
    /// A symbolic link's text.
    Link(OsString),
    /// Where a link of /proc leads that is more than its text.
    Jump(P, Jump),
}

/// What such a link led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    Folder,
    Leaf,
}

/// What a path leads to, links at its end followed as well.
pub fn walk<V: View>(path: &[u8], view: &V) -> Result<V::Place, Errno> {
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    let mut rest = names(path);
    let mut at = if path[0] == b'/' { view.root()? } else { view.workdir()? };
    let mut is_folder = true;
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if !is_folder {
            return Err(Errno::ENOTDIR);
        }
        let step = match name.as_slice() {
            b"." => continue,
            b".." => Step::Folder(view.above(&at)?),
            name => view.step(&at, OsStr::from_bytes(name))?,
        };
        if matches!(step, Step::Link(_) | Step::Jump(..)) {
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::ELOOP);
            }
        }
        match step {
            Step::Folder(place) | Step::Jump(place, Jump::Folder) => at = place,
            Step::Leaf(place) | Step::Jump(place, Jump::Leaf) => (at, is_folder) = (place, false),
            Step::Link(text) => {
                let text = text.into_vec();
                if text.is_empty() {
                    return Err(Errno::ENOENT);
                }
                if text[0] == b'/' {
                    at = view.root()?;
                }
                let mut ahead = names(&text);
                ahead.append(&mut rest);
                if ahead.iter().map(|name| name.len() + 1).sum::<usize>() > LONGEST {
                    return Err(Errno::ENAMETOOLONG);
                }
                rest = ahead;
            }
        }
    }
    Ok(at)
}

/// The names of a path in their order. A slash at the end asks for a folder, as a `.` behind it would.
fn names(path: &[u8]) -> VecDeque<Vec<u8>> {
    let mut names: VecDeque<Vec<u8>> = path
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    if path.ends_with(b"/") {
        names.push_back(b".".to_vec());
    }
    names
}

#[cfg(test)]
mod tests;
