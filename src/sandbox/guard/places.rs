//! What is guarded, and what is to be done about what stands there. Pure.

use crate::base::AbsPath;
use crate::policy::{Access, Appearing, Bind, FileKind, Policy, Protected};
use std::ffi::{OsStr, OsString};
use std::path::{Component, PathBuf};

/// One guarded path, as names below a folder of the host that is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path inside.
    pub path: AbsPath,
    /// The granted folder on the host.
    pub base: AbsPath,
    /// From there to the place; never empty.
    pub names: Vec<OsString>,
    pub reason: String,
    pub wanted: Wanted,
}

/// What should stand at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Nothing,
    /// A link that leads where it led at the start.
    Link(PathBuf),
    /// The protected file itself, which only the host can replace: that takes its cover away.
    Covered,
    /// The lock that a program makes to replace the protected file whose name it has.
    NoLock,
}

/// What stands at a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Nothing,
    Folder,
    Link(PathBuf),
    Other,
}

/// What is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Leave,
    /// Watch the folder and look at the next name in it.
    Descend,
    /// Move it aside.
    Refuse,
    /// Move it aside, and make the link again.
    Replace,
    /// Make the link again.
    Restore,
}

/// The one decision about a name on the way to a place.
pub fn decide(wanted: &Wanted, is_last: bool, seen: &Seen) -> Deed {
    match (wanted, is_last, seen) {
        (Wanted::NoLock | Wanted::Covered, true, _) | (_, false, Seen::Nothing | Seen::Other) => Deed::Leave,
        (_, false, Seen::Folder) => Deed::Descend,
        // No link stood on the way: whoever follows this one finds what it leads to.
        (Wanted::Nothing, false, Seen::Link(_)) => Deed::Refuse,
        (_, false, Seen::Link(_)) => Deed::Leave,
        (Wanted::Nothing, true, Seen::Nothing) => Deed::Leave,
        (Wanted::Nothing, true, _) => Deed::Refuse,
        (Wanted::Link(_), true, Seen::Nothing) => Deed::Restore,
        (Wanted::Link(to), true, Seen::Link(found)) if found == to => Deed::Leave,
        (Wanted::Link(_), true, _) => Deed::Replace,
    }
}

/// Everything of a policy that no mount can hold, and the locks of what a mount holds. `link` reads a link of the host.
pub fn places(policy: &Policy, link: impl Fn(&AbsPath) -> Option<PathBuf>) -> Vec<Place> {
    let wanted = |one: &Protected| match one.kind {
        None if one.appearing == Appearing::Refused => vec![(Wanted::Nothing, Some(one.path.clone()))],
        Some(FileKind::Link) => {
            let to = source(policy, &one.path).and_then(|path| link(&path));
            to.map(|to| (Wanted::Link(to), Some(one.path.clone())))
                .into_iter()
                .collect()
        }
        Some(FileKind::File) => vec![
            (Wanted::Covered, Some(one.path.clone())),
            (Wanted::NoLock, beside(&one.path, ".lock")),
        ],
        _ => Vec::new(),
    };
    let place = |one: &Protected, wanted: Wanted, path: &AbsPath| {
        let bind = around(policy, path)?;
        let names = path.as_path().strip_prefix(bind.target.as_path()).ok()?.components();
        let names: Vec<OsString> = names.filter_map(name).collect();
        (!names.is_empty()).then(|| Place {
            path: one.path.clone(),
            base: bind.source.clone(),
            names,
            reason: one.reason.clone(),
            wanted,
        })
    };
    let all = policy
        .protected
        .iter()
        .flat_map(|one| wanted(one).into_iter().map(move |(wanted, path)| (one, wanted, path)));
    all.filter_map(|(one, wanted, path)| place(one, wanted, &path?))
        .collect()
}

/// The innermost granted folder that holds a path, if it is writable.
fn around<'a>(policy: &'a Policy, path: &AbsPath) -> Option<&'a Bind> {
    let holds = policy
        .binds
        .iter()
        .filter(|bind| bind.kind == FileKind::Dir && path.is_within(&bind.target));
    let innermost = holds.max_by_key(|bind| bind.target.as_path().components().count());
    innermost.filter(|bind| bind.access == Access::ReadWrite)
}

fn source(policy: &Policy, path: &AbsPath) -> Option<AbsPath> {
    let bind = around(policy, path)?;
    let below = path.as_path().strip_prefix(bind.target.as_path()).ok()?;
    AbsPath::new(bind.source.as_path().join(below)).ok()
}

fn beside(path: &AbsPath, ending: &str) -> Option<AbsPath> {
    let mut name = path.as_path().file_name()?.to_owned();
    name.push(ending);
    path.parent()?.join(name).ok()
}

fn name(component: Component<'_>) -> Option<OsString> {
    match component {
        Component::Normal(name) => Some(name.to_owned()),
        _ => None,
    }
}

/// The name of what was refused: no tool reads it. The first has no number.
pub fn aside(name: &OsStr, number: usize) -> OsString {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    const LONGEST: usize = 255;
    let ending = match number {
        0 | 1 => ".refused-by-pinfold".to_owned(),
        number => format!(".refused-by-pinfold-{number}"),
    };
    let mut bytes = name.as_bytes().to_vec();
    bytes.truncate(LONGEST.saturating_sub(ending.len()));
    bytes.extend_from_slice(ending.as_bytes());
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_decision_for_everything_that_can_stand_there() {
        let link = || Wanted::Link("there".into());
        let to = |to: &str| Seen::Link(to.into());
        for (wanted, is_last, seen, deed) in [
            (Wanted::Nothing, true, Seen::Nothing, Deed::Leave),
            (Wanted::Nothing, true, Seen::Other, Deed::Refuse),
            (Wanted::Nothing, true, Seen::Folder, Deed::Refuse),
            (Wanted::Nothing, true, to("x"), Deed::Refuse),
            (Wanted::Nothing, false, Seen::Nothing, Deed::Leave),
            (Wanted::Nothing, false, Seen::Folder, Deed::Descend),
            (Wanted::Nothing, false, to("x"), Deed::Refuse),
            (Wanted::Nothing, false, Seen::Other, Deed::Leave),
            (link(), true, to("there"), Deed::Leave),
            (link(), true, to("elsewhere"), Deed::Replace),
            (link(), true, Seen::Folder, Deed::Replace),
            (link(), true, Seen::Other, Deed::Replace),
            (link(), true, Seen::Nothing, Deed::Restore),
            (link(), false, Seen::Folder, Deed::Descend),
            (link(), false, to("x"), Deed::Leave),
            (Wanted::NoLock, true, Seen::Other, Deed::Leave),
            (Wanted::NoLock, false, Seen::Folder, Deed::Descend),
            (Wanted::Covered, true, Seen::Nothing, Deed::Leave),
            (Wanted::Covered, true, Seen::Other, Deed::Leave),
        ] {
            assert_eq!(decide(&wanted, is_last, &seen), deed, "{wanted:?} {is_last} {seen:?}");
        }
    }

    #[test]
    fn names_what_was_refused_so_that_no_tool_reads_it() {
        assert_eq!(aside(OsStr::new(".envrc"), 1), ".envrc.refused-by-pinfold");
        assert_eq!(aside(OsStr::new(".envrc"), 2), ".envrc.refused-by-pinfold-2");
        assert_eq!(aside(OsStr::new(&"x".repeat(255)), 12).len(), 255);
    }
}
