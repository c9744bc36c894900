//! `~` and `$NAME` in the paths of profiles.

use super::{Request, ResolveError};
use crate::policy::frozen::Origin;
use crate::policy::host::Host;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The values of this launch.
pub(super) struct Variables(BTreeMap<String, PathBuf>);

impl Variables {
    /// The home, XDG and tools' folders of the host, its SSH agent's socket, `$TMPDIR`, `$WORKDIR` (the workspace root) and what the request gives.
    pub fn new(request: &Request, host: &dyn Host) -> Variables {
        let environment = host.environment();
        // XDG says that a relative value is to be ignored.
        let found = |name: &str| {
            let value = environment
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| PathBuf::from(value));
            value.filter(|path| path.is_absolute())
        };
        let mut values = BTreeMap::new();
        if let Some(home) = host.home() {
            for (name, default) in [
                ("XDG_CONFIG_HOME", ".config"),
                ("XDG_DATA_HOME", ".local/share"),
                ("XDG_STATE_HOME", ".local/state"),
                ("XDG_CACHE_HOME", ".cache"),
                ("CARGO_HOME", ".cargo"),
                ("GOPATH", "go"),
            ] {
                values.insert(name.to_owned(), found(name).unwrap_or_else(|| home.join(default)));
            }
            values.insert("HOME".to_owned(), home);
        }
        values.insert(
            "TMPDIR".to_owned(),
            found("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp")),
        );
        values.insert("UID".to_owned(), PathBuf::from(host.uid().to_string()));
        for name in ["XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"] {
            values.extend(found(name).map(|value| (name.to_owned(), value)));
        }
        if let Some(root) = &request.root {
            values.insert("WORKDIR".to_owned(), root.clone());
        }
        values.extend(request.variables.iter().cloned());
        Variables(values)
    }

    /// The path as written with every variable replaced; not checked any further.
    pub fn expand(&self, text: &str, origin: &Origin) -> Result<PathBuf, ResolveError> {
        let mut path = OsString::new();
        let mut rest = text;
        if rest == "~" || rest.starts_with("~/") {
            path.push(self.value("HOME", text, origin)?);
            rest = &rest[1..];
        }
        while let Some((front, behind)) = rest.split_once('$') {
            path.push(front);
            let (name, after) = match behind.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some((name, after)) => (name, after),
                None => {
                    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    behind.split_at(behind.find(|c| !word(c)).unwrap_or(behind.len()))
                }
            };
            path.push(self.value(name, text, origin)?);
            rest = after;
        }
        path.push(rest);
        Ok(PathBuf::from(path))
    }

    fn value(&self, name: &str, text: &str, origin: &Origin) -> Result<&OsStr, ResolveError> {
        match self.0.get(name) {
            Some(value) => Ok(value.as_os_str()),
            None if name == "HOME" || name.starts_with("XDG_") && !self.0.contains_key("HOME") => {
                Err(ResolveError::NoHome)
            }
            None => Err(ResolveError::Variable {
                text: text.to_owned(),
                name: name.to_owned(),
                known: self.0.keys().map(|name| format!("${name}")).collect(),
                origin: Box::new(origin.clone()),
            }),
        }
    }
}
