//! Which modes a program has switched on in the terminal, remembered cheaply from the bytes that pass.

use std::collections::BTreeSet;

/// Private modes that would leave a terminal unusable or odd while they are on: cursor keys, colours and origin turned
/// around, mice of every kind and spelling, other screens, paste in brackets, held-back output, reports of colours,
/// sizes and keys.
const WATCHED: [u16; 25] = [
    1, 5, 6, 9, 47, 66, 69, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026, 2027, 2031,
    2048, 9001, 1007,
];
/// The same that are on from the start: off is what must be undone. Line wrap, and the cursor.
const ON_AT_FIRST: [u16; 2] = [7, 25];
/// Those that are another screen, which has its own stack of keyboard modes (the kitty protocol).
const SCREENS: [u16; 3] = [47, 1047, 1049];
/// Parameter bytes of a sequence that are looked at; longer ones are not mode switches.
const LONGEST: usize = 32;

/// Follows escape sequences over any split of the bytes.
#[derive(Debug, Default)]
pub struct Modes {
    state: State,
    parameters: Vec<u8>,
    left: Left,
}

/// What a program has changed and not changed back.
#[derive(Debug, Default, PartialEq, Eq)]
struct Left {
    on: BTreeSet<u16>,
    off: BTreeSet<u16>,
    /// Of the main screen and of the other one.
    keyboards: [Keyboard; 2],
    titles: u16,
    keypad: bool,
    insert: bool,
    region: bool,
    cursor_shape: bool,
    /// Keys reported in xterm's way (modifyOtherKeys).
    other_keys: bool,
    /// Line drawing in the place of letters.
    drawing: bool,
    shifted: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Keyboard {
    pushes: u16,
    set: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// After `ESC (`: one byte names the character set.
    Charset,
    Csi,
}

impl Modes {
    /// Looks at bytes on their way to the terminal.
    pub fn watch(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::Text {
                // Shifting out is the one change that is no sequence.
                let Some(at) = rest.iter().position(|byte| matches!(byte, 0x1b | 0x0e | 0x0f)) else {
                    return;
                };
                match rest.get(at) {
                    Some(0x1b) => self.state = State::Escape,
                    other => self.left.shifted = other == Some(&0x0e),
                }
                rest = rest.get(at + 1..).unwrap_or_default();
                continue;
            }
            let Some((byte, after)) = rest.split_first() else {
                return;
            };
            rest = after;
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (_, 0x1b) => State::Escape,
            (State::Escape, b'[') => {
                self.parameters.clear();
                State::Csi
            }
            (State::Escape, b'(') => State::Charset,
            (State::Escape, _) => {
                self.short(byte);
                State::Text
            }
            (State::Charset, _) => {
                self.left.drawing = byte != b'B';
                State::Text
            }
            (State::Csi, 0x20..=0x3f) if self.parameters.len() < LONGEST => {
                self.parameters.push(byte);
                State::Csi
            }
            (State::Csi, 0x40..=0x7e) => {
                let parameters = std::mem::take(&mut self.parameters);
                self.left.finish(&parameters, byte);
                self.parameters = parameters;
                State::Text
            }
            _ => State::Text,
        };
    }

    /// A sequence of one letter.
    fn short(&mut self, byte: u8) {
        match byte {
            b'=' => self.left.keypad = true,
            b'>' => self.left.keypad = false,
            // A full reset of the terminal.
            b'c' => self.left = Left::default(),
            _ => {}
        }
    }

    /// The bytes that undo what is still on; empty if the program cleaned up after itself.
    pub fn undo(&self) -> Vec<u8> {
        self.left.undo().into_bytes()
    }
}

