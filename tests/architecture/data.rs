//! The rules about what stands beside the code: layers and their checks, profiles, dependencies, documents.

use crate::source::Source;
use serde_json::Value;

/// Each enforcing layer has a check of its name, and a probe that tries what it forbids: `checks` and `probed` are what
/// the program's own tables name. What a probe names is a layer or at least has a check.
pub fn parity(layers: &[String], checks: &[&str], probed: &[&str]) -> Vec<String> {
    let mut problems = Vec::new();
    for layer in layers {
        if !checks.contains(&layer.as_str()) {
            problems.push(format!("the layer `{layer}` has no check of its name"));
        }
        if !probed.contains(&layer.as_str()) {
            problems.push(format!("no probe names the layer `{layer}`"));
        }
    }
    let unknown = probed.iter().filter(|name| !checks.contains(name));
    problems.extend(unknown.map(|name| format!("a probe names `{name}`, which is no check")));
    problems
}

/// What a tool leaves beside a file for a person to look at is not kept.
pub fn left_beside(paths: &[String]) -> Vec<String> {
    let left = |path: &&String| [".snap.new", ".orig", ".rej"].iter().any(|end| path.ends_with(end));
    let found = paths.iter().filter(left);
    found
        .map(|path| format!("{path}: left by a tool; look at it, then remove it"))
        .collect()
}

/// Whether a word stands in a text as a whole word.
pub fn mentions(text: &str, word: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(inner) && !text[at + word.len()..].chars().next().is_some_and(inner)
    })
}

/// The names of the modules in a folder, from its file names.
pub fn stems(files: &[String], folder: &str) -> Vec<String> {
    let inner = files.iter().filter_map(|f| f.strip_prefix(folder)?.strip_prefix('/'));
    let mut names: Vec<String> = inner
        .filter_map(|f| f.split('/').next())
        .map(|f| f.trim_end_matches(".rs").to_owned())
        .collect();
    names.retain(|n| n != "mod" && n != "tests");
    names.dedup();
    names
}

/// A profile is JSON.
pub fn profile(path: &str, text: &str) -> Vec<String> {
    let parsed: Result<Value, _> = serde_json::from_str(text);
    parsed.err().map(|e| format!("{path}: {e}")).into_iter().collect()
}

/// Every rule of a seccomp file says why it is there and which probe tries it; `tried` is where probes are found.
pub fn seccomp(path: &str, text: &str, tried: &str) -> Vec<String> {
    let Ok(file) = serde_json::from_str::<Value>(text) else {
        return profile(path, text);
    };
    let mut rules = Vec::new();
    collect_rules(&file, &mut rules);
    let mut problems = Vec::new();
    if rules.is_empty() {
        problems.push(format!("{path}: no `rules`"));
    }
    for (number, rule) in rules.iter().enumerate() {
        let word = |key: &str| rule.get(key).and_then(Value::as_str).filter(|t| !t.trim().is_empty());
        if word("reason").is_none() {
            problems.push(format!("{path}: rule {number} has no reason"));
        }
        match word("probe") {
            None => problems.push(format!("{path}: rule {number} has no probe")),
            Some(probe) if !mentions(tried, probe) => {
                problems.push(format!(
                    "{path}: rule {number} names the probe `{probe}`, which is nowhere"
                ));
            }
            Some(_) => {}
        }
    }
    problems
}

fn collect_rules<'a>(value: &'a Value, rules: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                match inner {
                    Value::Array(list) if key == "rules" => rules.extend(list),
                    other => collect_rules(other, rules),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| collect_rules(inner, rules)),
        _ => {}
    }
}

/// Each direct dependency has its reason on the line above.
pub fn dependencies(manifest: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut listing = false;
    let mut above = "";
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            let table = line.trim_matches(['[', ']']);
            listing = table.ends_with("dependencies");
            if table.contains("dependencies.") && !above.starts_with('#') {
                problems.push(format!("Cargo.toml: {table} has no reason above it"));
            }
        } else if listing && line.contains('=') && !line.starts_with('#') && !above.starts_with('#') {
            problems.push(format!(
                "Cargo.toml: `{}` has no reason above it",
                line.split(['=', ' ']).next().unwrap_or(line)
            ));
        }
        above = line;
    }
    problems
}

