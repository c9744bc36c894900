//! The log of decisions: JSON lines in one file, bounded, never on a terminal, and never in the way of traffic.

use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a file is set aside and a new one begun, in bytes.
const FULL: u64 = 8 * 1024 * 1024;

/// The most bytes of a name that are kept; a DNS name has at most 253.
const LONGEST_NAME: usize = 255;

/// One line. What is not known (yet) is left out.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Line {
    /// Seconds since 1970, to the millisecond; set when it is recorded.
    pub time: f64,
    pub launch: String,
    /// The same in the line of a decision and in the one of its end.
    pub id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `allowed` or `refused`.
    pub verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why an allowed connection was not made, or broke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes to the far side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Bytes to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// How long it lasted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// An open log file.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    full: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    size: u64,
    /// Lines that could not be written since the last one that could.
    lost: u64,
    /// Whether the file ends within a line.
    torn: bool,
}

impl Log {
    /// Opens or makes the file, mode 0600, for appending. Refuses a link and anything but a regular file.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Log> {
        Log::with_size(path.as_ref(), FULL)
    }

    fn with_size(path: &Path, full: u64) -> io::Result<Log> {
        let file = open(path)?;
        let size = file.metadata()?.len();
        Ok(Log {
            path: path.to_owned(),
            full,
            state: Mutex::new(State {
                file,
                size,
                lost: 0,
                torn: false,
            }),
        })
    }

    /// Adds one line. A failure is counted and told by the next line that succeeds; traffic goes on.
    pub fn record(&self, mut line: Line) {
        line.time = now();
        line.name = line.name.map(shortened);
        let Ok(text) = serde_json::to_string(&line) else { return };
        // A panic of another thread in here leaves at worst a torn line.
        let mut state = self.state.lock().unwrap_or_else(|poison| poison.into_inner());
        if state.size >= self.full {
            self.rotate(&mut state);
        }
        if state.size >= self.full {
            state.lost = state.lost.saturating_add(1);
            return;
        }
        state.append(&ascii(&text));
    }

    /// Sets the full file aside as `NAME.1` and begins a new one; on failure the old one stays full.
    fn rotate(&self, state: &mut State) {
        let mut aside = OsString::from(&self.path);
        aside.push(".1");
        if std::fs::rename(&self.path, aside).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
            return;
        }
        if let Ok(file) = open(&self.path) {
            state.size = file.metadata().map_or(0, |m| m.len());
            state.torn = false;
            state.file = file;
        }
    }
}

impl State {
    fn append(&mut self, text: &str) {
        let mut block = String::new();
        if self.torn {
            block.push('\n');
        }
        if self.lost > 0 {
            let _ = writeln!(block, "{{\"time\":{},\"lost\":{}}}", now(), self.lost);
        }
        block.push_str(text);
        block.push('\n');
        // One call, so that lines of two writers do not mix; not repeated, so that a full disk costs one call.
        match self.file.write(block.as_bytes()) {
            Ok(count) if count == block.len() => {
                self.size += count as u64;
                self.torn = false;
                self.lost = 0;
            }
            Ok(count) => {
                self.size += count as u64;
                self.torn = true;
                self.lost = self.lost.saturating_add(1);
            }
            Err(_) => self.lost = self.lost.saturating_add(1),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Not blocking, or opening a FIFO that somebody put here would wait for its reader.
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the log is not a regular file"));
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Whole milliseconds, so that the text has three decimals.
    since.as_secs() as f64 + f64::from(since.subsec_millis()) / 1000.0
}

fn shortened(mut name: String) -> String {
    let end = (0..=LONGEST_NAME.min(name.len()))
        .rev()
        .find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or(0));
    name
}

/// JSON whose strings hold printable ASCII only: it may be shown on a terminal as it is.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, ' '..='~') {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
