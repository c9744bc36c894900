//! The rules about code. Each takes sources and gives back one line for each violation.

use crate::source::{self, Function, Source, reads, tokens};

/// The layers from the top; the ones on a line are strangers to each other.
pub const LAYERS: &[&[&str]] = &[
    &["cli"],
    &["hub", "overlay"],
    &["plugin", "web"],
    &["launch"],
    &["host", "agent", "state", "protocol", "sandbox"],
    &["verify"],
    &["policy"],
    &["base"],
    &["sys"],
];

/// Who may name only these items of a layer below: the enforcer needs the proof that it was checked, and nothing else
/// of the checker.
pub const NARROWED: &[(&str, &str, &[&str])] = &[("sandbox", "verify", &["Passed"])];

/// The function in `src/launch` that is the line of a launch.
pub const LAUNCH_LINE: &str = "line";
pub const LAUNCH_LINE_LIMIT: usize = 70;

/// Functions that may be longer than a screen: file, name, reason. At most five.
pub const LONG: &[(&str, &str, &str)] = &[];
pub const FUNCTION_LIMIT: usize = 60;

const FILE_LIMIT: usize = 400;
const MEDIAN_LIMIT: usize = 150;
const BIN_LIMIT: usize = 8;

const VAGUE: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "manager", "handler", "service", "runtime",
];

/// The layer that a file of the library belongs to; nothing for `src/lib.rs` and `src/bin`.
fn layer(source: &Source) -> Option<String> {
    source.module().into_iter().next().filter(|first| first != "bin")
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&layer))
}

/// Imports and paths point down the list only.
pub fn layer_order(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let Some(from) = layer(source) else { continue };
        for reference in source::references(source) {
            if let Some(problem) = direction(&from, &reference.path) {
                problems.push(format!("{}:{}: {problem}", source.path, reference.line));
            }
        }
    }
    problems
}

fn direction(from: &str, path: &[String]) -> Option<String> {
    let Some(to) = path.first() else {
        return Some("names the crate's root as a whole".to_owned());
    };
    if to == from {
        return None;
    }
    let Some(below) = rank(to) else {
        return Some(format!("`{to}` is not a layer"));
    };
    if rank(from).is_none_or(|own| own >= below) {
        return Some(format!("`{from}` must not see `{to}`"));
    }
    let narrowed = NARROWED.iter().find(|(a, b, _)| *a == from && b == to);
    let (_, _, only) = narrowed?;
    let item = path.get(1).map_or("the whole module", String::as_str);
    (!only.contains(&item)).then(|| format!("`{from}` may name {only:?} of `{to}`, not {item}"))
}

/// No detours around the order: files pulled in by path or text, the crate under its own name, layers unknown to the list.
pub fn detours(sources: &[Source]) -> Vec<String> {
    let ways: &[(&[&str], &str)] = &[
        (&["#", "[", "path"], "a module by file path"),
        (&["include", "!"], "code by text"),
        (&["extern", "crate"], "a crate under another name"),
        (&["pinfold", "::"], "the library under its own name"),
    ];
    let mut problems = Vec::new();
    for source in sources.iter().filter(|s| !s.path.starts_with("src/bin/")) {
        if layer(source).is_some_and(|l| rank(&l).is_none()) {
            problems.push(format!("{}: belongs to no layer", source.path));
        }
        let found = tokens(&source.code);
        for (at, token) in found.iter().enumerate() {
            for (_, what) in ways.iter().filter(|(texts, _)| reads(&found, at, texts)) {
                problems.push(format!("{}:{}: {what}", source.path, token.line));
            }
        }
    }
    problems
}

/// Unsafe code stands in `src/sys` only, and each piece of it has its invariant above it.
pub fn unsafe_fence(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let inside = source.path.starts_with("src/sys/");
        let found = tokens(&source.code);
        for (at, token) in found.iter().enumerate() {
            let pointer = reads(&found, at, &["unsafe", "extern", "\"", "\"", "fn", "("])
                || reads(&found, at, &["unsafe", "fn", "("]);
            let place = format!("{}:{}", source.path, token.line);
            match token.text.as_str() {
                "unsafe" if !inside => problems.push(format!("{place}: unsafe outside src/sys")),
                "unsafe" if !pointer && !has_safety(source, token.line) => {
                    problems.push(format!("{place}: unsafe without a SAFETY comment above it"));
                }
                "unsafe_code" if !inside && !forbids(&found, at) => {
                    problems.push(format!("{place}: a lint level for unsafe code that is not `forbid`"));
                }
                _ => {}
            }
        }
    }
    problems
}

