//! Text of unknown origin made safe to show: one line, nothing hidden, nothing lost.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

/// Shows a name, path or message so that it cannot lie: see [`visible_bytes`].
pub fn visible(text: impl AsRef<OsStr>) -> String {
    visible_bytes(text.as_ref().as_bytes())
}

/// Escapes whatever a terminal would act on or a person could not see: control, bidirectional, zero-width and other
/// format characters, blanks that are not a plain space, bytes that are not UTF-8, and the backslash, so that two
/// different inputs never look the same. Nothing is cut.
pub fn visible_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push(&mut shown, c));
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

fn push(shown: &mut String, c: char) {
    match c {
        '\\' => shown.push_str("\\\\"),
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        c if is_hidden(c) => shown.extend(c.escape_unicode()),
        c => shown.push(c),
    }
}

/// Controls, Unicode format characters (general category Cf), fillers, variation selectors, tags, odd blanks.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn leaves_ordinary_text_in_any_script_alone() {
        assert_eq!(visible("naïve ñandú 東京 – 🐑 a'b\"c"), "naïve ñandú 東京 – 🐑 a'b\"c");
    }

    #[test]
    fn shows_what_a_terminal_would_obey_or_hide() {
        for (raw, shown) in [
            ("a\r\u{1b}[2Kok", "a\\r\\u{1b}[2Kok"),
            ("line\nApproved", "line\\nApproved"),
            ("\u{202e}gpj.exe\u{2066}", "\\u{202e}gpj.exe\\u{2066}"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("x\u{2028}y\u{85}z", "x\\u{2028}y\\u{85}z"),
            ("v\u{e0100}t\u{e0041}", "v\\u{e0100}t\\u{e0041}"),
            ("\u{a0}\u{3000}\u{3164}", "\\u{a0}\\u{3000}\\u{3164}"),
            ("\u{7f}\u{0}", "\\u{7f}\\u{0}"),
        ] {
            assert_eq!(visible(raw), shown);
        }
    }

    #[test]
    fn shows_bytes_that_are_not_text_one_by_one() {
        assert_eq!(visible_bytes(b"p\nq \xff\"x\xc3"), "p\\nq \\xff\"x\\xc3");
    }

    proptest! {
        #[test]
        fn different_bytes_never_look_the_same(a: Vec<u8>, b: Vec<u8>) {
            prop_assert_eq!(a == b, visible_bytes(&a) == visible_bytes(&b));
        }

        #[test]
        fn what_is_shown_needs_no_second_escape(bytes: Vec<u8>) {
            let shown = visible_bytes(&bytes);
            prop_assert!(!shown.chars().any(is_hidden));
        }
    }
}
