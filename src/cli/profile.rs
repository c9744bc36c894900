//! `pinfold profile`: which profiles there are, what one says, and whether it loads.

use super::Outcome;
use super::args::ProfileVerb;
use super::output::{fail, say, say_bytes, say_json};
use crate::base::Fault;
use crate::base::text::visible;
use crate::launch::preview::Checked;
use crate::launch::{Setting, Wish};
use crate::policy::profile::{Profile, schema, shipped_names, written};
use crate::policy::{LiveHost, Note};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// One profile that can be named.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    /// Its file, or `shipped:NAME`.
    file: String,
    description: Option<String>,
    /// Why it does not load.
    problem: Option<String>,
}

/// Lists, shows or checks.
pub fn run(verb: ProfileVerb) -> Outcome {
    let setting = Setting::find()?;
    match verb {
        ProfileVerb::List(output) => list(&setting, output.json),
        ProfileVerb::Show { profile, output } => show(&profile, &setting, output.json)?,
        // One form for people and scripts.
        ProfileVerb::Schema(_) => say_json(&schema()?),
        ProfileVerb::Check { profile, output } => return Ok(check(profile, &setting, output.json)),
    }
    Ok(ExitCode::SUCCESS)
}

fn loaded(name: &OsStr, setting: &Setting) -> Result<Profile, Fault> {
    let wish = Wish {
        profile: Some(name.to_owned()),
        ..Wish::default()
    };
    wish.profile("", setting)
}

fn list(setting: &Setting, as_json: bool) {
    let rows: Vec<Listed> = names(setting)
        .into_iter()
        .map(|(name, file)| {
            let profile = loaded(OsStr::new(&name), setting);
            Listed {
                file,
                description: profile.as_ref().ok().and_then(|profile| profile.description.clone()),
                problem: profile.err().map(|fault| fault.to_string()),
                name,
            }
        })
        .collect();
    if as_json {
        return say_json(&rows);
    }
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    for row in &rows {
        let about = match (&row.problem, &row.description) {
            (Some(problem), _) => format!("does not load: {problem}"),
            (None, Some(description)) => visible(description),
            (None, None) => String::new(),
        };
        say(format!(
            "{:width$}  {about}  ({})",
            visible(&row.name),
            visible(&row.file)
        ));
    }
}

/// Every name with its file: a person's own profile goes before a shipped one of the same name.
pub fn names(setting: &Setting) -> BTreeMap<String, String> {
    let shipped = shipped_names().into_iter();
    let mut names: BTreeMap<String, String> = shipped
        .map(|name| (name.to_owned(), format!("shipped:{name}")))
        .collect();
    for folder in setting.profile_folders().iter().rev() {
        let own = own(folder).into_iter();
        names.extend(own.map(|(name, file)| (name, file.to_string_lossy().into_owned())));
    }
    names
}

/// The profiles of a folder; none where there is no folder.
fn own(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let named = files.filter_map(|file| {
        let name = file.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
        Some((name, file))
    });
    named.collect()
}

/// As it is written, byte for byte, or as JSON with the file that it is from.
fn show(name: &OsStr, setting: &Setting, as_json: bool) -> Result<(), Fault> {
    let name = name.to_string_lossy();
    let name = match name.contains('/') {
        true => setting.here.join(&*name).to_string_lossy().into_owned(),
        false => name.into_owned(),
    };
    let (file, bytes) = written(&name, &setting.profile_folders(), &LiveHost::new())?;
    if as_json {
        // What is not JSON is shown as text: that is what somebody may want to see.
        let profile: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
        let text = String::from_utf8_lossy(&bytes);
        say_json(&serde_json::json!({"name": name, "file": file, "profile": profile, "text": text}));
    } else {
        say_bytes(&bytes);
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct Told {
    ok: bool,
    name: String,
    /// What it is made of, the outermost parent first.
    chain: Vec<String>,
    /// Whether it was held against a workspace, too.
    workspace: bool,
    agent_missing: Option<String>,
    /// What is not used, left out or done differently, with the reason.
    notes: Vec<Note>,
}

/// Exit 1 if a launch would refuse it.
fn check(name: OsString, setting: &Setting, as_json: bool) -> ExitCode {
    let wish = Wish {
        profile: Some(name),
        ..Wish::default()
    };
    let Checked {
        profile,
        preview,
        workspace,
    } = match wish.check(setting) {
        Ok(checked) => checked,
        Err(fault) => {
            fail(&fault, as_json);
            return ExitCode::FAILURE;
        }
    };
    let told = Told {
        ok: true,
        name: profile.name,
        chain: profile.chain,
        workspace,
        agent_missing: preview.agent_missing.map(|missing| missing.problem),
        notes: preview
            .policy
            .notes
            .into_iter()
            .filter(|note| note.topic.is_remark())
            .collect(),
    };
    if as_json {
        say_json(&told);
        return ExitCode::SUCCESS;
    }
    let chain: Vec<String> = told.chain.iter().map(visible).collect();
    say(format!("{} is good: {}", visible(&told.name), chain.join(", ")));
    if !workspace {
        say("  not held against a workspace: this folder cannot be one");
    }
    if let Some(problem) = &told.agent_missing {
        say(format!("  {}, so its own lines are left out", visible(problem)));
    }
    for note in &told.notes {
        say(format!(
            "  {}: {}  [{}]",
            visible(&note.subject),
            visible(&note.text),
            note.origin
        ));
    }
    ExitCode::SUCCESS
}
