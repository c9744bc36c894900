//! Following a path: a folder of links is made from the input, and the walk must end where the kernel ends.

use crate::harness::Random;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use pinfold::sandbox::mediate::walk::{Step, View, walk};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// What stands under a root, as paths without it; the root itself is the empty path.
#[derive(Debug, Default)]
struct Tree(BTreeMap<PathBuf, Entry>);

#[derive(Debug, Clone)]
enum Entry {
    Folder,
    Leaf,
    Link(Vec<u8>),
}

impl View for Tree {
    type Place = PathBuf;
    fn root(&self) -> Result<PathBuf, Errno> {
        Ok(PathBuf::new())
    }
    fn workdir(&self) -> Result<PathBuf, Errno> {
        Ok(PathBuf::new())
    }
    fn above(&self, folder: &PathBuf) -> Result<PathBuf, Errno> {
        Ok(folder.parent().map(Path::to_owned).unwrap_or_default())
    }
    fn step(&self, folder: &PathBuf, name: &OsStr) -> Result<Step<PathBuf>, Errno> {
        if name.len() > 255 {
            return Err(Errno::ENAMETOOLONG);
        }
        let at = folder.join(name);
        match self.0.get(&at).ok_or(Errno::ENOENT)? {
            Entry::Folder => Ok(Step::Folder(at)),
            Entry::Leaf => Ok(Step::Leaf(at)),
            Entry::Link(text) => Ok(Step::Link(OsString::from_vec(text.clone()))),
        }
    }
}

type Outcome = Result<PathBuf, Errno>;

/// The walk as it is.
pub fn as_the_kernel(input: &[u8], random: &mut Random) -> Result<(), String> {
    differs(input, random, <[u8]>::to_vec)
}

/// A walk that forgets `..`: the planted defect.
pub fn without_dots(path: &[u8]) -> Vec<u8> {
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| *name != b"..").collect();
    let path = names.join(&b'/');
    if path.is_empty() { b".".to_vec() } else { path }
}

/// The input's first line is the path, the others are links as `name>text`, folders as `name/` and files as `name`. More
/// are added at random, so that names meet.
pub fn differs(input: &[u8], random: &mut Random, seen_as: impl Fn(&[u8]) -> Vec<u8>) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (path, tree) = built(input, random, folder.path());
    if path.contains(&0) || path.len() > 1000 {
        return Ok(());
    }
    let expected = by_kernel(folder.path(), &path);
    let seen = walk(&seen_as(&path), &tree);
    // The kernel looks at a name's length before it looks for a folder; either way nothing is found.
    if seen == expected || (seen.is_err() && expected == Err(Errno::ENAMETOOLONG)) {
        return Ok(());
    }
    Err(format!(
        "{}: {seen:?}, by the kernel {expected:?}, in {tree:?}",
        path.escape_ascii()
    ))
}

fn built(input: &[u8], random: &mut Random, root: &Path) -> (Vec<u8>, Tree) {
    const NAMES: [&str; 5] = ["a", "b", "a/a", "a/b", "b/a"];
    const TEXTS: [&str; 8] = ["/", "..", "a", "../b", "/a/b", "b/../a", "./a/", "/b/a/.."];
    let mut lines = input.split(|byte| *byte == b'\n');
    let path = lines.next().unwrap_or_default().to_vec();
    let mut tree = Tree::default();
    lines.take(12).for_each(|line| add(&mut tree, root, line));
    for _ in 0..random.below(6) {
        let name = random.one_of(&NAMES);
        let line = match random.below(4) {
            0 => format!("{name}/"),
            1 => (*name).to_owned(),
            _ => format!("{name}>{}", random.one_of(&TEXTS)),
        };
        add(&mut tree, root, line.as_bytes());
    }
    (path, tree)
}

/// Adds one thing below a folder of the tree; what cannot be made is left out on both sides.
fn add(tree: &mut Tree, root: &Path, line: &[u8]) {
    let (name, text) = match line.iter().position(|byte| *byte == b'>') {
        Some(at) => (&line[..at], Some(&line[at + 1..])),
        None => (line, None),
    };
    let (name, is_folder) = name.strip_suffix(b"/").map_or((name, false), |name| (name, true));
    let names: Vec<&[u8]> = name.split(|byte| *byte == b'/').collect();
    let plain = |name: &&[u8]| !name.is_empty() && !matches!(**name, [b'.'] | [b'.', b'.']) && !name.contains(&0);
    let at = PathBuf::from(OsStr::from_bytes(name));
    let above = at.parent().unwrap_or(Path::new(""));
    let is_free = above == Path::new("") || matches!(tree.0.get(above), Some(Entry::Folder));
    if !names.iter().all(plain) || !is_free || tree.0.contains_key(&at) {
        return;
    }
    let there = root.join(&at);
    let made = match (text, is_folder) {
        (Some(text), _) => {
            std::os::unix::fs::symlink(OsStr::from_bytes(text), &there).map(|()| Entry::Link(text.to_vec()))
        }
        (None, true) => std::fs::create_dir(&there).map(|()| Entry::Folder),
        (None, false) => std::fs::write(&there, "").map(|()| Entry::Leaf),
    };
    if let Ok(entry) = made {
        tree.0.insert(at, entry);
    }
}

/// Where the kernel ends, with the folder as the root (openat2(2)).
fn by_kernel(root: &Path, path: &[u8]) -> Outcome {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let folder = nix::fcntl::open(root, flags | OFlag::O_DIRECTORY, nix::sys::stat::Mode::empty())?;
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_IN_ROOT);
    let found = openat2(&folder, OsStr::from_bytes(path), how)?;
    let at = std::fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).map_err(|_| Errno::EIO)?;
    let root = root.canonicalize().map_err(|_| Errno::EIO)?;
    at.strip_prefix(root).map(Path::to_owned).map_err(|_| Errno::EXDEV)
}
