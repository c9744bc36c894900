//! One planted violation, or more, for each rule, and a clean piece beside it that the rule must leave alone.

use crate::code;
use crate::data;
use crate::source::{Source, functions, references};

fn at(path: &str, text: &str) -> Vec<Source> {
    vec![Source::new(path, text)]
}

/// The rule sees something in the first text and nothing in the second.
fn tells_apart(rule: impl Fn(&[Source]) -> Vec<String>, path: &str, bad: &str, good: &str) {
    assert!(!rule(&at(path, bad)).is_empty(), "not seen in {path}: {bad}");
    let found = rule(&at(path, good));
    assert!(found.is_empty(), "seen without need in {path}: {good}\n{found:?}");
}

#[test]
fn strings_and_comments_are_not_code() {
    let text = r####"let a = "crate::cli"; // crate::cli
        /* crate::cli /* nested */ crate::cli */ let b = r#"crate::cli "quoted" "#; let c = b"\"crate::cli";
        let d = '"'; let e: &'static str = "crate::cli"; let f = '\''; let g = br"crate::cli"; let r#type = 1;"####;
    let source = Source::new("src/base/x.rs", text);
    assert_eq!(references(&source), [], "{}", source.code);
    assert!(source.code.contains("let b") && source.code.contains("let g") && source.code.contains("type = 1;"));
    assert_eq!(source.comments.matches("crate::cli").count(), 3);
}

#[test]
fn an_upward_import_is_seen_in_every_spelling() {
    let clean = "use crate::sys::fd; use super::ids::Pid; pub(crate) fn f() { self::g(); super::ids::h() }";
    for bad in [
        "use crate::cli;",
        "use crate::cli::run;",
        "use crate::{sys::fd, cli::run};",
        "use crate::{\n    sys,\n    policy::{Policy, Origin},\n};",
        "use super::super::policy::Policy;",
        "use super::{ids::Pid, super::policy};",
        "pub use crate::policy::Policy;",
        "fn f() { crate::policy::parse(); }",
        "fn f(x: &crate::policy::Policy) {}",
        "mod inner { use super::super::super::policy; }",
        "use crate::*;",
        "use crate as root;",
        "use crate::main;",
        "#[cfg(test)]\nmod tests { use crate::policy::Policy; }",
        "macro_rules! m { () => { $crate::policy::parse() } }",
    ] {
        tells_apart(code::layer_order, "src/base/path.rs", bad, clean);
    }
}

#[test]
fn siblings_are_strangers() {
    tells_apart(
        code::layer_order,
        "src/host/tmux.rs",
        "use crate::agent::Agent;",
        "use crate::policy::Policy;",
    );
    tells_apart(
        code::layer_order,
        "src/hub/mod.rs",
        "use crate::overlay::Row;",
        "use crate::plugin::Command;",
    );
}

#[test]
fn the_enforcer_may_name_the_proof_and_nothing_else_of_the_checker() {
    let good = "use crate::verify::Passed; fn release(p: crate::verify::Passed) {}";
    tells_apart(
        code::layer_order,
        "src/sandbox/gate.rs",
        "use crate::verify::{Passed, Report};",
        good,
    );
    tells_apart(code::layer_order, "src/sandbox/gate.rs", "use crate::verify;", good);
    tells_apart(
        code::layer_order,
        "src/verify/mod.rs",
        "use crate::sandbox::plan;",
        "use crate::policy::Policy;",
    );
    tells_apart(
        code::layer_order,
        "src/launch/mod.rs",
        "use crate::cli::Args;",
        "use crate::verify::Report;",
    );
}

#[test]
fn detours_are_seen() {
    for bad in [
        "#[path = \"../cli/x.rs\"] mod x;",
        "include!(\"x.rs\");",
        "extern crate self as me;",
        "use pinfold::cli;",
        "fn f() { ::pinfold::cli::main() }",
    ] {
        tells_apart(
            code::detours,
            "src/base/x.rs",
            bad,
            "mod x; const A: &str = include_str!(\"x.json\");",
        );
    }
    assert!(!code::detours(&at("src/extra/mod.rs", "")).is_empty());
}

#[test]
fn a_module_that_is_no_layer_is_seen() {
    let lib = Source::new("src/lib.rs", "pub mod cli; pub mod surprise;");
    let problems = code::declared(&lib);
    assert!(problems.iter().any(|p| p.contains("`surprise` is not")) && problems.iter().any(|p| p.contains("`sys`")));
}

