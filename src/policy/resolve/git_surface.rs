//! What git on the host runs, or takes its programs from: everything of it that lies in a writable grant is protected.
//! Attributes only choose among drivers that a configuration defines, so the configuration files are the wall.

use super::git::{GitFolder, is_git};
use super::git_config::{Configuration, expand, parse};
use super::protect::Protection;
use crate::base::AbsPath;
use crate::policy::frozen::{Appearing, Origin, Topic};
use crate::policy::host::HostKind;
use crate::policy::profile::{Guarded, Profile};
use crate::policy::walk::walk;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Names in one folder that are looked at.
const MOST_NAMES: usize = 256;
/// Git folders of submodules that are looked at: each costs some mounts.
const MOST_MODULES: usize = 64;
/// How deep below `modules` a submodule's name may lie: names may have slashes.
const DEEPEST: usize = 6;
/// A `.gitmodules` file.
const MODULES_FILE: u64 = 1 << 20;

impl Protection<'_> {
    pub(super) fn git(&mut self, profile: &Profile, root: &AbsPath, git: &GitFolder) {
        match git {
            GitFolder::Own(folder) => self.repository(profile, folder, root),
            GitFolder::Inside(folder) => {
                self.entry(root, Path::new(".git"), &pointer(), Appearing::Refused);
                self.folder(profile, folder);
                self.repository(profile, folder, root);
            }
            GitFolder::Bare(folder) => {
                self.folder(profile, folder);
                self.repository(profile, folder, root);
            }
            GitFolder::Linked { folder, common } => {
                self.entry(root, Path::new(".git"), &pointer(), Appearing::Refused);
                self.pointers(folder);
                let configs = [configs(common), configs(folder)].concat();
                self.configured(profile, &configs, root);
            }
            GitFolder::Absent | GitFolder::Foreign(_) => return,
        }
        self.submodules(profile, root);
    }

    /// What stands under `.git/` in the profile stands in this git folder, which has another name.
    fn folder(&mut self, profile: &Profile, folder: &AbsPath) {
        for Guarded { entry, appearing } in &profile.protected {
            if let Ok(below) = Path::new(&entry.text).strip_prefix(".git") {
                self.entry(folder, below, &entry.origin, *appearing);
            }
        }
    }

    /// A git folder whose own entries are protected: what its configuration names, its linked worktrees and submodules.
    fn repository(&mut self, profile: &Profile, folder: &AbsPath, worktree: &AbsPath) {
        self.configured(profile, &configs(folder), worktree);
        self.hooks(folder);
        for checkout in self.folders(folder, "worktrees") {
            self.pointers(&checkout);
        }
        let mut found = Vec::new();
        self.modules(folder, 0, &mut found);
        self.tell_cut(folder, "submodules", found.len(), MOST_MODULES);
        for module in found.into_iter().take(MOST_MODULES) {
            self.folder(profile, &module);
            let settings = Configuration::read(&configs(&module), None, self.host);
            let written = settings.values("core.worktree").last();
            let checkout = written.and_then(|value| expand(value, module.as_path(), None));
            let checkout = checkout.and_then(|path| walk(&path, self.host).ok());
            let checkout = checkout.map_or_else(|| worktree.clone(), |walked| walked.path);
            self.configured(profile, &configs(&module), &checkout);
            self.hooks(&module);
        }
    }

    /// Included files, hooks folders and programs of these configuration files.
    fn configured(&mut self, profile: &Profile, configs: &[AbsPath], worktree: &AbsPath) {
        let home = self.host.home();
        let read = Configuration::read(configs, home.as_deref(), self.host);
        if read.is_cut {
            let text = "not protected: configuration files beyond the deepest or the most that are followed";
            self.draft.note(Topic::Warning, worktree, text, &pointer());
        }
        let origin = Origin::built_in("git include.path", "git on the host takes its configuration from it");
        for path in &read.included {
            self.entry(&AbsPath::root(), path, &origin, Appearing::Refused);
        }
        let origin = Origin::built_in("git core.hooksPath", "git on the host runs these programs");
        for value in read.values("core.hooksPath") {
            if let Some(hooks) = expand(value, worktree.as_path(), home.as_deref()) {
                self.entry(worktree, &hooks, &origin, Appearing::Refused);
                self.linked_hooks(&hooks);
            }
        }
        for program in &profile.git_programs {
            for value in read.values(&program.text) {
                for (path, first) in programs(value, worktree.as_path(), home.as_deref()) {
                    let kind = walk(&path, self.host).ok().and_then(|walked| walked.kind);
                    // An absent word that is no program's path is an argument.
                    if kind == Some(HostKind::File) || (kind.is_none() && first == Word::Program) {
                        self.entry(worktree, &path, &program.origin, Appearing::Refused);
                    }
                }
            }
        }
    }

    /// Hooks that are links: what they lead to runs.
    fn hooks(&mut self, folder: &AbsPath) {
        self.linked_hooks(&folder.as_path().join("hooks"));
    }

    fn linked_hooks(&mut self, hooks: &Path) {
        let origin = Origin::built_in("git hooks", "a hook that git on the host runs leads here");
        let Ok(Some(HostKind::Dir)) = walk(hooks, self.host).map(|walked| walked.kind) else {
            return;
        };
        let Ok(walked) = walk(hooks, self.host) else { return };
        for name in self.names(&walked.path) {
            let is_link = walked
                .path
                .join(&name)
                .is_ok_and(|at| matches!(self.host.kind(&at), Ok(HostKind::Link)));
            if is_link {
                self.entry(&walked.path, Path::new(&name), &origin, Appearing::Refused);
            }
        }
    }

    /// Where the git folder of a linked worktree points. New ones may be made: `git worktree add` is ordinary work.
    fn pointers(&mut self, folder: &AbsPath) {
        for name in ["commondir", "gitdir", "config.worktree"] {
            self.entry(folder, Path::new(name), &pointer(), Appearing::Refused);
        }
    }

    /// The pointers in the checkouts of submodules. A submodule that is not checked out yet may be.
    fn submodules(&mut self, profile: &Profile, root: &AbsPath) {
        let file = root.join(".gitmodules").ok();
        let text = file.and_then(|file| self.host.read_small(&file, MODULES_FILE).ok());
        let settings = parse(&text.unwrap_or_default());
        let paths = settings.iter().filter(|setting| {
            setting.key.starts_with("submodule.") && setting.key.ends_with(".path") && !setting.value.is_empty()
        });
        let paths: Vec<_> = paths.collect();
        self.tell_cut(root, "checkouts of submodules", paths.len(), MOST_MODULES);
        for path in paths.into_iter().take(MOST_MODULES) {
            let at = root.as_path().join(OsStr::from_bytes(&path.value)).join(".git");
            match walk(&at, self.host) {
                // Made by an old git: the git folder itself.
                Ok(walked) if walked.kind == Some(HostKind::Dir) && walked.path.is_within(root) => {
                    self.folder(profile, &walked.path);
                    self.hooks(&walked.path);
                    let checkout = walked.path.parent().unwrap_or_else(|| root.clone());
                    self.configured(profile, &configs(&walked.path), &checkout);
                }
                _ => self.entry(root, &at, &pointer(), Appearing::Reported),
            }
        }
    }

    /// The git folders of submodules below `folder`, a few more than are looked at at most.
    fn modules(&mut self, folder: &AbsPath, depth: usize, found: &mut Vec<AbsPath>) {
        let mut next: Vec<(AbsPath, usize)> = self
            .folders(folder, "modules")
            .into_iter()
            .map(|module| (module, depth))
            .collect();
        while let Some((module, depth)) = next.pop() {
            if found.len() > MOST_MODULES || depth > DEEPEST {
                continue;
            }
            let below = if is_git(&module, self.host) {
                found.push(module.clone());
                self.folders(&module, "modules")
            } else {
                self.folders(&module, "")
            };
            next.extend(below.into_iter().map(|below| (below, depth + 1)));
        }
    }

    /// The folders in `folder/name`, as many as are looked at.
    fn folders(&mut self, folder: &AbsPath, name: &str) -> Vec<AbsPath> {
        let at = if name.is_empty() {
            Ok(folder.clone())
        } else {
            folder.join(name)
        };
        let Ok(at) = at else { return Vec::new() };
        let host = self.host;
        let is_folder = |path: &AbsPath| matches!(host.kind(path), Ok(HostKind::Dir));
        if !is_folder(&at) {
            return Vec::new();
        }
        let names = self.names(&at).into_iter();
        names.filter_map(|name| at.join(name).ok()).filter(is_folder).collect()
    }

    /// The names in a folder, not more than are looked at.
    fn names(&mut self, folder: &AbsPath) -> Vec<OsString> {
        let mut names = self.host.list(folder).unwrap_or_default();
        self.tell_cut(folder, "names in it", names.len(), MOST_NAMES);
        names.truncate(MOST_NAMES);
        names
    }

    /// That not all of something is protected is no secret.
    fn tell_cut(&mut self, place: &AbsPath, what: &str, found: usize, most: usize) {
        if found > most {
            let text = format!("not protected: {what} beyond the first {most}");
            self.draft.note(Topic::Warning, place, &text, &pointer());
        }
    }
}

/// What a word of a command may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Program,
    Argument,
}

/// The paths that a command in a configuration may mean: its words as a shell would see them, roughly.
fn programs(value: &[u8], worktree: &Path, home: Option<&Path>) -> Vec<(PathBuf, Word)> {
    let value = value.strip_prefix(b"!").unwrap_or(value);
    let words = value.split(|b| b.is_ascii_whitespace() || matches!(b, b'\'' | b'"' | b';' | b'&' | b'|'));
    let words = words.filter(|word| !word.is_empty() && !word.starts_with(b"-"));
    let paths = words.enumerate().filter_map(|(index, word)| {
        let is_program = index == 0 && word.contains(&b'/') && !word.iter().any(|b| matches!(b, b'$' | b'%' | b'='));
        let word_is = if is_program { Word::Program } else { Word::Argument };
        Some((expand(word, worktree, home)?, word_is))
    });
    paths.take(MOST_NAMES).collect()
}

fn configs(folder: &AbsPath) -> Vec<AbsPath> {
    let names = ["config", "config.worktree"];
    names.iter().filter_map(|name| folder.join(name).ok()).collect()
}

fn pointer() -> Origin {
    Origin::built_in(
        "git",
        "git on the host takes its configuration and hooks from where it points",
    )
}
