//! The head of an HTTP/1 message: where it ends, its first line and its fields. Strict, because a head that two
//! readers could read in two ways is how one request is decided and another one sent.

/// Why bytes are not one clear HTTP/1 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("it does not begin like an HTTP/1 message")]
    NotHttp,
    #[error("a NUL byte in the head")]
    Nul,
    #[error("a CR or LF that is not a line end")]
    LineEnd,
    #[error("a head that is too long")]
    Long,
    #[error("a head that does not end")]
    Open,
    #[error("a first line that is not three words")]
    FirstLine,
    #[error("a version that is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    #[error("a folded field line")]
    Folded,
    #[error("a field line that is not `name: value`")]
    Field,
    #[error("a field that may stand once stands twice")]
    Twice,
    #[error("a length that is not a plain number")]
    Length,
    #[error("both a length and a transfer coding")]
    LengthAndCoding,
    #[error("a transfer coding that is not `chunked`, or in HTTP/1.0")]
    Coding,
    #[error("a Connection field that names a field the message depends on")]
    Nominated,
    #[error("chunks that do not follow the grammar")]
    Chunk,
    #[error("a target that is not an absolute http address")]
    Target,
    #[error("a scheme other than http (for https use CONNECT)")]
    Scheme,
    #[error("a fragment in the target")]
    Fragment,
    #[error("an address without a port")]
    NoPort,
    #[error("a Host field that differs from the target")]
    Host,
    #[error("a body on CONNECT")]
    ConnectBody,
    #[error("a switch of protocols that nobody asked for")]
    Switch,
    #[error("{0}")]
    Authority(#[from] super::authority::AuthorityError),
}

/// Finds the end of a head in a buffer that grows; every byte is looked at once.
#[derive(Debug, Default)]
pub struct Scan {
    seen: usize,
}

impl Scan {
    /// The length of the head with its empty line, or nothing yet. Errors as early as a byte shows them; a head may
    /// have at most `limit` bytes.
    pub fn advance(&mut self, bytes: &[u8], limit: usize) -> Result<Option<usize>, Malformed> {
        while let Some(&byte) = bytes.get(self.seen) {
            let after_cr = self.seen > 0 && bytes[self.seen - 1] == b'\r';
            match byte {
                _ if self.seen >= limit => return Err(Malformed::Long),
                // A TLS hello or an empty line shows at once, not after a timeout.
                _ if self.seen == 0 && !byte.is_ascii_alphabetic() => return Err(Malformed::NotHttp),
                0 => return Err(Malformed::Nul),
                _ if after_cr != (byte == b'\n') => return Err(Malformed::LineEnd),
                _ => {}
            }
            self.seen += 1;
            if bytes[..self.seen].ends_with(b"\r\n\r\n") {
                return Ok(Some(self.seen));
            }
        }
        Ok(None)
    }
}

/// The two versions that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Http10,
    Http11,
}

impl Version {
    /// Exactly `HTTP/1.0` or `HTTP/1.1`.
    pub fn parse(text: &[u8]) -> Result<Version, Malformed> {
        match text {
            b"HTTP/1.0" => Ok(Version::Http10),
            b"HTTP/1.1" => Ok(Version::Http11),
            _ => Err(Malformed::Version),
        }
    }
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
        }
    }
}

/// One field line: a token and a value without surrounding blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
}

/// The fields of one head, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields<'a>(pub Vec<Field<'a>>);

impl<'a> Fields<'a> {
    /// The values of every field of this name, any case.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a [u8]> + use<'a, 's> {
        self.0
            .iter()
            .filter(move |f| f.name.eq_ignore_ascii_case(name.as_bytes()))
            .map(|f| f.value)
    }
    /// The value of a field that may stand once only.
    pub fn one(&self, name: &str) -> Result<Option<&'a [u8]>, Malformed> {
        let mut values = self.all(name);
        let first = values.next();
        values.next().map_or(Ok(first), |_| Err(Malformed::Twice))
    }
    /// Whether a comma-separated field of this name has this word, any case.
    pub fn lists(&self, name: &str, word: &str) -> bool {
        self.all(name)
            .flat_map(words)
            .any(|w| w.eq_ignore_ascii_case(word.as_bytes()))
    }
    /// `Content-Length` as a number: once, digits only.
    pub fn length(&self) -> Result<Option<u64>, Malformed> {
        let Some(value) = self.one("content-length")? else {
            return Ok(None);
        };
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(value)
            .ok()
            .filter(|_| digits)
            .and_then(|t| t.parse().ok());
        number.map(Some).ok_or(Malformed::Length)
    }
    /// Whether the body is chunked; an error for any other coding, in HTTP/1.0, or beside a length.
    pub fn is_chunked(&self, version: Version) -> Result<bool, Malformed> {
        let Some(coding) = self.one("transfer-encoding")? else {
            return Ok(false);
        };
        if self.all("content-length").next().is_some() {
            return Err(Malformed::LengthAndCoding);
        }
        let chunked = coding.eq_ignore_ascii_case(b"chunked") && version == Version::Http11;
        chunked.then_some(true).ok_or(Malformed::Coding)
    }
    /// Refuses a `Connection` field that would have a hop remove what frames or directs the message.
    pub fn check_nominated(&self) -> Result<(), Malformed> {
        let vital = ["host", "content-length", "transfer-encoding"];
        let named = vital
            .iter()
            .any(|word| self.lists("connection", word) || self.lists("proxy-connection", word));
        if named { Err(Malformed::Nominated) } else { Ok(()) }
    }
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(trim)
}