#[test]
fn unsafe_code_outside_the_fence_or_without_a_reason_is_seen() {
    let good = "// unsafe\nlet a = \"unsafe\";";
    for bad in [
        "fn f() { unsafe { g() } }",
        "unsafe impl Send for X {}",
        "#![allow(unsafe_code)]",
        "#![deny(unsafe_code)]",
    ] {
        tells_apart(code::unsafe_fence, "src/state/x.rs", bad, good);
    }
    let good = "\
        // SAFETY: the descriptor is ours until the end of the call\n\
        let n =\n    unsafe { read(fd) };\n\
        /// Reads.\n///\n/// # Safety\n/// `p` is valid.\n#[inline]\npub unsafe fn f(p: *const u8) {}\n\
        type Entry = unsafe extern \"C\" fn();";
    for bad in [
        "fn f() {\n    unsafe { g() }\n}",
        "// SAFETY: this is about the next line only\nlet a = 1;\nlet b = unsafe { g() };",
        "unsafe impl Send for X {}",
        "pub unsafe fn f() {}",
        "// it is fine\nunsafe { g() }",
        "let s = \"SAFETY:\"; unsafe { g() }",
    ] {
        tells_apart(code::unsafe_fence, "src/sys/x.rs", bad, good);
    }
}

#[test]
fn a_layer_without_its_head_is_seen() {
    let good = "//! State.\n#![forbid(unsafe_code)]\nmod a;";
    tells_apart(code::layer_heads, "src/state/mod.rs", "//! State.\nmod a;", good);
    tells_apart(
        code::layer_heads,
        "src/state/mod.rs",
        "//! State.\n// #![forbid(unsafe_code)]\nmod a;",
        good,
    );
    tells_apart(
        code::layer_heads,
        "src/state/mod.rs",
        "#![forbid(unsafe_code)]\nmod a;",
        good,
    );
    tells_apart(code::layer_heads, "src/sys/mod.rs", "mod a;", "//! Calls.\nmod a;");
}

#[test]
fn large_files_are_seen_and_tests_are_counted_apart() {
    let lines = |n: usize| "const A: u8 = 1;\n".repeat(n);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", lines(500));
    tells_apart(
        code::file_sizes,
        "src/state/x.rs",
        &lines(401),
        &format!("{}{tests}", lines(140)),
    );
    tells_apart(code::file_sizes, "src/state/x.rs", &lines(151), &lines(150));
    tells_apart(code::file_sizes, "src/bin/pinfold.rs", &lines(9), &lines(8));
    let hidden = format!("#[cfg(test)]\nuse std::fmt;\n{}", lines(401));
    assert!(
        !code::file_sizes(&at("src/state/x.rs", &hidden)).is_empty(),
        "an early test import hides the rest"
    );
    tells_apart(code::file_sizes, "src/state/tests.rs", &lines(401), &lines(400));
}

#[test]
fn long_functions_are_seen_and_the_list_of_exceptions_is_true() {
    let long = format!(
        "pub fn f<T: Fn(u8) -> [u8; 2]>(x: T) -> [u8; 2]\nwhere T: Copy {{\n{}}}\n",
        "    g();\n".repeat(59)
    );
    let fits = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(58));
    tells_apart(|s| code::function_sizes(s, &[]), "src/state/x.rs", &long, &fits);
    let listed = [("src/state/x.rs", "f", "one arm for each key")];
    assert!(code::function_sizes(&at("src/state/x.rs", &long), &listed).is_empty());
    assert!(
        !code::function_sizes(&at("src/state/x.rs", &fits), &listed).is_empty(),
        "a stale entry"
    );
    assert!(!code::function_sizes(&at("src/state/x.rs", &long), &[("src/state/x.rs", "f", "long")]).is_empty());
    let nested = format!("impl X {{ fn outer() {{ }} {long} }}");
    assert!(!code::function_sizes(&at("src/state/x.rs", &nested), &[]).is_empty());
}