/// A document stays within its number of lines.
pub fn length(path: &str, text: &str, limit: usize) -> Vec<String> {
    let lines = text.lines().count();
    if lines > limit {
        vec![format!("{path}: {lines} lines, {limit} allowed")]
    } else {
        Vec::new()
    }
}

/// The last cell of each table row whose first cell is an identifier such as `P1` or `B09`.
fn rows(text: &str) -> Vec<(String, String)> {
    let cells = |line: &str| -> Vec<String> {
        line.trim()
            .trim_matches('|')
            .split('|')
            .map(|c| c.trim().to_owned())
            .collect()
    };
    let named = |cell: &str| {
        let mut chars = cell.chars();
        chars.next().is_some_and(|c| c.is_ascii_uppercase()) && cell.len() > 1 && chars.all(|c| c.is_ascii_digit())
    };
    let lines = text.lines().filter(|l| l.trim_start().starts_with('|')).map(cells);
    lines
        .filter(|c| named(&c[0]))
        .map(|c| (c[0].clone(), c[c.len() - 1].clone()))
        .collect()
}

/// In a table of promises or escapes every wanted row stands, and names a test that exists or says "not yet".
pub fn tested(path: &str, text: &str, wanted: &[String], tests: &[String]) -> Vec<String> {
    let rows = rows(text);
    let mut problems: Vec<String> = wanted
        .iter()
        .filter(|w| !rows.iter().any(|(id, _)| id == *w))
        .map(|w| format!("{path}: no row for {w}"))
        .collect();
    for (id, cell) in &rows {
        let named: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        if named.is_empty() && !cell.contains("not yet") {
            problems.push(format!("{path}: {id} names no test and does not say \"not yet\""));
        }
        let unknown = named.iter().filter(|n| !tests.iter().any(|t| t == **n));
        problems.extend(unknown.map(|n| format!("{path}: {id} names `{n}`, which is no test")));
    }
    problems
}

/// The names of all functions under `#[test]` (or another attribute that ends in `test]`, such as `#[tokio::test]`).
pub fn test_names(sources: &[Source]) -> Vec<String> {
    let mut names = Vec::new();
    for source in sources {
        let mut marked = false;
        for line in source.code.lines().map(str::trim) {
            if line.starts_with("#[") {
                marked |= line.ends_with("test]");
            } else if let Some(rest) = line.split("fn ").nth(1).filter(|_| marked) {
                names.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
                marked = false;
            } else if !line.is_empty() {
                marked = false;
            }
        }
    }
    names
}

/// The script that installs OpenCode for tests and the code that installs it for people mean the same version.
pub fn pin(script: &str, code: &str) -> Vec<String> {
    let scripted = script.lines().find_map(|l| l.strip_prefix("OPENCODE_VERSION="));
    let coded = code
        .lines()
        .find_map(|l| l.split("PINNED: &str = \"").nth(1)?.split('"').next());
    match (scripted, coded) {
        (Some(a), Some(b)) if a == b => Vec::new(),
        (a, b) => vec![format!("bin/run.sh pins OpenCode {a:?}, src/agent pins {b:?}")],
    }
}

/// No text of the project names a folder of one machine.
pub fn machine_paths(path: &str, text: &str, own: &str) -> Vec<String> {
    let fixed = ["/wo~rk/", "/work~space/", "/bui~lds/", "/Us~ers/", "/home/run~ner/"].map(|p| p.replace('~', ""));
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let starts = |at: usize| {
            !line[..at]
                .chars()
                .next_back()
                .is_some_and(|c| c.is_alphanumeric() || "_-.$}".contains(c))
        };
        let named = fixed
            .iter()
            .find(|p| line.match_indices(p.as_str()).any(|(at, _)| starts(at)));
        if named.is_some() || line.contains(own) {
            problems.push(format!("{path}:{}: names a folder of one machine", number + 1));
        }
    }
    problems
}

/// The reasons with which tests end in reduced mode.
pub fn limits(text: &str) -> Vec<String> {
    let ends = ["only_in_full!(\"", "left_out(\""];
    let found = ends.iter().flat_map(|end| text.split(end).skip(1));
    found
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}
