//! Settings of the host that matter: what they mean, which of them stand in the way, and the fix.

use super::layers::{LayerRow, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SETTINGS: &str = include_str!("../../../profiles/host.json");
const APPARMOR: &str = include_str!("../../../profiles/apparmor/pinfold");

/// One setting as this host has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostRow {
    pub name: String,
    /// Nothing where this kernel has no such setting.
    pub value: Option<String>,
    pub why: String,
    pub means: Option<String>,
    /// Whether it keeps a sandbox from being made.
    pub blocks: bool,
    #[serde(skip)]
    fix: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    #[serde(rename = "comment")]
    _comment: String,
    /// Errors for which a setting can be the reason.
    errors: Vec<String>,
    /// Layers that a setting can keep away.
    layers: Vec<String>,
    /// The fix where no setting stands in the way.
    otherwise: String,
    settings: Vec<Setting>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    name: String,
    why: String,
    values: BTreeMap<String, Meaning>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meaning {
    means: String,
    #[serde(default)]
    blocks: bool,
    #[serde(default)]
    fix: Option<String>,
}

/// Reads every known setting of this host.
pub fn read() -> Vec<HostRow> {
    read_below(Path::new("/proc/sys"))
}

fn read_below(root: &Path) -> Vec<HostRow> {
    let known = known().map(|known| known.settings).unwrap_or_default();
    known.into_iter().map(|setting| row(setting, root)).collect()
}

fn known() -> Option<Known> {
    serde_json::from_str(SETTINGS).ok()
}

fn row(setting: Setting, root: &Path) -> HostRow {
    let path: PathBuf = root.join(setting.name.replace('.', "/"));
    let value = std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let meaning = value.as_ref().and_then(|value| setting.values.get(value)).cloned();
    let Meaning { means, blocks, fix } = meaning.clone().unwrap_or_default();
    HostRow {
        name: setting.name,
        value,
        why: setting.why,
        means: meaning.map(|_| means),
        blocks,
        fix,
    }
}

/// Gives a failed layer the fix for the setting that stands in its way. The kernel's answer decides whether anything is
/// wrong at all: a setting alone never does.
pub fn advise(layers: &mut [LayerRow], settings: &[HostRow], program: &Path) {
    let Some(known) = known() else { return };
    for layer in layers.iter_mut().filter(|layer| layer.state == State::Failed) {
        let by_setting = known.layers.iter().any(|name| name == layer.name)
            && layer.errno.as_ref().is_some_and(|errno| known.errors.contains(errno));
        if !by_setting {
            continue;
        }
        let fixes: Vec<String> = settings
            .iter()
            .filter(|setting| setting.blocks)
            .filter_map(|setting| setting.fix.as_ref())
            .map(|fix| filled(fix, program))
            .collect();
        layer.fix = Some(if fixes.is_empty() {
            known.otherwise.clone()
        } else {
            fixes.join("\n")
        });
    }
}

/// AppArmor takes a path with blanks or its own signs in quotes.
fn filled(fix: &str, program: &Path) -> String {
    let quoted = format!("{:?}", program.display().to_string());
    fix.replace("{apparmor}", &APPARMOR.replace("{program}", &quoted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(settings: &[(&str, &str)]) -> (tempfile::TempDir, Vec<HostRow>) {
        let root = tempfile::tempdir().unwrap();
        for (name, value) in settings {
            let path = root.path().join(name.replace('.', "/"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{value}\n")).unwrap();
        }
        let rows = read_below(root.path());
        (root, rows)
    }

    fn advice(settings: &[(&str, &str)], layer: &'static str, errno: &str) -> Option<String> {
        let mut rows = [LayerRow {
            name: layer,
            state: State::Failed,
            detail: String::new(),
            errno: Some(errno.to_owned()),
            fix: None,
        }];
        advise(&mut rows, &host(settings).1, Path::new("/opt/pin fold"));
        rows[0].fix.clone()
    }

    const UBUNTU: (&str, &str) = ("kernel.apparmor_restrict_unprivileged_userns", "1");

    #[test]
    fn the_table_of_settings_is_sound() {
        let known = known().unwrap();
        for setting in &known.settings {
            for meaning in setting.values.values() {
                assert_eq!(meaning.blocks, meaning.fix.is_some(), "{}", setting.name);
            }
        }
    }

    #[test]
    fn each_setting_that_forbids_namespaces_has_its_fix() {
        let fix = advice(&[UBUNTU], "mounts", "EACCES").unwrap();
        assert!(fix.contains("apparmor_parser -r"), "{fix}");
        assert!(
            fix.contains("profile pinfold \"/opt/pin fold\" flags=(unconfined) {"),
            "{fix}"
        );
        let fix = advice(&[("kernel.unprivileged_userns_clone", "0")], "namespaces", "EPERM").unwrap();
        assert!(fix.contains("kernel.unprivileged_userns_clone=1"), "{fix}");
        let fix = advice(&[("user.max_user_namespaces", "0")], "namespaces", "ENOSPC").unwrap();
        assert!(fix.contains("user.max_user_namespaces=15000"), "{fix}");
    }

    #[test]
    fn without_such_a_setting_or_error_it_is_not_blamed() {
        let fix = advice(&[("user.max_user_namespaces", "100")], "namespaces", "EPERM").unwrap();
        assert!(fix.contains("container"), "{fix}");
        assert_eq!(advice(&[UBUNTU], "landlock", "EACCES"), None);
        assert_eq!(advice(&[UBUNTU], "mounts", "ENOENT"), None);
    }

    #[test]
    fn an_absent_setting_is_told_as_absent() {
        let (_root, rows) = host(&[UBUNTU]);
        let find = |name: &str| rows.iter().find(|row| row.name == name).unwrap().clone();
        assert_eq!(find("kernel.yama.ptrace_scope").value, None);
        assert!(find(UBUNTU.0).blocks && find(UBUNTU.0).means.is_some());
    }
}