#[test]
fn a_launch_line_that_grows_or_goes_is_seen() {
    let line = |n: usize| format!("pub fn line() {{\n{}}}\n", "    step();\n".repeat(n));
    tells_apart(code::launch_line, "src/launch/mod.rs", &line(69), &line(68));
    tells_apart(code::launch_line, "src/launch/mod.rs", "fn other() {}", "//! launch");
    assert!(code::function_sizes(&at("src/launch/mod.rs", &line(68)), &[]).is_empty());
    assert!(!code::function_sizes(&at("src/state/mod.rs", &line(68)), &[]).is_empty());
}

#[test]
fn vague_names_are_seen() {
    for path in [
        "src/state/util.rs",
        "src/sandbox/helpers/mod.rs",
        "tests/common/mod.rs",
        "src/cli/run_manager.rs",
    ] {
        assert!(!code::vague_names(&at(path, "")).is_empty(), "{path}");
    }
    tells_apart(
        code::vague_names,
        "src/state/x.rs",
        "mod handler { }",
        "mod record { } fn service() {}",
    );
}

#[test]
fn two_switches_are_seen() {
    let good = "pub fn f(a: bool, b: u8) {} fn g(a: bool, b: bool) {} pub fn h(x: bool) -> bool { x }";
    for bad in [
        "pub fn f(a: bool, b: bool) {}",
        "pub(crate) async fn f(&self, a: bool, n: u8, b: bool) {}",
        "impl X { #[must_use] pub const fn f<T>(a: bool, x: Vec<T>, b: bool,) {} }",
    ] {
        tells_apart(code::switches, "src/state/x.rs", bad, good);
    }
}

#[test]
fn globs_are_seen() {
    let good = "use std::fmt; fn f(p: *const u8) -> u8 { 2 * 3 } #[cfg(test)] mod tests { use super::*; }";
    for bad in [
        "use std::io::prelude::*;",
        "pub use crate::base::{ids::*, Pid};",
        "fn f() { use std::fmt::*; }",
    ] {
        tells_apart(code::globs, "src/state/x.rs", bad, good);
    }
}

#[test]
fn stubs_ignored_tests_and_markers_are_seen() {
    let good = "// a list of what is to do\nlet a = \"todo!()\"; #[derive(Debug)] struct X;";
    let other_process =
        "fn a() { run(\"x::tests::b\") } #[test] #[ignore = \"run by a\"] fn b() {} #[test] #[ignore] fn c() {}";
    assert_eq!(
        code::leftovers(&at("src/state/x.rs", other_process)).len(),
        1,
        "only c is run by nobody"
    );
    let marker = format!("// {}: later\n", ["TO", "DO"].concat());
    for bad in [
        "fn f() { todo!() }",
        "fn f() { unimplemented!(\"x\") }",
        "#[ignore] fn f() {}",
        "#[ignore = \"slow\"] fn f() {}",
        &marker,
    ] {
        tells_apart(code::leftovers, "src/state/x.rs", bad, good);
    }
}

#[test]
fn a_layer_without_check_or_probe_is_seen() {
    let layers = data::stems(
        &[
            "src/sandbox/layers/mod.rs".into(),
            "src/sandbox/layers/seccomp.rs".into(),
        ],
        "src/sandbox/layers",
    );
    assert_eq!(layers, ["seccomp"]);
    assert!(data::parity(&layers, &["seccomp", "environment"], &["environment", "seccomp"]).is_empty());
    assert_eq!(data::parity(&layers, &["seccomp"], &[]).len(), 1);
    assert_eq!(data::parity(&layers, &["environment"], &["environment"]).len(), 2);
    assert_eq!(data::parity(&layers, &["seccomp"], &["seccomp", "secomp"]).len(), 1);
}

#[test]
fn an_attempt_that_ends_in_silence_is_seen() {
    let good = "fn f() { if a { return skip(\"no node\"); } let g = || return 1; match b { _ => return None, } }";
    for bad in [
        "fn f() { if a { return; } }",
        "fn f() { if a { return } }",
        "fn f() { match a { 1 => return, _ => {} } }",
    ] {
        tells_apart(code::silent_ends, "tests/jail/x.rs", bad, good);
    }
}

#[test]
fn what_a_tool_left_is_seen() {
    let paths = |name: &str| vec![name.to_owned()];
    for bad in ["tests/golden/plan.snap.new", "src/x.rs.orig", "src/x.rs.rej"] {
        assert!(!data::left_beside(&paths(bad)).is_empty(), "{bad}");
    }
    assert!(data::left_beside(&paths("tests/golden/plan.snap")).is_empty());
}

