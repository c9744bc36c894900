//! git's configuration files, parsed without ever running git.

use crate::base::AbsPath;
use crate::policy::host::Host;
use crate::policy::walk::walk;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Far more than a git config holds.
const CONFIG: u64 = 1 << 20;
/// As deep as git follows includes.
const DEEPEST: usize = 10;
/// Far more files than any repository includes.
const MOST: usize = 64;

/// One setting: `section.subsection.name`, section and name in lower case, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub key: String,
    pub value: Vec<u8>,
}

/// Everything that some configuration files and the files that they include say.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    pub settings: Vec<Setting>,
    /// Files that are included under whatever condition, absent ones too, as written.
    pub included: Vec<PathBuf>,
    /// More files are included than were read.
    pub is_cut: bool,
}

impl Configuration {
    /// Reads these files and what they include; a condition counts as met, since it may be later.
    pub fn read(configs: &[AbsPath], home: Option<&Path>, host: &dyn Host) -> Configuration {
        let mut whole = Configuration::default();
        let mut seen = BTreeSet::new();
        let mut next: Vec<AbsPath> = configs.to_vec();
        for _ in 0..=DEEPEST {
            let mut found = Vec::new();
            for file in std::mem::take(&mut next) {
                if !seen.insert(file.clone()) {
                    continue;
                }
                if seen.len() > MOST {
                    whole.is_cut = true;
                    return whole;
                }
                let Ok(text) = host.read_small(&file, CONFIG) else {
                    continue;
                };
                let settings = parse(&text);
                let base = file.parent().unwrap_or_else(AbsPath::root);
                for path in settings.iter().filter(|setting| is_include(&setting.key)) {
                    if let Some(written) = expand(&path.value, base.as_path(), home) {
                        whole.included.push(written.clone());
                        found.extend(walk(&written, host).ok().map(|walked| walked.path));
                    }
                }
                whole.settings.extend(settings);
            }
            next = found;
        }
        whole.is_cut |= next.iter().any(|file| !seen.contains(file));
        whole
    }

    /// The values of a key, in the order in which git reads them.
    pub fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.settings.iter().filter(move |setting| matches(key, &setting.key));
        named.map(|setting| setting.value.as_slice())
    }
}

/// `include.path` and `includeIf.CONDITION.path`.
fn is_include(key: &str) -> bool {
    key == "include.path" || (key.starts_with("includeif.") && key.ends_with(".path"))
}

/// Whether a key is the one that a pattern means: `*` stands for any subsection, letters count in either case.
fn matches(pattern: &str, key: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    match pattern.split_once(".*") {
        Some((section, name)) => {
            let inner = key.strip_prefix(section).and_then(|rest| rest.strip_suffix(name));
            inner.is_some_and(|inner| inner.len() > 1 && inner.starts_with('.'))
        }
        None => {
            let whole = |text: &str| text.to_ascii_lowercase() == pattern;
            whole(key)
        }
    }
}

/// A path as git understands it: `~/` is the home folder, a relative one is seen from `base`.
pub(super) fn expand(value: &[u8], base: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if value.is_empty() {
        return None;
    }
    match value.strip_prefix(b"~/") {
        Some(below) => Some(home?.join(OsStr::from_bytes(below))),
        None => Some(base.join(OsStr::from_bytes(value))),
    }
}

/// The settings of one file, in its order. What is not understood is left out.
pub(super) fn parse(text: &[u8]) -> Vec<Setting> {
    let mut section = String::new();
    let mut settings = Vec::new();
    for line in joined(text) {
        let mut line = line.trim_ascii();
        if let Some(header) = line.strip_prefix(b"[") {
            let (name, rest) = parse_header(header);
            section = name;
            // A key may stand on the header's own line.
            line = rest.trim_ascii();
        }
        if line.is_empty() || matches!(line.first(), Some(b'#' | b';')) {
            continue;
        }
        let (name, value) = match line.iter().position(|b| *b == b'=') {
            Some(equals) => (&line[..equals], parse_value(line[equals + 1..].trim_ascii_start())),
            // A name alone means yes.
            None => (line, b"true".to_vec()),
        };
        let name = String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase();
        settings.push(Setting {
            key: format!("{section}.{name}"),
            value,
        });
    }
    settings
}

/// Lines, those joined that end in a backslash.
fn joined(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for line in text.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match lines.last_mut() {
            Some(last) if last.last() == Some(&b'\\') => {
                last.pop();
                last.extend_from_slice(line);
            }
            _ => lines.push(line.to_vec()),
        }
    }
    lines
}

/// `section "subsection"]` and what stands behind it.
fn parse_header(header: &[u8]) -> (String, &[u8]) {
    let mut quoted = false;
    let mut escaped = false;
    let end = header.iter().position(|byte| {
        let ends = *byte == b']' && !quoted;
        if *byte == b'"' && !escaped {
            quoted = !quoted;
        }
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    let end = end.unwrap_or(header.len());
    let inner = String::from_utf8_lossy(&header[..end]);
    let name = match inner.split_once('"') {
        Some((section, rest)) => {
            let below = rest.trim_end().strip_suffix('"').unwrap_or(rest);
            format!("{}.{}", section.trim().to_ascii_lowercase(), below.replace('\\', ""))
        }
        None => inner.trim().to_ascii_lowercase(),
    };
    (name, header.get(end + 1..).unwrap_or_default())
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
    use crate::policy::memory::MemoryHost;

    fn last(config: &str, key: &str) -> Option<String> {
        let settings = parse(config.as_bytes());
        let found = settings.iter().rfind(|setting| matches(key, &setting.key));
        found.map(|setting| String::from_utf8(setting.value.clone()).unwrap())
    }

    #[test]
    fn reads_a_setting_as_git_does() {
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
            ("[core]\nhooksPath\n", Some("true")),
        ] {
            assert_eq!(last(config, "core.hooksPath").as_deref(), expected, "{config:?}");
        }
    }

    #[test]
    fn a_star_is_a_subsection_of_any_name() {
        let config = "[filter \"a.b ]\"]\nclean = x\n[filter]\nclean = y\n";
        assert_eq!(last(config, "filter.*.clean").as_deref(), Some("x"));
        assert_eq!(last(config, "filter.clean").as_deref(), Some("y"));
        assert_eq!(last("[pager]\nlog = z\n", "pager.*").as_deref(), Some("z"));
    }

    #[test]
    fn follows_includes_whatever_their_condition_and_ends_a_loop() {
        let host = MemoryHost::debian()
            .file(
                "/r/config",
                "[include]\npath = one\n[includeIf \"gitdir:~/x/\"]\npath = ~/two\n",
            )
            .file("/r/one", "[include]\npath = config\n[core]\nhooksPath = here\n")
            .file("/home/ann/two", "[core]\nfsmonitor = /r/run\n[include]\npath = gone\n");
        let configs = [AbsPath::new("/r/config").unwrap()];
        let read = Configuration::read(&configs, Some(Path::new("/home/ann")), &host);
        assert_eq!(read.values("core.hooksPath").collect::<Vec<_>>(), [b"here"]);
        assert_eq!(read.values("core.fsmonitor").collect::<Vec<_>>(), [b"/r/run"]);
        let included: Vec<_> = read.included.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(included, ["/r/one", "/home/ann/two", "/r/config", "/home/ann/gone"]);
        assert!(!read.is_cut);
    }
}
