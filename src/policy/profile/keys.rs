//! The table of known keys (`profiles/keys.json`), and the nearest one to a typing mistake.

use super::ProfileError;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::LazyLock;

/// The table of known keys.
#[derive(Debug, Deserialize)]
pub(super) struct Keys {
    /// What is used.
    pub keys: BTreeMap<String, Key>,
    /// Other names of what is used.
    pub aliases: BTreeMap<String, String>,
    pub ignored: BTreeMap<String, String>,
    pub refused: BTreeMap<String, String>,
    /// The fields of each kind of entry and the kinds of their values; one with `?` behind it may be left out.
    pub entries: BTreeMap<String, BTreeMap<String, String>>,
    /// The kinds of values, as JSON Schema.
    pub values: BTreeMap<String, Value>,
}

/// A key that is used.
#[derive(Debug, Deserialize)]
pub(super) struct Key {
    pub value: String,
    pub about: String,
}

/// What a key is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known<'a> {
    /// Used, under this name.
    Used(&'a str),
    /// Can only loosen; the reason why it is not used.
    Ignored(&'a str),
    /// Would narrow; the reason why that is not done.
    Refused(&'a str),
    /// Has known keys below it.
    Section,
    Unknown,
}

/// Whether a key of the map begins so.
fn first_from<T>(map: &BTreeMap<String, T>, start: &str) -> bool {
    let mut from = map.range::<str, _>((Bound::Included(start), Bound::Unbounded));
    from.next().is_some_and(|(key, _)| key.starts_with(start))
}

impl Keys {
    /// The embedded table, parsed once: a profile is made of several files.
    pub fn parse() -> Result<&'static Keys, ProfileError> {
        static TABLE: LazyLock<Result<Keys, serde_json::Error>> =
            LazyLock::new(|| serde_json::from_str(include_str!("../../../profiles/keys.json")));
        TABLE.as_ref().map_err(|error| ProfileError::Keys(error.to_string()))
    }

    /// What the key with this full name is for.
    pub fn look_up(&self, key: &str) -> Known<'_> {
        if let Some(reason) = self.ignored.get(key) {
            return Known::Ignored(reason);
        }
        if let Some(reason) = self.refused.get(key) {
            return Known::Refused(reason);
        }
        if let Some(name) = self.aliases.get(key) {
            return Known::Used(name);
        }
        if let Some((name, _)) = self.keys.get_key_value(key) {
            return Known::Used(name);
        }
        let start = format!("{key}.");
        let is_section = first_from(&self.keys, &start)
            || first_from(&self.aliases, &start)
            || first_from(&self.ignored, &start)
            || first_from(&self.refused, &start);
        if is_section { Known::Section } else { Known::Unknown }
    }

    /// The names that an entry of this kind may have.
    pub fn of_entry(&self, kind: &str) -> Vec<&str> {
        let fields = self.entries.get(kind).into_iter().flat_map(BTreeMap::keys);
        fields.map(|name| name.trim_end_matches('?')).collect()
    }

    /// The known key that is nearest to `key`, if one is near.
    pub fn nearest(&self, key: &str) -> Option<String> {
        let sections = self
            .all()
            .flat_map(|known| known.match_indices('.').map(|(at, _)| &known[..at]));
        nearest(key, self.all().chain(sections))
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let used = self.keys.keys().chain(self.aliases.keys());
        used.chain(self.ignored.keys())
            .chain(self.refused.keys())
            .map(String::as_str)
    }
}
/// The candidate with the fewest edits, if a third of the word or less has to change. A word that only stands in the
/// wrong section counts as one edit away.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let last = |text: &str| text.rsplit('.').next().map(str::to_owned);
    candidates
        .map(|known| {
            (
                if last(known) == last(word) {
                    1
                } else {
                    distance(word, known)
                },
                known,
            )
        })
        .min()
        .filter(|(edits, known)| *edits <= (known.len().max(word.len()) / 3).max(1))
        .map(|(_, known)| known.to_owned())
}

/// Levenshtein's distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let best = (corner + usize::from(x != y)).min(left + 1).min(*cell + 1);
            corner = *cell;
            *cell = best;
            left = best;
        }
        row[0] = i + 1;
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
    }

    #[test]
    fn finds_the_nearest_key_and_none_that_is_far() {
        let keys = Keys::parse().unwrap();
        assert_eq!(keys.nearest("filesystem.raed").as_deref(), Some("filesystem.read"));
        assert_eq!(keys.nearest("allow_domain").as_deref(), Some("network.allow_domain"));
        assert_eq!(keys.nearest("netwrok").as_deref(), Some("network"));
        assert_eq!(keys.nearest("zzzzzzzzzzzz"), None);
        assert_eq!(keys.look_up("pinfold.limits"), Known::Section);
        assert_eq!(keys.look_up("pinfold.limit"), Known::Unknown);
    }
}
