//! Every source is part of the program. A file that no `mod` names is compiled by nobody, and every other rule would still
//! read it and find nothing wrong.

use crate::source::Source;

/// Sources that nothing declares.
pub fn orphans(sources: &[Source]) -> Vec<String> {
    let roots = ["src/lib.rs", "src/bin/pinfold.rs"];
    let files = sources.iter().filter(|source| !roots.contains(&source.path.as_str()));
    let lost = files.filter(|source| !sources.iter().any(|parent| declares(parent, source)));
    lost.map(|source| format!("{}: no `mod` names it", source.path))
        .collect()
}

/// Whether `parent` stands where `child` is declared, and declares it by name or by path.
fn declares(parent: &Source, child: &Source) -> bool {
    let (folder, file) = child.path.rsplit_once('/').unwrap_or_default();
    if let Some(folder) = file.strip_suffix(".rs").filter(|stem| *stem != "mod").map(|_| folder) {
        let named = is_parent(parent, folder) && names(parent, file.trim_end_matches(".rs"));
        return named || names_path(parent, &child.path);
    }
    let (above, name) = folder.rsplit_once('/').unwrap_or_default();
    is_parent(parent, above) && names(parent, name)
}

/// `folder/mod.rs`, `folder.rs`, or the library for the top.
fn is_parent(parent: &Source, folder: &str) -> bool {
    let places = [format!("{folder}/mod.rs"), format!("{folder}.rs")];
    places.contains(&parent.path) || (folder == "src" && parent.path == "src/lib.rs")
}

fn names(parent: &Source, name: &str) -> bool {
    let end = |rest: &str| rest.starts_with(';') || rest.starts_with(" {");
    let mut declared = parent.code.match_indices("mod ");
    declared.any(|(at, word)| {
        let rest = &parent.code[at + word.len()..];
        rest.strip_prefix(name).is_some_and(end)
    })
}

fn names_path(parent: &Source, path: &str) -> bool {
    let folder = parent.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let below = path.strip_prefix(folder).map(|rest| rest.trim_start_matches('/'));
    below.is_some_and(|below| parent.raw.contains(&format!("#[path = \"{below}\"]")))
}

#[test]
fn a_file_that_no_mod_names_is_seen() {
    let source = |path: &str, text: &str| Source::new(path, text);
    let good = [
        source("src/lib.rs", "mod a;\npub mod b;\n"),
        source("src/a/mod.rs", "mod c;\n#[path = \"d/tests.rs\"]\nmod tests;\n"),
        source("src/a/c.rs", ""),
        source("src/a/d/tests.rs", ""),
        source("src/b.rs", "mod e;\n"),
        source("src/b/e.rs", ""),
    ];
    assert_eq!(orphans(&good), [""; 0]);
    let mut bad: Vec<Source> = good.into();
    bad.push(source("src/a/freeze.rs", ""));
    bad.push(source("src/b/ee.rs", ""));
    bad.push(source("src/a/f.rs", "// mod g;"));
    assert_eq!(orphans(&bad).len(), 3, "{:?}", orphans(&bad));
}
