//! `/proc/PID/status` and `/proc/PID/stat`.

use super::{ReadError, Reading};

/// What the checks need of one process or thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The letter after `State:`.
    pub state: u8,
    pub parent: i32,
    /// The pid in each nested namespace, the reader's first.
    pub inner_pids: Vec<i32>,
    /// The session's leader as the innermost namespace numbers it; 0 if it is outside.
    pub inner_session: i32,
    pub threads: u32,
    /// Whether it still has an address space. A task that is ending gives it up first and runs no program afterwards;
    /// from then on the kernel shows its files as root's.
    pub has_memory: bool,
    /// Real, effective, saved and file-system id, as the reader numbers them.
    pub uids: [u32; 4],
    pub gids: [u32; 4],
    pub no_new_privs: u32,
    pub seccomp_mode: u32,
    pub seccomp_filters: u32,
    /// Room in the table of descriptors: every number is below it.
    pub table: i32,
    /// Inheritable, permitted, effective, bounding, ambient.
    pub capabilities: [u64; 5],
}

/// The names of `Status::capabilities`, in its order.
pub const CAPABILITY_SETS: [&str; 5] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];

impl Status {
    /// Reads the file's bytes. A key that is missing, doubled or not understood is an error, never a default. The
    /// kernel escapes newlines in `Name:`, so a process cannot write a line of its own.
    pub fn parse(bytes: &[u8]) -> Reading<Status> {
        let mut fields = Fields::default();
        for line in bytes.split(|b| *b == b'\n') {
            let Some(colon) = line.iter().position(|b| *b == b':') else {
                continue;
            };
            fields.take(&line[..colon], &line[colon + 1..])?;
        }
        fields.has_memory = bytes.windows(8).any(|w| w == b"\nVmSize:");
        fields.finish().ok_or(ReadError::Malformed("status"))
    }

    /// Whether this task will run nothing any more: ending, a zombie or past that. A dead first thread may still have
    /// living siblings.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') || !self.has_memory
    }
}

#[derive(Default)]
struct Fields<'a> {
    has_memory: bool,
    values: [Option<&'a [u8]>; KEYS.len()],
}

const KEYS: [&[u8]; 16] = [
    b"State",
    b"PPid",
    b"NSpid",
    b"NSsid",
    b"Threads",
    b"Uid",
    b"Gid",
    b"NoNewPrivs",
    b"Seccomp",
    b"Seccomp_filters",
    b"FDSize",
    b"CapInh",
    b"CapPrm",
    b"CapEff",
    b"CapBnd",
    b"CapAmb",
];

impl<'a> Fields<'a> {
    fn take(&mut self, key: &[u8], value: &'a [u8]) -> Reading<()> {
        if let Some(index) = KEYS.iter().position(|k| *k == key) {
            if self.values[index].replace(value.trim_ascii()).is_some() {
                return Err(ReadError::Malformed("status"));
            }
        }
        Ok(())
    }

    fn finish(self) -> Option<Status> {
        let [
            state,
            parent,
            pids,
            session,
            threads,
            uids,
            gids,
            privs,
            mode,
            filters,
            table,
            caps @ ..,
        ] = self.values;
        let mut capabilities = [0; 5];
        for (set, value) in capabilities.iter_mut().zip(caps) {
            *set = u64::from_str_radix(std::str::from_utf8(value?).ok()?, 16).ok()?;
        }
        Some(Status {
            state: *state?.first()?,
            parent: decimal(parent?)?,
            inner_pids: words(pids?)?,
            inner_session: *words(session?)?.last()?,
            threads: decimal(threads?)?,
            has_memory: self.has_memory,
            uids: words(uids?)?.try_into().ok()?,
            gids: words(gids?)?.try_into().ok()?,
            no_new_privs: decimal(privs?)?,
            seccomp_mode: decimal(mode?)?,
            seccomp_filters: decimal(filters?)?,
            table: decimal(table?)?,
            capabilities,
        })
    }
}

/// A decimal number that is all of the text.
pub fn decimal<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn words<T: std::str::FromStr>(text: &[u8]) -> Option<Vec<T>> {
    text.split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty())
        .map(decimal)
        .collect()
}

/// The start time in clock ticks after boot, from the bytes of `stat`. The process's name stands in it unescaped, so
/// everything up to the last parenthesis is passed over.
pub fn start_ticks(stat: &[u8]) -> Reading<u64> {
    const AFTER_NAME: usize = 19;
    after_name(stat, AFTER_NAME)
}

/// The parent's number, from the bytes of `stat`.
pub fn parent(stat: &[u8]) -> Reading<i32> {
    const AFTER_NAME: usize = 1;
    after_name(stat, AFTER_NAME)
}

fn after_name<T: std::str::FromStr>(stat: &[u8], field: usize) -> Reading<T> {
    let end = stat
        .iter()
        .rposition(|b| *b == b')')
        .ok_or(ReadError::Malformed("stat"))?;
    stat[end + 1..]
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty())
        .nth(field)
        .and_then(decimal)
        .ok_or(ReadError::Malformed("stat"))
}