fn forbids(tokens: &[source::Token], at: usize) -> bool {
    at >= 2 && reads(tokens, at - 2, &["forbid", "("])
}

/// Whether a comment with `SAFETY:` stands on the line, or above the statement that the line belongs to.
fn has_safety(source: &Source, line: usize) -> bool {
    let code: Vec<&str> = source.code.lines().map(str::trim).collect();
    let comments: Vec<&str> = source.comments.lines().collect();
    let marked = |n: usize| {
        comments
            .get(n)
            .is_some_and(|c| c.contains("SAFETY:") || c.contains("# Safety"))
    };
    let mut n = line - 1;
    if marked(n) {
        return true;
    }
    while n > 0 {
        n -= 1;
        let only_comment = code[n].is_empty() && !comments[n].trim().is_empty();
        let attribute = code[n].starts_with("#[");
        let continued = !code[n].is_empty() && !code[n].ends_with([';', '{', '}', ',']);
        if !(only_comment || attribute || continued) {
            return false;
        }
        if marked(n) {
            return true;
        }
    }
    false
}

/// Every layer but `sys` forbids unsafe code for itself, and says what it is.
pub fn layer_heads(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let module = source.module();
        let [layer] = module.as_slice() else { continue };
        let found = tokens(&source.code);
        let forbids =
            (0..found.len()).any(|at| reads(&found, at, &["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"]));
        if layer != "sys" && !found.is_empty() && !forbids {
            problems.push(format!("{}: lacks #![forbid(unsafe_code)]", source.path));
        }
        if !source.comments.starts_with("//!") {
            problems.push(format!("{}: does not start with a //! line", source.path));
        }
    }
    problems
}

/// No file over the limit, half of them well below it, and nothing in the program's own file.
pub fn file_sizes(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut sizes: Vec<usize> = sources.iter().map(|s| s.product_lines).filter(|n| *n > 0).collect();
    for source in sources {
        let limit = if source.path.starts_with("src/bin/") {
            BIN_LIMIT
        } else {
            FILE_LIMIT
        };
        if source.product_lines > limit {
            problems.push(format!(
                "{}: {} lines without tests, {limit} allowed",
                source.path, source.product_lines
            ));
        }
        if source.test_lines > FILE_LIMIT {
            problems.push(format!(
                "{}: {} lines of tests, {FILE_LIMIT} allowed",
                source.path, source.test_lines
            ));
        }
    }
    sizes.sort_unstable();
    let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
    if median > MEDIAN_LIMIT {
        problems.push(format!("the median file has {median} lines, {MEDIAN_LIMIT} allowed"));
    }
    problems
}