#[test]
fn broken_profiles_and_rules_without_reason_or_probe_are_seen() {
    assert!(data::profile("p.json", "{}").is_empty() && !data::profile("p.json", "{,}").is_empty());
    let rule = |reason: &str, probe: &str| format!("{{\"rules\": [{{\"call\": \"bpf\"{reason}{probe}}}]}}");
    let (reason, probe) = (", \"reason\": \"reaches the kernel\"", ", \"probe\": \"load_program\"");
    assert!(data::seccomp("s.json", &rule(reason, probe), "fn load_program() {}").is_empty());
    assert!(!data::seccomp("s.json", &rule("", probe), "fn load_program() {}").is_empty());
    assert!(!data::seccomp("s.json", &rule(reason, ""), "fn load_program() {}").is_empty());
    assert!(!data::seccomp("s.json", &rule(reason, probe), "fn load_programs() {}").is_empty());
    assert!(!data::seccomp("s.json", "{\"calls\": []}", "").is_empty());
    assert!(!data::seccomp("s.json", "{", "").is_empty());
}

#[test]
fn a_dependency_without_a_reason_is_seen() {
    assert!(data::dependencies("[package]\nname = \"x\"\n[dependencies]\n# why\na = \"1\"\n").is_empty());
    for bad in [
        "[dependencies]\na = \"1\"\n",
        "[dev-dependencies]\n# why\na = \"1\"\nb = \"1\"\n",
        "[target.'cfg(unix)'.dependencies]\na = \"1\"\n",
        "[dependencies.a]\nversion = \"1\"\n",
    ] {
        assert!(!data::dependencies(bad).is_empty(), "{bad}");
    }
}

#[test]
fn a_long_document_is_seen() {
    assert!(data::length("x.md", "a\nb\n", 2).is_empty() && !data::length("x.md", "a\nb\nc\n", 2).is_empty());
}

#[test]
fn a_promise_without_a_real_test_is_seen() {
    let tests = data::test_names(&at(
        "tests/x.rs",
        "#[test]\nfn denies_it() {}\nfn no_test() {}\n#[tokio::test]\nasync fn waits() {}",
    ));
    assert_eq!(tests, ["denies_it", "waits"]);
    let wanted = ["P1".to_owned()];
    let check = |table: &str| data::tested("x.md", table, &wanted, &tests);
    assert!(check("| P1 | files | `denies_it`, more not yet |").is_empty());
    assert!(check("| P1 | files | not yet |").is_empty());
    for bad in [
        "| P2 | files | not yet |",
        "| P1 | files | |",
        "| P1 | files | `no_test` |",
        "| P1 | `denies_it` | yes |",
        "P1: not yet",
    ] {
        assert!(!check(bad).is_empty(), "{bad}");
    }
}

#[test]
fn two_pinned_versions_are_seen() {
    let code = "pub const PINNED: &str = \"1.2.3\";";
    assert!(data::pin("#!/bin/sh\nOPENCODE_VERSION=1.2.3\n", code).is_empty());
    assert!(!data::pin("OPENCODE_VERSION=1.2.4\n", code).is_empty());
    assert!(!data::pin("OPENCODE_VERSION=1.2.3\n", "").is_empty() && !data::pin("", "").is_empty());
}

#[test]
fn a_folder_of_one_machine_is_seen() {
    let check = |text: &str| data::machine_paths("x.md", text, "/checkout/of/pinfold");
    let good = ["https://example.org", "docs", "$HOME"].map(|before| [before, "/wo", "rk/x"].concat());
    assert!(good.iter().all(|good| check(good).is_empty()));
    for bad in [
        ["see /wo", "rk/x"].concat(),
        ["`/home/run", "ner/x`"].concat(),
        "in /checkout/of/pinfold/src".to_owned(),
    ] {
        assert!(!check(&bad).is_empty(), "{bad}");
    }
}

#[test]
fn functions_are_measured_from_their_name_to_their_last_brace() {
    let found = functions(
        "trait X { fn declared(&self); }\npub fn a(\n    x: u8,\n) {\n    let f: fn(u8) = b;\n}\nfn b(_: u8) {}",
    );
    let seen: Vec<_> = found
        .iter()
        .map(|f| (f.name.as_str(), f.line, f.lines, f.public))
        .collect();
    assert_eq!(seen, [("a", 2, 5, true), ("b", 7, 1, false)]);
}
