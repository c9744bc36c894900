//! Which modes a program has switched on in the terminal, remembered cheaply from the bytes that pass.

use std::collections::BTreeSet;

/// Private modes that would leave a terminal unusable, and what switches each back.
const WATCHED: [u16; 13] = [1, 9, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1049, 2004];
/// The cursor: hidden is the state that must be undone.
const CURSOR: u16 = 25;
/// Parameter bytes of a sequence that are looked at; longer ones are not mode switches.
const LONGEST: usize = 32;

/// Follows CSI sequences over any split of the bytes.
#[derive(Debug, Default)]
pub struct Modes {
    state: State,
    parameters: Vec<u8>,
    on: BTreeSet<u16>,
    cursor_hidden: bool,
    keyboard_pushes: u16,
    keypad: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    Csi,
}

impl Modes {
    /// Looks at bytes on their way to the terminal.
    pub fn watch(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::Text {
                let Some(escape) = rest.iter().position(|byte| *byte == 0x1b) else {
                    return;
                };
                rest = rest.get(escape + 1..).unwrap_or_default();
                self.state = State::Escape;
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
            (State::Escape, b'=') => {
                self.keypad = true;
                State::Text
            }
            (State::Escape, b'>') => {
                self.keypad = false;
                State::Text
            }
            (State::Csi, 0x20..=0x3f) if self.parameters.len() < LONGEST => {
                self.parameters.push(byte);
                State::Csi
            }
            (State::Csi, 0x40..=0x7e) => {
                self.finish(byte);
                State::Text
            }
            _ => State::Text,
        };
    }

    fn finish(&mut self, last: u8) {
        match (self.parameters.first(), last) {
            (Some(b'?'), b'h' | b'l') => {
                let text = String::from_utf8_lossy(self.parameters.get(1..).unwrap_or_default()).into_owned();
                for number in text.split(';').filter_map(|number| number.parse().ok()) {
                    self.switch(number, last == b'h');
                }
            }
            (Some(b'>'), b'u') => self.keyboard_pushes = self.keyboard_pushes.saturating_add(1),
            (Some(b'<'), b'u') => self.keyboard_pushes = self.keyboard_pushes.saturating_sub(1),
            _ => {}
        }
    }

    fn switch(&mut self, number: u16, on: bool) {
        if number == CURSOR {
            self.cursor_hidden = !on;
        } else if WATCHED.contains(&number) {
            if on {
                self.on.insert(number);
            } else {
                self.on.remove(&number);
            }
        }
    }

    /// The bytes that undo what is still on; empty if the program cleaned up after itself.
    pub fn undo(&self) -> Vec<u8> {
        let mut out = String::new();
        if self.keyboard_pushes > 0 {
            out.push_str(&format!("\x1b[<{}u", self.keyboard_pushes));
        }
        for mode in self.on.iter().rev() {
            out.push_str(&format!("\x1b[?{mode}l"));
        }
        if self.keypad {
            out.push_str("\x1b>");
        }
        if self.cursor_hidden {
            out.push_str("\x1b[?25h");
        }
        if !out.is_empty() {
            out.push_str("\x1b[0m");
        }
        out.into_bytes()
    }
}

#[cfg(test)]
mod tests {
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
}