impl Left {
    fn finish(&mut self, parameters: &[u8], last: u8) {
        let numbers = |from: usize| -> Vec<u16> {
            let text = String::from_utf8_lossy(parameters.get(from..).unwrap_or_default()).into_owned();
            text.split(';').filter_map(|number| number.parse().ok()).collect()
        };
        let screen = usize::from(SCREENS.iter().any(|mode| self.on.contains(mode)));
        match (parameters, last) {
            ([b'?', ..], b'h' | b'l') => numbers(1).into_iter().for_each(|mode| self.switch(mode, last)),
            ([b'>', ..], b'u') => self.keyboards[screen].push(),
            ([b'<', ..], b'u') => self.keyboards[screen].pop(numbers(1).first().copied().unwrap_or(1)),
            ([b'=', ..], b'u') => self.keyboards[screen].set = numbers(1).first().is_some_and(|flags| *flags != 0),
            ([b'>', ..], b'm') => self.other_keys = matches!(numbers(1)[..], [4, level] if level != 0),
            ([b'4'], b'h' | b'l') => self.insert = last == b'h',
            ([b'!'], b'p') => self.soft_reset(),
            ([shape @ .., b' '], b'q') => self.cursor_shape = !matches!(shape, [] | [b'0']),
            ([] | [b'0'..=b'9' | b';', ..], b'r') => self.region = !parameters.is_empty(),
            ([b'2', b'2', ..], b't') => self.titles = self.titles.saturating_add(1),
            ([b'2', b'3', ..], b't') => self.titles = self.titles.saturating_sub(1),
            _ => {}
        }
    }

    fn switch(&mut self, mode: u16, last: u8) {
        let (set, is_changed) = match (WATCHED.contains(&mode), ON_AT_FIRST.contains(&mode)) {
            (true, _) => (&mut self.on, last == b'h'),
            (_, true) => (&mut self.off, last == b'l'),
            _ => return,
        };
        if is_changed {
            set.insert(mode);
        } else {
            set.remove(&mode);
        }
    }

    /// DECSTR gives back these, and not mice, screens and keyboards.
    fn soft_reset(&mut self) {
        (self.keypad, self.insert, self.region) = (false, false, false);
        (self.drawing, self.shifted) = (false, false);
        self.off.clear();
        self.on.retain(|mode| !matches!(mode, 1 | 6 | 69));
    }

    fn undo(&self) -> String {
        let mut out = String::new();
        let [main, other] = &self.keyboards;
        other.undo(&mut out);
        for mode in self.on.iter().rev().filter(|mode| !SCREENS.contains(mode)) {
            out.push_str(&format!("\x1b[?{mode}l"));
        }
        let single = [
            (self.other_keys, "\x1b[>4;0m"),
            (self.keypad, "\x1b>"),
            (self.insert, "\x1b[4l"),
            (self.shifted, "\x0f"),
            (self.drawing, "\x1b(B"),
            (self.cursor_shape, "\x1b[0 q"),
            // Setting the region moves the cursor.
            (self.region, "\x1b7\x1b[r\x1b8"),
        ];
        single
            .iter()
            .filter(|(is_left, _)| *is_left)
            .for_each(|(_, bytes)| out.push_str(bytes));
        for mode in self.on.iter().filter(|mode| SCREENS.contains(mode)) {
            out.push_str(&format!("\x1b[?{mode}l"));
        }
        main.undo(&mut out);
        self.off.iter().for_each(|mode| out.push_str(&format!("\x1b[?{mode}h")));
        out.push_str(&"\x1b[23;0t".repeat(usize::from(self.titles.min(10))));
        if !out.is_empty() {
            out.push_str("\x1b[0m");
        }
        out
    }
}

impl Keyboard {
    fn push(&mut self) {
        self.pushes = self.pushes.saturating_add(1);
    }

    fn pop(&mut self, count: u16) {
        self.pushes = self.pushes.saturating_sub(count.max(1));
    }

    fn undo(&self, out: &mut String) {
        if self.pushes > 0 {
            out.push_str(&format!("\x1b[<{}u", self.pushes));
        }
        if self.set {
            out.push_str("\x1b[=0u");
        }
    }
}

#[cfg(test)]
mod tests;
