//! How long a body is: the reader of lengths and chunks, fed with pieces of any size.

use super::head::{Malformed, is_text, is_token_byte};

/// The most bytes that the extensions of one chunk, or all trailers, may take.
const LONGEST_ASIDE: usize = 4096;

/// What is left of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks, passed on as they are.
    Chunked(Chunks),
    /// Everything until the sender closes.
    Rest,
}

impl Body {
    /// No body.
    pub const EMPTY: Body = Body::Length(0);

    /// How many of these bytes belong to the body; what follows them belongs to the next message.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self {
            Body::Length(left) => Ok(cut(left, bytes.len())),
            Body::Chunked(chunks) => chunks.take(bytes),
            Body::Rest => Ok(bytes.len()),
        }
    }
    /// Whether nothing more belongs to it.
    pub fn is_done(&self) -> bool {
        match self {
            Body::Length(left) => *left == 0,
            Body::Chunked(chunks) => chunks.at == At::Done,
            Body::Rest => false,
        }
    }
}

/// Takes at most `len` from `left` and says how much.
fn cut(left: &mut u64, len: usize) -> usize {
    let taken = usize::try_from(*left).map_or(len, |left| left.min(len));
    *left = left.saturating_sub(taken as u64);
    taken
}

/// Where in a chunked body the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// First digit of a size.
    First,
    Size,
    /// Blanks after a size, as some servers pad it.
    Pad,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// Start of a trailer line or of the final empty line.
    Line,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

/// A chunked body on its way through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    at: At,
    /// Data bytes of the current chunk that are still to come.
    left: u64,
    /// Bytes of extensions or trailers so far.
    aside: usize,
}

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks {
            at: At::First,
            left: 0,
            aside: 0,
        }
    }
}

impl Chunks {
    fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut used = 0;
        while used < bytes.len() && self.at != At::Done {
            if self.at == At::Data {
                used += cut(&mut self.left, bytes.len() - used);
                if self.left == 0 {
                    self.at = At::DataCr;
                }
                continue;
            }
            self.at = self.step(bytes[used]).ok_or(Malformed::Chunk)?;
            used += 1;
        }
        Ok(used)
    }

    fn step(&mut self, byte: u8) -> Option<At> {
        match (self.at, byte) {
            (At::First | At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte),
            (At::Size | At::Pad | At::Extension, b'\r') => Some(At::SizeLf),
            (At::Size | At::Pad, b' ' | b'\t') => self.beside(At::Pad),
            (At::Size | At::Pad, b';') => self.beside(At::Extension),
            (At::Extension, _) if is_text(byte) => self.beside(At::Extension),
            (At::SizeLf, b'\n') => {
                self.aside = 0;
                Some(if self.left == 0 { At::Line } else { At::Data })
            }
            (At::DataCr, b'\r') => Some(At::DataLf),
            (At::DataLf, b'\n') => Some(At::First),
            (At::Line, b'\r') => Some(At::EndLf),
            (At::Line | At::TrailerName, _) if is_token_byte(byte) => self.beside(At::TrailerName),
            (At::TrailerName, b':') => self.beside(At::TrailerValue),
            (At::TrailerValue, b'\r') => Some(At::TrailerLf),
            (At::TrailerValue, _) if is_text(byte) => self.beside(At::TrailerValue),
            (At::TrailerLf, b'\n') => Some(At::Line),
            (At::EndLf, b'\n') => Some(At::Done),
            _ => None,
        }
    }

    fn digit(&mut self, byte: u8) -> Option<At> {
        let digit = char::from(byte).to_digit(16)?;
        // An overflow here is how a large size becomes a small one for the next reader.
        self.left = self.left.checked_mul(16)?.checked_add(u64::from(digit))?;
        self.beside(At::Size)
    }

    fn beside(&mut self, next: At) -> Option<At> {
        self.aside += 1;
        (self.aside <= LONGEST_ASIDE).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, Chunks};
    use crate::sandbox::egress::head::Malformed;
    use proptest::prelude::{any, proptest};

    fn chunked(bytes: &[u8]) -> Result<(usize, bool), Malformed> {
        let mut body = Body::Chunked(Chunks::default());
        body.take(bytes).map(|used| (used, body.is_done()))
    }

    #[test]
    fn takes_chunks_to_their_end_and_no_further() {
        for (bytes, used, done) in [
            (&b"0\r\n\r\n"[..], 5, true),
            (b"5\r\nhello\r\n0\r\n\r\nGET", 15, true),
            (b"A;x=\"y\"\r\n0123456789\r\n0\r\n\r\n", 26, true),
            (b"5  \r\nhello\r\n000\r\nT: v\r\nU:\r\n\r\n", 29, true),
            (b"5\r\nhel", 6, false),
            (b"0\r\n", 3, false),
        ] {
            assert_eq!(chunked(bytes), Ok((used, done)), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn refuses_chunks_with_two_readings() {
        for bytes in [
            &b"\r\n"[..],
            b"5\nhello\r\n",
            b"5;a\nb\r\nhello\r\n",
            b"5\rX",
            b"+5\r\n",
            b"0x5\r\n",
            b"-1\r\n",
            b" 5\r\n",
            b"5 5\r\n",
            b"5\r\nhello0\r\n",
            b"5\r\nhelloXX",
            b"10000000000000000\r\n",
            b"0\r\nno colon\r\n",
            b"0\r\n folded: x\r\n",
            b"0\r\nA: b\n",
            b"0\r\n\rX",
        ] {
            assert_eq!(chunked(bytes), Err(Malformed::Chunk), "{}", bytes.escape_ascii());
        }
        let endless = [b"5;".to_vec(), vec![b'x'; 5000]].concat();
        assert_eq!(chunked(&endless), Err(Malformed::Chunk));
    }

    #[test]
    fn a_length_ends_where_it_says() {
        let mut body = Body::Length(3);
        assert_eq!((body.take(b"ab"), body.is_done()), (Ok(2), false));
        assert_eq!((body.take(b"cde"), body.is_done()), (Ok(1), true));
        assert_eq!(Body::Length(u64::MAX).take(b"abc"), Ok(3));
        assert!(Body::EMPTY.is_done() && !Body::Rest.is_done());
    }

    proptest! {
        #[test]
        fn any_cut_reads_the_same(bytes in any::<Vec<u8>>(), text in "[05aA;: \\r\\n]{0,30}", cut in 0usize..30) {
            for input in [&bytes[..], text.as_bytes()] {
                let cut = cut.min(input.len());
                let mut body = Body::Chunked(Chunks::default());
                let in_two = body.take(&input[..cut]).and_then(|n| {
                    if body.is_done() { Ok(n) } else { body.take(&input[cut..]).map(|m| n + m) }
                });
                assert_eq!(in_two.map(|n| (n, body.is_done())), chunked(input));
            }
        }

        #[test]
        fn well_made_chunks_are_taken_whole(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..5)) {
            let mut bytes = Vec::new();
            for part in &parts {
                bytes.extend(format!("{:X}\r\n", part.len()).into_bytes());
                bytes.extend(part);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            assert_eq!(chunked(&bytes), Ok((bytes.len(), true)));
        }
    }
}
