//! The profiles that come with the binary.

const SHIPPED: [(&str, &str); 9] = [
    ("system", include_str!("../../../profiles/system.json")),
    ("default", include_str!("../../../profiles/default.json")),
    ("strict", include_str!("../../../profiles/strict.json")),
    ("claude", include_str!("../../../profiles/claude.json")),
    ("codex", include_str!("../../../profiles/codex.json")),
    ("gemini", include_str!("../../../profiles/gemini.json")),
    ("pi", include_str!("../../../profiles/pi.json")),
    (
        "opencode-server",
        include_str!("../../../profiles/opencode-server.json"),
    ),
    (
        "opencode-client",
        include_str!("../../../profiles/opencode-client.json"),
    ),
];

/// The names of the shipped profiles.
pub fn shipped_names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// The text of a shipped profile.
pub(super) fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
