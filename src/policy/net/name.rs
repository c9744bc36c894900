//! Host names: two spellings of one host become one name, and what is no name is refused.

use std::net::IpAddr;

/// Why a text is not taken as a host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name has an empty label")]
    EmptyLabel,
    #[error("the name is longer than 253 characters")]
    TooLong,
    #[error("a label of the name is longer than 63 characters")]
    LabelTooLong,
    #[error("the name has a character in it that no host name has")]
    Character,
    #[error("the name is not valid IDNA")]
    Idna,
    #[error("this is an address, not a name")]
    Literal,
}

/// The name as A-labels in lower case, exactly one trailing dot taken off. Refuses addresses in every spelling.
pub fn normalise(text: &str) -> Result<String, NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    // Longer input is refused before IDNA's work on it: four bytes a character at most.
    if text.len() > 4 * 254 {
        return Err(NameError::TooLong);
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if text.bytes().any(|b| b.is_ascii() && !plain(b)) {
        return Err(if is_literal(text) {
            NameError::Literal
        } else {
            NameError::Character
        });
    }
    let ascii = idna::domain_to_ascii_cow(text.as_bytes(), idna::AsciiDenyList::URL).map_err(|_| NameError::Idna)?;
    let name = ascii.strip_suffix('.').unwrap_or(&ascii);
    if !name.bytes().all(plain) {
        return Err(NameError::Character);
    }
    if name.is_empty() || name.split('.').any(str::is_empty) {
        return Err(NameError::EmptyLabel);
    }
    if name.len() > 253 {
        return Err(NameError::TooLong);
    }
    if name.split('.').any(|label| label.len() > 63) {
        return Err(NameError::LabelTooLong);
    }
    if is_literal(name) {
        return Err(NameError::Literal);
    }
    Ok(name.to_owned())
}

/// Whether some resolver or library would take the text for an address: IPv4 in one to four decimal, octal or
/// hexadecimal parts (`127.1`, `0x7f.1`, `2130706433`), IPv6 with or without brackets and zone. As in the URL
/// standard, a last label that is a number makes the whole an address.
pub fn is_literal(text: &str) -> bool {
    let bare = text
        .strip_prefix('[')
        .map_or(text, |rest| rest.strip_suffix(']').unwrap_or(rest));
    if bare.contains(':') || bare.parse::<IpAddr>().is_ok() {
        return true;
    }
    let last = bare
        .strip_suffix('.')
        .unwrap_or(bare)
        .rsplit('.')
        .next()
        .unwrap_or_default();
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits(last) || hex.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()))
}
