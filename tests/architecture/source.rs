//! Rust sources as text: code, comments and string contents told apart, and line numbers kept.

use std::path::{Path, PathBuf};

/// One source file. All views have the same number of lines; what a view leaves out is blank.
pub struct Source {
    /// Relative to the package, with `/`.
    pub path: String,
    /// As it stands.
    pub raw: String,
    /// Without comments and without what stands inside string and character literals.
    pub code: String,
    /// Comments only.
    pub comments: String,
    /// `code` without the items under `#[cfg(test)]`; blank for a file that is a test module.
    pub product: String,
    /// Lines of the file that belong to the product, comments and blank lines included.
    pub product_lines: usize,
    /// Lines of a file that is a test module as a whole, otherwise 0.
    pub test_lines: usize,
}

/// A word or a sign, and the line (from 1) on which it stands. `::` is one sign.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// A function with a body.
#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub line: usize,
    /// From the line of `fn` to the line of the closing brace.
    pub lines: usize,
    pub public: bool,
    /// How many parameters are a plain `bool`.
    pub bools: usize,
}

/// A path that starts with `crate`, `self` or `super`, as seen from the crate's root.
#[derive(Debug, PartialEq)]
pub struct Reference {
    pub path: Vec<String>,
    pub line: usize,
}

/// The package's folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` (relative to the package), sorted; nothing where the folder is absent.
pub fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    let mut names: Vec<String> = found
        .iter()
        .map(|p| {
            p.strip_prefix(root())
                .expect("below the package")
                .to_str()
                .expect("names here are text")
                .to_owned()
        })
        .collect();
    names.sort();
    names
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.expect("a readable folder");
        let name = entry.file_name();
        let skipped = ["target", "node_modules", ".git"].iter().any(|s| name == *s);
        match entry.file_type().expect("a file type") {
            kind if kind.is_dir() && !skipped => collect(&entry.path(), found),
            kind if kind.is_file() && !skipped => found.push(entry.path()),
            _ => {}
        }
    }
}