/// Splits a whole head, its empty line included, into the first line and the fields.
pub fn split(head: &[u8]) -> Result<(&[u8], Fields<'_>), Malformed> {
    let mut rest = head
        .strip_suffix(b"\r\n")
        .filter(|r| r.ends_with(b"\r\n"))
        .ok_or(Malformed::Open)?;
    let mut lines = Vec::new();
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let line = &rest[..end];
        if line.contains(&0) {
            return Err(Malformed::Nul);
        }
        if line.iter().any(|b| matches!(b, b'\r' | b'\n')) {
            return Err(Malformed::LineEnd);
        }
        lines.push(line);
        rest = &rest[end + 2..];
    }
    let (first, fields) = lines.split_first().ok_or(Malformed::Open)?;
    let fields = fields.iter().copied().map(field).collect::<Result<_, _>>()?;
    Ok((first, Fields(fields)))
}

fn field(line: &[u8]) -> Result<Field<'_>, Malformed> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(Malformed::Folded);
    }
    let colon = line.iter().position(|b| *b == b':').ok_or(Malformed::Field)?;
    let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
    let clear = is_token(name) && value.iter().all(|b| is_text(*b));
    clear.then_some(Field { name, value }).ok_or(Malformed::Field)
}

/// Without blanks around; other white space is not forgiven.
fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Whether this is a token of RFC 9110: not empty, no blanks, no separators.
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|b| is_token_byte(*b))
}

/// Whether this may stand in a token.
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether this may stand in a field's value: no controls but the tab; bytes beyond ASCII pass.
pub fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::{Malformed, Scan, split};
    use proptest::prelude::{any, prop, proptest};

    fn scan(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        Scan::default().advance(bytes, 64)
    }

    #[test]
    fn finds_the_end_or_the_fault() {
        for (bytes, wanted) in [
            (&b"GET / HTTP/1.1\r\n\r\nrest"[..], Ok(Some(18))),
            (b"GET / HTTP/1.1\r\nA: b\r\n", Ok(None)),
            (b"GET / HTTP/1.1\r\nA: b\r", Ok(None)),
            (b"", Ok(None)),
            (b"GET / HTTP/1.1\n\n", Err(Malformed::LineEnd)),
            (b"GET / HTTP/1.1\r\n\n", Err(Malformed::LineEnd)),
            (b"GET / HTTP/1.1\r\r\n\r\n", Err(Malformed::LineEnd)),
            (b"GET / HTTP/1.1\rX\r\n\r\n", Err(Malformed::LineEnd)),
            (b"GET /\0 HTTP/1.1\r\n\r\n", Err(Malformed::Nul)),
            (b"\r\nGET / HTTP/1.1\r\n\r\n", Err(Malformed::NotHttp)),
            (b"\x16\x03\x01\x02\x00", Err(Malformed::NotHttp)),
        ] {
            assert_eq!(scan(bytes), wanted, "{}", bytes.escape_ascii());
        }
        let long = [&[b'a'; 60][..], b"\r\n\r\n"].concat();
        assert_eq!(scan(&long), Ok(Some(64)));
        assert_eq!(scan(&[b"a", &long[..]].concat()), Err(Malformed::Long));
    }

    #[test]
    fn refuses_unclear_fields() {
        for (line, error) in [
            ("A : b", Malformed::Field),
            (": b", Malformed::Field),
            ("nothing", Malformed::Field),
            ("A: b\x07", Malformed::Field),
            ("A: b\x7f", Malformed::Field),
            ("A:\x0cb", Malformed::Field),
            (" A: b", Malformed::Folded),
            ("\tA: b", Malformed::Folded),
            ("A\u{e9}: b", Malformed::Field),
            ("", Malformed::Field),
        ] {
            let head = format!("GET / HTTP/1.1\r\nX: y\r\n{line}\r\n\r\n");
            assert_eq!(split(head.as_bytes()).map(|_| ()), Err(error), "{line:?}");
        }
        let (first, fields) = split(b"GET / HTTP/1.1\r\nA:b \r\na: \xe9\tc\r\n\r\n").unwrap();
        assert_eq!(first, b"GET / HTTP/1.1");
        assert_eq!(fields.all("A").collect::<Vec<_>>(), [&b"b"[..], b"\xe9\tc"]);
        assert_eq!(fields.one("a"), Err(Malformed::Twice));
    }

    proptest! {
        #[test]
        fn any_cut_finds_the_same_end(text in "[aG:\\r\\n\\x00]{0,40}", cut in any::<prop::sample::Index>()) {
            let bytes = text.as_bytes();
            let cut = cut.index(bytes.len() + 1);
            let mut scan = Scan::default();
            let first = scan.advance(&bytes[..cut], 32);
            let in_two = if first == Ok(None) { scan.advance(bytes, 32) } else { first };
            assert_eq!(in_two, Scan::default().advance(bytes, 32));
        }

        #[test]
        fn splitting_never_panics_and_loses_nothing(bytes in any::<Vec<u8>>(), lines in "([A-Za-z]{1,3}:[ a-z]{0,4}\r\n){0,4}\r\n") {
            let _ = split(&bytes);
            let head = format!("G x y\r\n{lines}");
            let (_, fields) = split(head.as_bytes()).unwrap();
            assert_eq!(fields.0.len(), lines.matches(':').count());
        }
    }
}
