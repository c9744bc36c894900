//! `/proc/PID/mountinfo`.

use super::status::decimal;
use super::{Entry, ReadError, Reading};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// One mount, as one process sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub id: u64,
    /// Device number of its file system, as in `st_dev`.
    pub dev: u64,
    /// Where it stands, unescaped.
    pub target: PathBuf,
    /// This mount's own options: `ro`, `nosuid`, …
    pub options: Vec<Vec<u8>>,
    /// The file system's type, for example `tmpfs`.
    pub kind: Vec<u8>,
    /// The file system's own options.
    pub super_options: Vec<Vec<u8>>,
}

impl Mount {
    /// Whether this mount has the option.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|o| o == option.as_bytes())
    }
    /// Whether nothing can be written through it.
    pub fn is_read_only(&self) -> bool {
        self.has("ro") || self.super_options.iter().any(|o| o == b"ro")
    }
}

/// Where file systems are mounted in our own view, in the kernel's order.
pub fn mount_points() -> Reading<Vec<PathBuf>> {
    let mounts = parse(&Entry::own()?.read("mountinfo")?)?;
    Ok(mounts.into_iter().map(|mount| mount.target).collect())
}

/// What is mounted in the view of another process, in the kernel's order.
pub fn mounts_of(pid: i32) -> Reading<Vec<Mount>> {
    let pid = crate::base::Pid::new(pid).ok_or(ReadError::Malformed("pid"))?;
    parse(&Entry::open(pid)?.read("mountinfo")?)
}

/// Reads the file's bytes; a line that is not understood is an error, since it might be the one that matters.
pub fn parse(bytes: &[u8]) -> Reading<Vec<Mount>> {
    let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| parse_line(line).ok_or(ReadError::Malformed("mountinfo")))
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|b| *b == b' ');
    let id = decimal(words.next()?)?;
    let _parent = words.next()?;
    let dev = device(words.next()?)?;
    let _root = words.next()?;
    let target = PathBuf::from(OsString::from_vec(unescape(words.next()?)));
    let options = list(words.next()?);
    // Optional fields (propagation) up to a lone dash.
    words.by_ref().find(|w| *w == b"-")?;
    let kind = words.next()?.to_vec();
    let _source = words.next()?;
    let super_options = list(words.next()?);
    Some(Mount {
        id,
        dev,
        target,
        options,
        kind,
        super_options,
    })
}

fn device(text: &[u8]) -> Option<u64> {
    let colon = text.iter().position(|b| *b == b':')?;
    Some(nix::sys::stat::makedev(
        decimal(&text[..colon])?,
        decimal(&text[colon + 1..])?,
    ))
}

fn list(text: &[u8]) -> Vec<Vec<u8>> {
    text.split(|b| *b == b',').map(<[u8]>::to_vec).collect()
}

/// Undoes the kernel's `\ooo` for space, tab, newline, backslash and hash.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|d| *first == b'\\' && d.iter().all(|b| (b'0'..=b'7').contains(b)));
        let value = octal.map(|d| d.iter().fold(0_u32, |sum, b| sum * 8 + u32::from(b - b'0')));
        if let Some(byte) = value.and_then(|v| u8::try_from(v).ok()) {
            out.push(byte);
            rest = &tail[3..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}