/// The text of a file of the package.
pub fn text(path: &str) -> String {
    let bytes = std::fs::read(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Every Rust file below `folder`.
pub fn sources(folder: &str) -> Vec<Source> {
    files(folder)
        .iter()
        .filter(|p| p.ends_with(".rs"))
        .map(|p| Source::new(p, &text(p)))
        .collect()
}

impl Source {
    pub fn new(path: &str, raw: &str) -> Source {
        let (code, comments) = split(raw);
        let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
        let total = raw.lines().count();
        let mut product: Vec<&str> = code.lines().collect();
        let mut product_lines = total;
        for (first, last) in test_items(&tokens(&code)) {
            product[first - 1..last].fill("");
            product_lines -= last - first + 1;
        }
        Source {
            path: path.to_owned(),
            raw: raw.to_owned(),
            product: if is_test { String::new() } else { product.join("\n") },
            product_lines: if is_test { 0 } else { product_lines },
            test_lines: if is_test { total } else { 0 },
            code,
            comments,
        }
    }
    /// The module path from the crate's root; empty for `src/lib.rs`.
    pub fn module(&self) -> Vec<String> {
        let inner = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
        if parts.last().is_some_and(|p| p == "mod" || p == "lib") {
            parts.pop();
        }
        parts
    }
}

/// Code and comments of a source, each with everything else blanked.
pub fn split(raw: &str) -> (String, String) {
    let chars: Vec<char> = raw.chars().collect();
    let (mut code, mut comments) = (String::new(), String::new());
    let mut at = 0;
    while at < chars.len() {
        let (end, kind) = piece(&chars, at);
        for (i, c) in chars.iter().enumerate().take(end).skip(at) {
            let blank = if *c == '\n' { '\n' } else { ' ' };
            let edge = i == at || i + 1 == end;
            code.push(if kind == Kind::Code || (kind == Kind::Literal && edge && *c != '\n') {
                *c
            } else {
                blank
            });
            comments.push(if kind == Kind::Comment { *c } else { blank });
        }
        at = end;
    }
    (code, comments)
}

#[derive(PartialEq, Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// Where the piece that starts at `at` ends (exclusive), and what it is.
fn piece(chars: &[char], at: usize) -> (usize, Kind) {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => (find(chars, at, '\n'), Kind::Comment),
        '/' if next == Some('*') => (block_comment(chars, at), Kind::Comment),
        '"' => (quoted(chars, at, '"'), Kind::Literal),
        '\'' if next == Some('\\') || chars.get(at + 2) == Some(&'\'') => (quoted(chars, at, '\''), Kind::Literal),
        'r' if !(at > 0 && is_word(chars[at - 1]) && !prefixes_raw(chars, at)) => match raw_string(chars, at) {
            Some(end) => (end, Kind::Literal),
            None => (at + 1, Kind::Code),
        },
        _ => (at + 1, Kind::Code),
    }
}

/// Whether the letter before `at` is the `b` or `c` of `br"…"` or `cr"…"`, and not the end of a longer word.
fn prefixes_raw(chars: &[char], at: usize) -> bool {
    matches!(chars[at - 1], 'b' | 'c') && (at < 2 || !is_word(chars[at - 2]))
}

fn find(chars: &[char], at: usize, wanted: char) -> usize {
    chars[at..]
        .iter()
        .position(|c| *c == wanted)
        .map_or(chars.len(), |n| at + n)
}

fn block_comment(chars: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i.min(chars.len())
}

fn quoted(chars: &[char], at: usize, quote: char) -> usize {
    let mut i = at + 1;
    while i < chars.len() && chars[i] != quote {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(chars.len())
}

fn raw_string(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes =
        |i: usize| chars[i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    let end = (open + 1..chars.len()).find(|i| closes(*i));
    Some(end.map_or(chars.len(), |i| i + 1 + hashes))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words and signs of a code view.
pub fn tokens(code: &str) -> Vec<Token> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let chars: Vec<char> = line.chars().collect();
        let mut i = 0;
        while i < chars.len() {
            let length = match chars[i] {
                c if is_word(c) => chars[i..].iter().take_while(|c| is_word(**c)).count(),
                ':' if chars.get(i + 1) == Some(&':') => 2,
                _ => 1,
            };
            if !chars[i].is_whitespace() {
                found.push(Token {
                    text: chars[i..i + length].iter().collect(),
                    line: number + 1,
                });
            }
            i += length;
        }
    }
    found
}

fn is(tokens: &[Token], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|t| t.text == text)
}

/// Whether the tokens from `at` on read as `texts`.
pub fn reads(tokens: &[Token], at: usize, texts: &[&str]) -> bool {
    texts.iter().enumerate().all(|(n, text)| is(tokens, at + n, text))
}

/// The index behind the bracket that closes the one at `at`.
fn close(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

/// First and last line of each item under `#[cfg(test)]`.
fn test_items(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        if !reads(tokens, i, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            i += 1;
            continue;
        }
        let first = tokens[i].line;
        let mut end = i;
        while is(tokens, end, "#") {
            end = close(tokens, end + 1);
        }
        end = item_end(tokens, end);
        found.push((first, tokens[end.min(tokens.len()) - 1].line));
        i = end;
    }
    found
}

/// The index behind the item that starts at `at`: behind its `;`, or behind its braces.
fn item_end(tokens: &[Token], at: usize) -> usize {
    let mut i = at;
    while i < tokens.len() {
        match tokens[i].text.as_str() {
            ";" => return i + 1,
            "{" => {
                let end = close(tokens, i);
                // `use a::{b, c};` and `const X: T = T { … };` go on to their semicolon
                return if is(tokens, end, ";") { end + 1 } else { end };
            }
            "(" | "[" => i = close(tokens, i),
            _ => i += 1,
        }
    }
    tokens.len()
}

/// The functions with a body, nested ones included.
pub fn functions(code: &str) -> Vec<Function> {
    let tokens = tokens(code);
    let named = (0..tokens.len()).filter(|i| is(&tokens, *i, "fn") && !is(&tokens, i + 1, "("));
    named.filter_map(|at| function(&tokens, at)).collect()
}

fn function(tokens: &[Token], at: usize) -> Option<Function> {
    let mut open = at + 2;
    if is(tokens, open, "<") {
        open = angles(tokens, open);
    }
    let behind = close(tokens, open);
    let mut body = behind;
    while !is(tokens, body, "{") {
        match tokens.get(body)?.text.as_str() {
            ";" => return None,
            "(" | "[" => body = close(tokens, body),
            _ => body += 1,
        }
    }
    let end = close(tokens, body);
    let before = tokens[..at]
        .iter()
        .rev()
        .take(8)
        .take_while(|t| !matches!(t.text.as_str(), ";" | "{" | "}" | "]"));
    Some(Function {
        name: tokens[at + 1].text.clone(),
        line: tokens[at].line,
        lines: tokens[end - 1].line - tokens[at].line + 1,
        public: before.into_iter().any(|t| t.text == "pub"),
        bools: (open..behind).filter(|i| plain_bool(tokens, *i)).count(),
    })
}

fn plain_bool(tokens: &[Token], at: usize) -> bool {
    reads(tokens, at, &[":", "bool"]) && (is(tokens, at + 2, ",") || is(tokens, at + 2, ")"))
}

/// The index behind the `>` that closes the `<` at `at`.
fn angles(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0usize;
    for i in at..tokens.len() {
        match tokens[i].text.as_str() {
            "<" => depth += 1,
            ">" if !is(tokens, i - 1, "-") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

/// Every path that starts with `crate`, `self` or `super`, resolved from the crate's root; groups spread out.
pub fn references(source: &Source) -> Vec<Reference> {
    let tokens = tokens(&source.code);
    let mut found = Vec::new();
    let mut module = source.module();
    let mut inline: Vec<usize> = Vec::new();
    let (mut depth, mut i) = (0usize, 0);
    while i < tokens.len() {
        match tokens[i].text.as_str() {
            "mod" if is(&tokens, i + 2, "{") => {
                module.push(tokens[i + 1].text.clone());
                inline.push(depth);
                depth += 1;
                i += 3;
                continue;
            }
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if inline.last() == Some(&depth) {
                    inline.pop();
                    module.pop();
                }
            }
            "crate" | "super" | "self" if starts_path(&tokens, i) => {
                i = spread(&tokens, i, module.clone(), &mut found);
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    found
}

fn starts_path(tokens: &[Token], at: usize) -> bool {
    let follows = at > 0 && is(tokens, at - 1, "::");
    !follows && (is(tokens, at + 1, "::") || is(tokens, at + 1, "as"))
}

/// Follows one path, or one branch of a `use` group, from `at`; returns the index behind it.
fn spread(tokens: &[Token], at: usize, mut path: Vec<String>, found: &mut Vec<Reference>) -> usize {
    let mut i = at;
    loop {
        let Some(token) = tokens.get(i) else { return i };
        match token.text.as_str() {
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "self" => {}
            "{" => return group(tokens, i, &path, found),
            "<" => break,
            word => path.push(word.to_owned()),
        }
        i += 1;
        if !is(tokens, i, "::") {
            break;
        }
        i += 1;
    }
    found.push(Reference {
        path,
        line: tokens[at].line,
    });
    i
}

fn group(tokens: &[Token], open: usize, path: &[String], found: &mut Vec<Reference>) -> usize {
    let end = close(tokens, open);
    let mut i = open + 1;
    while i + 1 < end {
        i = spread(tokens, i, path.to_vec(), found);
        while i + 1 < end && !is(tokens, i, ",") {
            i += 1;
        }
        i += 1;
    }
    end
}
