//! What git's own files say about a workspace, read without ever running git: its config could run programs.

use crate::base::AbsPath;
use crate::policy::host::{Host, HostKind};
use crate::policy::walk::walk;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Pointer files hold one path.
const POINTER: u64 = 64 << 10;
/// Far more than a git config holds.
const CONFIG: u64 = 1 << 20;

/// The git folder of a workspace root.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GitFolder {
    Absent,
    /// `.git` is a folder in the root.
    Own(AbsPath),
    /// `.git` is a file that leads to a git folder inside the root.
    Inside(AbsPath),
    /// The root is a linked worktree, and its git folder points back at it.
    Linked {
        folder: AbsPath,
        common: AbsPath,
    },
    /// `.git` leads somewhere that does not point back: nothing is granted for it.
    Foreign(&'static str),
}

/// Looks at `root/.git`. A file or link in it widens nothing unless the other side, which the workspace cannot write,
/// points back.
pub(super) fn inspect(root: &AbsPath, host: &dyn Host) -> GitFolder {
    let Ok(dot_git) = root.join(".git") else {
        return GitFolder::Absent;
    };
    match host.kind(&dot_git) {
        Ok(HostKind::Dir) => GitFolder::Own(dot_git),
        Ok(HostKind::File) => linked(root, &dot_git, host),
        Ok(HostKind::Link) => GitFolder::Foreign("`.git` is a link: what it leads to is not granted"),
        Ok(_) => GitFolder::Foreign("`.git` is neither a folder nor a file"),
        Err(_) => GitFolder::Absent,
    }
}

fn linked(root: &AbsPath, dot_git: &AbsPath, host: &dyn Host) -> GitFolder {
    const FOREIGN: GitFolder = GitFolder::Foreign(
        "`.git` is a file whose target does not point back at this workspace: git does not work inside",
    );
    let Some(folder) = pointer(dot_git, root, b"gitdir: ", host) else {
        return FOREIGN;
    };
    if folder.is_within(root) {
        return GitFolder::Inside(folder);
    }
    let file = |name: &str| folder.join(name).ok();
    let back = file("gitdir").and_then(|at| pointer(&at, &folder, b"", host));
    let common = file("commondir").and_then(|at| pointer(&at, &folder, b"", host));
    let place = folder.parent().and_then(|worktrees| {
        let named = worktrees.as_path().file_name() == Some(OsStr::new("worktrees"));
        worktrees.parent().filter(|_| named)
    });
    let is_git = |common: &AbsPath| {
        let has = |name: &str, kind| {
            common
                .join(name)
                .is_ok_and(|at| host.kind(&at).is_ok_and(|found| found == kind))
        };
        has("HEAD", HostKind::File) && has("objects", HostKind::Dir) && has("refs", HostKind::Dir)
    };
    match (back, common, place) {
        (Some(back), Some(common), Some(place)) if back == *dot_git && common == place && is_git(&common) => {
            GitFolder::Linked { folder, common }
        }
        _ => FOREIGN,
    }
}

/// The canonical path that a pointer file holds, relative ones seen from `base`.
fn pointer(file: &AbsPath, base: &AbsPath, prefix: &[u8], host: &dyn Host) -> Option<AbsPath> {
    let bytes = host.read_small(file, POINTER).ok()?;
    let text = bytes.strip_prefix(prefix)?;
    let end = text
        .iter()
        .rposition(|b| !matches!(b, b'\n' | b'\r'))
        .map_or(0, |last| last + 1);
    let written = text.get(..end).filter(|text| !text.is_empty())?;
    let walked = walk(&base.as_path().join(OsStr::from_bytes(written)), host).ok()?;
    walked.kind.map(|_| walked.path)
}

/// `core.hooksPath` in these config files, the last one that sets it; a relative one is seen from `root`.
pub(super) fn hooks_path(configs: &[AbsPath], root: &AbsPath, home: Option<&Path>, host: &dyn Host) -> Option<PathBuf> {
    let values = configs
        .iter()
        .filter_map(|config| host.read_small(config, CONFIG).ok())
        .filter_map(|text| parse_hooks_path(&text));
    let value = values.last().filter(|value| !value.is_empty())?;
    match value.strip_prefix(b"~/") {
        Some(below) => Some(home?.join(OsStr::from_bytes(below))),
        None => Some(root.as_path().join(OsStr::from_bytes(&value))),
    }
}

/// The last `hooksPath` of the `[core]` section of a git config file.
fn parse_hooks_path(text: &[u8]) -> Option<Vec<u8>> {
    let mut in_core = false;
    let mut found = None;
    // A backslash at the end of a line continues it.
    let joined = text
        .split(|b| *b == b'\n')
        .fold(Vec::<Vec<u8>>::new(), |mut lines, line| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match lines.last_mut() {
                Some(last) if last.last() == Some(&b'\\') => {
                    last.pop();
                    last.extend_from_slice(line);
                }
                _ => lines.push(line.to_vec()),
            }
            lines
        });
    for line in &joined {
        let mut line = line.trim_ascii();
        if let Some(header) = line.strip_prefix(b"[") {
            let end = header.iter().position(|b| *b == b']').unwrap_or(header.len());
            in_core = header[..end].trim_ascii().eq_ignore_ascii_case(b"core");
            // A key may stand on the header's own line.
            line = header.get(end + 1..).unwrap_or_default().trim_ascii();
        }
        let Some(equals) = line.iter().position(|b| *b == b'=') else {
            continue;
        };
        if in_core && line[..equals].trim_ascii().eq_ignore_ascii_case(b"hookspath") {
            found = Some(parse_value(line[equals + 1..].trim_ascii_start()));
        }
    }
    found
}

/// A config value without its quotes, escapes and comment.
fn parse_value(text: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    let mut quoted = false;
    // The length up to the last byte that is not blank outside quotes.
    let mut end = 0;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                quoted = !quoted;
                end = value.len();
                continue;
            }
            b'#' | b';' if !quoted => break,
            b'\\' => value.push(match bytes.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'b') => 8,
                Some(other) => *other,
                None => break,
            }),
            other => value.push(*other),
        }
        if quoted || !byte.is_ascii_whitespace() {
            end = value.len();
        }
    }
    value.truncate(end);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_hooks_path_as_git_does() {
        for (config, expected) in [
            ("[core]\n\thooksPath = .husky\n", Some(".husky")),
            ("[CORE]\nHOOKSPATH=a b # c\n", Some("a b")),
            ("[core] hooksPath = x ; y\n", Some("x")),
            ("[core]\nhooksPath = \"a # b\" \n", Some("a # b")),
            ("[core]\nhooksPath = a\\\\b\\\"c\n", Some("a\\b\"c")),
            (
                "[core]\nhooksPath = one\n[user]\n[core]\nhooksPath = two\n",
                Some("two"),
            ),
            ("[core]\nhooksPath = .hus\\\nky\r\n", Some(".husky")),
            ("[core \"sub\"]\nhooksPath = no\n", None),
            ("[user]\nhooksPath = no\n", None),
            ("# [core]\n# hooksPath = no\n", None),
            ("[core]\nhooksPath\n", None),
        ] {
            let found = parse_hooks_path(config.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{config:?}");
        }
    }
}
