//! The shape of the project, as rules that a test knows. Each rule has its checker in `architecture/`, and each checker
//! is shown a planted violation in `architecture/planted.rs`, so that a rule that sees nothing turns the suite red.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "architecture/code.rs"]
mod code;
#[path = "architecture/data.rs"]
mod data;
#[path = "architecture/planted.rs"]
mod planted;
#[path = "architecture/reach.rs"]
mod reach;
#[path = "architecture/source.rs"]
mod source;

use source::{files, root, sources, text};

fn holds(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn imports_point_down_only() {
    holds(&code::layer_order(&sources("src")));
}

#[test]
fn every_source_is_part_of_the_program() {
    holds(&reach::orphans(&sources("src")));
}

#[test]
fn no_detour_leads_around_the_order() {
    holds(&code::detours(&sources("src")));
}

#[test]
fn the_library_declares_exactly_the_layers() {
    holds(&code::declared(&source::Source::new("src/lib.rs", &text("src/lib.rs"))));
}

#[test]
fn unsafe_code_stands_in_sys_with_its_invariant() {
    holds(&code::unsafe_fence(&sources("src")));
}

#[test]
fn every_other_layer_forbids_unsafe_code() {
    holds(&code::layer_heads(&sources("src")));
}

#[test]
fn files_stay_small() {
    holds(&code::file_sizes(&sources("src")));
}

#[test]
fn functions_fit_on_a_screen() {
    holds(&code::function_sizes(&sources("src"), code::LONG));
}

#[test]
fn the_launch_line_stays_a_line() {
    holds(&code::launch_line(&sources("src")));
}

#[test]
fn modules_are_called_by_what_they_hold() {
    let all = ["src", "tests", "benches"]
        .iter()
        .flat_map(|f| sources(f))
        .collect::<Vec<_>>();
    holds(&code::vague_names(&all));
}

#[test]
fn no_public_function_takes_two_switches() {
    holds(&code::switches(&sources("src")));
}

#[test]
fn no_import_is_a_glob() {
    holds(&code::globs(&sources("src")));
}

#[test]
fn nothing_is_left_for_later_in_silence() {
    let all = ["src", "tests", "benches"]
        .iter()
        .flat_map(|f| sources(f))
        .collect::<Vec<_>>();
    holds(&code::leftovers(&all));
}

#[test]
fn no_attempt_of_the_jail_is_left_out_in_silence() {
    holds(&code::silent_ends(&sources("tests/jail")));
}

#[test]
fn nothing_that_a_tool_left_is_kept() {
    holds(&data::left_beside(&files("")));
}

#[test]
fn every_layer_of_the_sandbox_has_its_check_and_its_probe() {
    let layers = data::stems(&files("src/sandbox/layers"), "src/sandbox/layers");
    assert!(!layers.is_empty(), "no layers: this test looks in the wrong place");
    let checks = pinfold::verify::CHECKS.map(|(name, _)| name);
    let probed: Vec<&str> = pinfold::verify::probe::names()
        .flat_map(pinfold::verify::probe::layers_of)
        .copied()
        .collect();
    holds(&data::parity(&layers, &checks, &probed));
}

#[test]
fn every_profile_is_json_and_every_rule_has_its_reason_and_probe() {
    let places = ["src/verify", "tests"].iter().flat_map(|f| files(f));
    let tried: String = places
        .filter(|f| !f.starts_with("tests/architecture"))
        .map(|f| text(&f))
        .collect();
    for path in files("profiles").iter().filter(|p| p.ends_with(".json")) {
        let content = text(path);
        holds(&data::profile(path, &content));
        if path.starts_with("profiles/seccomp/") {
            holds(&data::seccomp(path, &content, &tried));
        }
    }
}

#[test]
fn every_dependency_has_its_reason() {
    holds(&data::dependencies(&text("Cargo.toml")));
}

#[test]
fn the_documents_stay_short() {
    holds(&data::length("README.md", &text("README.md"), 300));
    holds(&data::length(
        "docs/architecture.md",
        &text("docs/architecture.md"),
        200,
    ));
}

#[test]
fn every_promise_and_escape_names_a_test_that_exists_or_says_not_yet() {
    let all = ["src", "tests"].iter().flat_map(|f| sources(f)).collect::<Vec<_>>();
    let tests = data::test_names(&all);
    let promises: Vec<String> = (1..=10).map(|n| format!("P{n}")).collect();
    let escapes: Vec<String> = (9..=35)
        .map(|n| format!("B{n:02}"))
        .chain((1..=6).map(|n| format!("E0{n}")))
        .collect();
    holds(&data::tested(
        "docs/promises.md",
        &text("docs/promises.md"),
        &promises,
        &tests,
    ));
    holds(&data::tested(
        "docs/known-escapes.md",
        &text("docs/known-escapes.md"),
        &escapes,
        &tests,
    ));
}

#[test]
fn every_limit_of_reduced_mode_that_a_test_ends_at_stands_in_its_document() {
    let document = text("docs/reduced-mode.md");
    let named: Vec<String> = sources("tests/jail")
        .iter()
        .flat_map(|source| data::limits(&source.raw))
        .collect();
    assert!(named.len() > 20, "found only {named:?}");
    let missing = named.into_iter().filter(|limit| !document.contains(limit.as_str()));
    holds(&missing.collect::<Vec<_>>());
    let planted = data::limits("    only_in_full!(\"pigs do not fly\");");
    assert!(planted == ["pigs do not fly"] && !document.contains(&planted[0]));
}

#[test]
fn the_agent_is_pinned_to_one_version() {
    let texts: String = sources("src/agent").iter().map(|s| text(&s.path)).collect();
    holds(&data::pin(&text("bin/run.sh"), &texts));
}

#[test]
fn no_text_names_a_folder_of_one_machine() {
    let own = root().to_str().expect("this checkout's path is text").to_owned();
    let mut problems = Vec::new();
    for path in files("") {
        let content = text(&path);
        if !content.contains('\0') {
            problems.extend(data::machine_paths(&path, &content, &own));
        }
    }
    holds(&problems);
}
