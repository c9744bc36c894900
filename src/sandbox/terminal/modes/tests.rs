//! What is remembered, and what undoes it.

use super::Modes;

fn undo(chunks: &[&[u8]]) -> String {
    let mut modes = Modes::default();
    chunks.iter().for_each(|chunk| modes.watch(chunk));
    String::from_utf8(modes.undo()).unwrap()
}

#[test]
fn what_was_left_on_is_switched_off() {
    let left = undo(&[b"\x1b[?1049h\x1b[?1003h\x1b[?2004h\x1b[>1u\x1b[?25l"]);
    for code in ["\x1b[?1049l", "\x1b[?1003l", "\x1b[?2004l", "\x1b[<1u", "\x1b[?25h"] {
        assert!(left.contains(code), "{code:?} in {left:?}");
    }
}

#[test]
fn a_clean_program_leaves_nothing_to_undo() {
    assert_eq!(
        undo(&[b"\x1b[?1049h\x1b[?25lhi\x1b[?25h\x1b[?1049l", b"\x1b[1;31mred\x1b[0m"]),
        ""
    );
}

#[test]
fn a_sequence_split_anywhere_is_still_seen() {
    let whole = b"x\x1b[?1000;1006hy";
    for at in 0..whole.len() {
        let (a, b) = whole.split_at(at);
        let left = undo(&[a, b]);
        assert!(
            left.contains("\x1b[?1000l") && left.contains("\x1b[?1006l"),
            "split at {at}: {left:?}"
        );
    }
}

#[test]
fn rubbish_is_bounded() {
    let mut modes = Modes::default();
    modes.watch(b"\x1b[");
    modes.watch(&vec![b'1'; 1 << 20]);
    assert!(modes.parameters.len() <= super::LONGEST);
}

#[test]
fn every_mode_that_stays_is_undone_and_one_that_went_is_not() {
    // What is switched on, what switches it off again, and what undoes it where that did not come.
    let pairs: [(&str, &str, &str); 14] = [
        ("\x1b=", "\x1b>", "\x1b>"),
        ("\x1b[?25l", "\x1b[?25h", "\x1b[?25h"),
        ("\x1b[?7l", "\x1b[?7h", "\x1b[?7h"),
        ("\x1b[?2026h", "\x1b[?2026l", "\x1b[?2026l"),
        ("\x1b[?1016h", "\x1b[?1016l", "\x1b[?1016l"),
        ("\x1b[>1u", "\x1b[<u", "\x1b[<1u"),
        ("\x1b[=5;1u", "\x1b[=0;1u", "\x1b[=0u"),
        ("\x1b[>4;2m", "\x1b[>4;0m", "\x1b[>4;0m"),
        ("\x1b[22;0t", "\x1b[23;0t", "\x1b[23;0t"),
        ("\x1b[5 q", "\x1b[0 q", "\x1b[0 q"),
        ("\x1b[2;10r", "\x1b[r", "\x1b[r"),
        ("\x1b[4h", "\x1b[4l", "\x1b[4l"),
        ("\x1b(0", "\x1b(B", "\x1b(B"),
        ("\x0e", "\x0f", "\x0f"),
    ];
    for (on, off, expected) in pairs {
        assert!(
            undo(&[on.as_bytes()]).contains(expected),
            "{on:?}: {:?}",
            undo(&[on.as_bytes()])
        );
        assert_eq!(undo(&[on.as_bytes(), off.as_bytes()]), "", "{on:?} {off:?}");
        assert_eq!(undo(&[on.as_bytes(), b"\x1bc"]), "", "{on:?} and a full reset");
    }
}

#[test]
fn each_screen_has_its_own_keyboard() {
    let left = undo(&[b"\x1b[>1u\x1b[?1049h\x1b[>3u\x1b[>3u"]);
    let places = ["\x1b[<2u", "\x1b[?1049l", "\x1b[<1u"].map(|code| left.find(code).unwrap());
    assert!(places.is_sorted(), "{left:?}");
    assert_eq!(undo(&[b"\x1b[?1049h\x1b[>1u\x1b[<1u\x1b[?1049l"]), "");
}

#[test]
fn words_about_modes_are_no_modes() {
    assert_eq!(
        undo(&[b"[?1049h \x1b]0;a title\x07 \x1b[1;5H\x1b[38;5;22m\x1b[6n\x1b[?1$p"]),
        ""
    );
}
