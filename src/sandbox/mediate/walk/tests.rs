use super::{Jump, Step, View, walk};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// Files as a table: an absolute path to what stands there. A place is its own path.
struct Table(BTreeMap<&'static str, Entry>);

enum Entry {
    Folder,
    Leaf,
    Link(&'static str),
    Jump(&'static str),
}

impl View for Table {
    type Place = String;
    fn root(&self) -> Result<String, Errno> {
        Ok(String::new())
    }
    fn workdir(&self) -> Result<String, Errno> {
        Ok("/yard".into())
    }
    fn above(&self, folder: &String) -> Result<String, Errno> {
        Ok(folder
            .rsplit_once('/')
            .map(|(above, _)| above.to_owned())
            .unwrap_or_default())
    }
    fn step(&self, folder: &String, name: &OsStr) -> Result<Step<String>, Errno> {
        let at = format!("{folder}/{}", name.to_str().ok_or(Errno::EILSEQ)?);
        match self.0.get(at.as_str()).ok_or(Errno::ENOENT)? {
            Entry::Folder => Ok(Step::Folder(at)),
            Entry::Leaf => Ok(Step::Leaf(at)),
            Entry::Link(text) => Ok(Step::Link(text.into())),
            Entry::Jump(to) => Ok(Step::Jump((*to).to_owned(), Jump::Folder)),
        }
    }
}

fn files() -> Table {
    Table(BTreeMap::from([
        ("/yard", Entry::Folder),
        ("/yard/s", Entry::Leaf),
        ("/yard/deep", Entry::Folder),
        ("/yard/deep/s", Entry::Leaf),
        ("/yard/up", Entry::Link("../run/s")),
        ("/yard/over", Entry::Link("/run/s")),
        ("/yard/round", Entry::Link("round")),
        ("/yard/empty", Entry::Link("")),
        ("/run", Entry::Folder),
        ("/run/s", Entry::Leaf),
        ("/proc", Entry::Folder),
        ("/proc/self", Entry::Link("7")),
        ("/proc/7", Entry::Folder),
        ("/proc/7/cwd", Entry::Jump("/yard")),
        ("/proc/7/root", Entry::Jump("")),
    ]))
}

#[test]
fn every_kind_of_name_leads_where_the_caller_means() {
    for (path, place) in [
        ("/yard/s", "/yard/s"),
        ("s", "/yard/s"),
        ("./deep/../s", "/yard/s"),
        ("//yard///deep/s", "/yard/deep/s"),
        ("up", "/run/s"),
        ("/yard/over", "/run/s"),
        ("../../../run/s", "/run/s"),
        ("/proc/self/cwd/s", "/yard/s"),
        ("/proc/self/cwd/../run/s", "/run/s"),
        ("/proc/self/root/run/s", "/run/s"),
        ("/yard/deep/", "/yard/deep"),
        ("/", ""),
    ] {
        assert_eq!(walk(path.as_bytes(), &files()).as_deref(), Ok(place), "{path}");
    }
}

#[test]
fn what_leads_nowhere_has_the_kernels_error() {
    for (path, errno) in [
        ("", Errno::ENOENT),
        ("/none", Errno::ENOENT),
        ("/yard/empty", Errno::ENOENT),
        ("/yard/s/more", Errno::ENOTDIR),
        ("/yard/s/", Errno::ENOTDIR),
        ("/yard/s/..", Errno::ENOTDIR),
        ("/yard/over/.", Errno::ENOTDIR),
        ("round", Errno::ELOOP),
    ] {
        assert_eq!(walk(path.as_bytes(), &files()), Err(errno), "{path:?}");
    }
}
