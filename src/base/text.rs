//! Text of unknown origin, made safe to look at.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// The bytes as text in which everything that could move, hide or reorder other text is written as an escape.
pub fn visible(text: impl AsRef<OsStr>) -> String {
    let mut out = String::new();
    for chunk in text.as_ref().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_plain(c) {
                out.push(c)
            } else {
                out.extend(c.escape_unicode())
            }
        }
        out.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    out
}

fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::visible;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn escapes_what_moves_hides_or_reorders_text() {
        assert_eq!(visible("a\r\u{1b}[2Kb"), "a\\u{d}\\u{1b}[2Kb");
        assert_eq!(visible("x\u{202e}y\u{200b}z\u{2066}"), "x\\u{202e}y\\u{200b}z\\u{2066}");
        assert_eq!(visible(std::ffi::OsStr::from_bytes(b"p\xffq")), "p\\xffq");
        assert_eq!(visible("größe 名 ok"), "größe 名 ok");
    }
}
