//! `pinfold profile`: which profiles there are, what one says, and whether it loads.

use super::Outcome;
use super::args::ProfileVerb;
use super::output::{fail, say, say_bytes, say_json};
use crate::base::Fault;
use crate::base::text::visible;
use crate::launch::{Setting, Wish};
use crate::policy::profile::{Profile, shipped_names, written};
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
        ProfileVerb::Show { profile } => show(&profile, &setting)?,
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
fn names(setting: &Setting) -> BTreeMap<String, String> {
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

/// As it is written, byte for byte.
fn show(name: &OsStr, setting: &Setting) -> Result<(), Fault> {
    let name = name.to_string_lossy();
    let name = match name.contains('/') {
        true => setting.here.join(&*name).to_string_lossy().into_owned(),
        false => name.into_owned(),
    };
    let (_, bytes) = written(&name, &setting.profile_folders(), &LiveHost::new())?;
    say_bytes(&bytes);
    Ok(())
}

#[derive(Debug, Serialize)]
struct Checked {
    ok: bool,
    name: String,
    /// What it is made of, the outermost parent first.
    chain: Vec<String>,
    /// Keys that are not used, with the reason.
    notes: Vec<Note>,
}

/// Exit 1 if it does not load.
fn check(name: OsString, setting: &Setting, as_json: bool) -> ExitCode {
    let profile = match loaded(&name, setting) {
        Ok(profile) => profile,
        Err(fault) => {
            fail(&fault, as_json);
            return ExitCode::FAILURE;
        }
    };
    let checked = Checked {
        ok: true,
        name: profile.name,
        chain: profile.chain,
        notes: profile.notes,
    };
    if as_json {
        say_json(&checked);
        return ExitCode::SUCCESS;
    }
    let chain: Vec<String> = checked.chain.iter().map(visible).collect();
    say(format!("{} loads: {}", visible(&checked.name), chain.join(", ")));
    for note in &checked.notes {
        say(format!("  {}: {}", visible(&note.subject), visible(&note.text)));
    }
    ExitCode::SUCCESS
}