/// Functions fit on a screen; the few that do not are listed with their reason, and the list is true.
pub fn function_sizes(sources: &[Source], long: &[(&str, &str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = Vec::new();
    for source in sources {
        for function in source::functions(&source.product) {
            if function.lines <= FUNCTION_LIMIT || is_launch_line(source, &function) {
                continue;
            }
            let listed = long
                .iter()
                .find(|(path, name, _)| *path == source.path && *name == function.name);
            match listed {
                Some(entry) => seen.push(*entry),
                None => problems.push(format!(
                    "{}:{}: `{}` has {} lines, {FUNCTION_LIMIT} allowed",
                    source.path, function.line, function.name, function.lines
                )),
            }
        }
    }
    let stale = long.iter().filter(|entry| !seen.contains(entry));
    problems.extend(stale.map(|(path, name, _)| format!("{path}: `{name}` is listed as long and is not")));
    let unexplained = long
        .iter()
        .filter(|(_, _, reason)| reason.split_whitespace().count() < 3);
    problems.extend(unexplained.map(|(path, name, _)| format!("{path}: `{name}` is listed without a reason")));
    if long.len() > 5 {
        problems.push(format!("{} long functions are listed, 5 allowed", long.len()));
    }
    problems
}

fn is_launch_line(source: &Source, function: &Function) -> bool {
    source.path.starts_with("src/launch/") && function.name == LAUNCH_LINE
}

/// The line of a launch exists once there is anything in `src/launch`, and stays short enough to read at a glance.
pub fn launch_line(sources: &[Source]) -> Vec<String> {
    let launch = sources.iter().filter(|s| s.path.starts_with("src/launch/"));
    let functions: Vec<(&Source, Function)> = launch
        .flat_map(|s| source::functions(&s.product).into_iter().map(move |f| (s, f)))
        .collect();
    let lines: Vec<&(&Source, Function)> = functions.iter().filter(|(s, f)| is_launch_line(s, f)).collect();
    let mut problems = Vec::new();
    if lines.is_empty() && !functions.is_empty() {
        problems.push(format!("src/launch has functions, but none is called `{LAUNCH_LINE}`"));
    }
    for (source, function) in lines {
        if function.lines > LAUNCH_LINE_LIMIT {
            problems.push(format!(
                "{}:{}: the launch line has {} lines, {LAUNCH_LINE_LIMIT} allowed",
                source.path, function.line, function.lines
            ));
        }
    }
    problems
}

/// Files, folders and inline modules are called by what they hold.
pub fn vague_names(sources: &[Source]) -> Vec<String> {
    let vague = |name: &str| name.split('_').any(|word| VAGUE.contains(&word));
    let mut problems = Vec::new();
    for source in sources {
        if source.path.trim_end_matches(".rs").split('/').any(vague) {
            problems.push(format!("{}: a name that says nothing", source.path));
        }
        let found = tokens(&source.code);
        for (at, token) in found.iter().enumerate() {
            if token.text == "mod" && found.get(at + 1).is_some_and(|t| vague(&t.text)) {
                problems.push(format!(
                    "{}:{}: a module name that says nothing",
                    source.path, token.line
                ));
            }
        }
    }
    problems
}

/// Two switches in one call cannot be read at the call.
pub fn switches(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        for function in source::functions(&source.product)
            .iter()
            .filter(|f| f.public && f.bools >= 2)
        {
            problems.push(format!(
                "{}:{}: `{}` takes {} bools",
                source.path, function.line, function.name, function.bools
            ));
        }
    }
    problems
}

/// Every name in a file can be found in the file.
pub fn globs(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let found = tokens(&source.product);
        let mut importing = false;
        for (at, token) in found.iter().enumerate() {
            match token.text.as_str() {
                // `use<'a>` in a return type is no import
                "use" => importing = !reads(&found, at + 1, &["<"]),
                ";" => importing = false,
                "*" if importing => problems.push(format!("{}:{}: a glob import", source.path, token.line)),
                _ => {}
            }
        }
    }
    problems
}

/// Nothing is left for later in silence: no stubs, no markers, and no ignored test but one that another test of the same
/// file runs by its name, in a process of its own.
pub fn leftovers(sources: &[Source]) -> Vec<String> {
    let markers = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["XX", "X"].concat()];
    let mut problems = Vec::new();
    for source in sources {
        let found = tokens(&source.code);
        for (at, token) in found.iter().enumerate() {
            let stub = reads(&found, at, &["todo", "!"]) || reads(&found, at, &["unimplemented", "!"]);
            let ignored = reads(&found, at, &["#", "[", "ignore"]) && !run_by_name(source, &found[at..]);
            if stub || ignored {
                problems.push(format!("{}:{}: a stub or an ignored test", source.path, token.line));
            }
        }
        for (number, line) in source.comments.lines().enumerate() {
            if line
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| markers.iter().any(|m| m == word))
            {
                problems.push(format!("{}:{}: a marker for later", source.path, number + 1));
            }
        }
    }
    problems
}

/// A test of a denial ends early only with words: `return skip(…)` or `return covered_by_root(…)`, never bare.
pub fn silent_ends(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let found = tokens(&source.code);
        for (at, token) in found.iter().enumerate() {
            let bare = [";", "}", ","].iter().any(|end| reads(&found, at, &["return", end]));
            if bare {
                problems.push(format!("{}:{}: ends without a word", source.path, token.line));
            }
        }
    }
    problems
}

/// Whether the function behind an attribute is named in a string of its file, as in `"base::atomic::tests::on_a_small_disk"`.
fn run_by_name(source: &Source, behind: &[source::Token]) -> bool {
    let name = behind.iter().skip_while(|t| t.text != "fn").nth(1);
    name.is_some_and(|name| source.raw.contains(&format!("::{}\"", name.text)))
}

/// The modules that `src/lib.rs` declares are exactly the layers.
pub fn declared(lib: &Source) -> Vec<String> {
    let found = tokens(&lib.code);
    let modules: Vec<&str> = (1..found.len())
        .filter(|at| found[at - 1].text == "mod")
        .map(|at| found[at].text.as_str())
        .collect();
    let known = LAYERS.concat();
    let missing = known
        .iter()
        .filter(|l| !modules.contains(l))
        .map(|l| format!("src/lib.rs: lacks the layer `{l}`"));
    let extra = modules
        .iter()
        .filter(|m| !known.contains(m))
        .map(|m| format!("src/lib.rs: `{m}` is not a layer"));
    missing.chain(extra).collect()
}
