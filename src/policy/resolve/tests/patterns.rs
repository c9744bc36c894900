//! Patterns, denies under grants, and files with more than one name.

use super::*;

fn resolved(host: &MemoryHost, text: &str) -> Result<Policy, ResolveError> {
    resolve(&profile(host, text), &request(), host)
}

fn targets(policy: &Policy, below: &str) -> Vec<String> {
    let targets = policy.binds.iter().map(|bind| bind.target.to_string());
    targets.filter(|target| target.starts_with(below)).collect()
}

fn note(policy: &Policy, topic: Topic, subject: &str) -> Option<String> {
    let found = policy
        .notes
        .iter()
        .find(|note| note.topic == topic && note.subject == subject);
    found.map(|note| note.text.clone())
}

#[test]
fn a_pattern_grants_what_fits_it_now_and_never_through_a_link() {
    let host = MemoryHost::debian()
        .dir("/home/ann/.cache/foo-1")
        .dir("/home/ann/.cache/foo-2")
        .dir("/home/ann/.cache/bar")
        .socket("/home/ann/.cache/foo-s")
        .link("/home/ann/.cache/foo-out", "/home/ann/.ssh");
    let policy = resolved(&host, r#"{"filesystem": {"read": ["$HOME/.cache/foo-*"]}}"#).unwrap();
    assert_eq!(
        targets(&policy, "/home/ann/.cache"),
        ["/home/ann/.cache/foo-1", "/home/ann/.cache/foo-2"]
    );
    assert_eq!(
        note(&policy, Topic::LeftOut, "/home/ann/.cache/foo-s").unwrap(),
        "it is a socket"
    );
    let none = resolved(&host, r#"{"filesystem": {"read": ["$HOME/.cache/qux-*"]}}"#).unwrap();
    assert!(note(&none, Topic::LeftOut, "/home/ann/.cache/qux-*").is_some());
}

#[test]
fn a_pattern_is_held_to_the_same_rules_as_a_path() {
    let host = MemoryHost::debian();
    let broad = resolved(&host, r#"{"filesystem": {"allow": ["/*"]}}"#);
    assert!(matches!(broad, Err(ResolveError::TooBroad { .. })), "{broad:?}");
    let home = resolved(&host, r#"{"filesystem": {"read": ["/home/*"]}}"#);
    assert!(matches!(home, Err(ResolveError::TooBroad { .. })), "{home:?}");
    let up = resolved(&host, r#"{"filesystem": {"read": ["/usr/*/../x"]}}"#);
    assert!(matches!(up, Err(ResolveError::Pattern { .. })), "{up:?}");
    let mut typed = request();
    typed.grants.push(CommandGrant {
        flag: "--read".to_owned(),
        path: PathBuf::from("nothing-*"),
        access: Access::Read,
    });
    let missing = resolve(&shipped("default"), &typed, &host);
    assert!(matches!(missing, Err(ResolveError::Missing { .. })), "{missing:?}");
}

#[test]
fn a_deny_with_two_stars_is_refused_with_the_reason_and_looks_at_nothing() {
    let host = MemoryHost::debian();
    let error = resolved(&host, r#"{"filesystem": {"deny": ["$WORKDIR/**/.env"]}}"#).unwrap_err();
    assert!(matches!(error, ResolveError::DeepDeny { .. }));
    assert!(
        error.to_string().contains("the whole tree") && error.hint().is_some(),
        "{error}"
    );
}

#[test]
fn a_deny_covers_files_and_folders_under_every_grant() {
    let host = MemoryHost::debian()
        .file("/home/ann/p/keys/a", "x")
        .file("/home/ann/p/.env", "x")
        .file("/home/ann/p/.env.local", "x")
        .file("/home/ann/data/secret", "x");
    let text = r#"{"extends": "default", "filesystem": {"read": ["$HOME/data"],
        "deny": ["$WORKDIR/keys", "$WORKDIR/.env*", "$HOME/data/secret", "$WORKDIR/later", "/elsewhere"]}}"#;
    let policy = resolved(&host, text).unwrap();
    let masked: Vec<String> = policy.masked.iter().map(ToString::to_string).collect();
    let expected = [
        "/home/ann/data/secret",
        "/home/ann/p/.env",
        "/home/ann/p/.env.local",
        "/home/ann/p/keys",
    ];
    assert_eq!(masked, expected);
    assert!(
        note(&policy, Topic::LeftOut, "/home/ann/p/later")
            .unwrap()
            .contains("can be read")
    );
    assert!(
        note(&policy, Topic::Differs, "/home/ann/p/.env*")
            .unwrap()
            .contains("2 paths now")
    );
    let asked = why(&policy, &Question::parse("/home/ann/p/keys/a").unwrap());
    assert!(!asked.allowed(), "{asked}");
}

#[test]
fn a_deny_above_a_grant_takes_the_grant_away() {
    let host = MemoryHost::debian().file("/home/ann/data/in/f", "x");
    let text = r#"{"filesystem": {"read": ["$HOME/data/in"], "deny": ["$HOME/data"]}}"#;
    let policy = resolved(&host, text).unwrap();
    assert!(targets(&policy, "/home/ann/data").is_empty());
    assert!(
        note(&policy, Topic::LeftOut, "/home/ann/data/in")
            .unwrap()
            .starts_with("denied by")
    );
    let granted = resolved(&host, r#"{"filesystem": {"read": ["$HOME/data/in"]}}"#).unwrap();
    assert_eq!(targets(&granted, "/home/ann/data"), ["/home/ann/data/in"], "control");
}

#[test]
fn a_denied_file_with_more_names_is_a_warning_by_its_name() {
    let host = MemoryHost::debian().file("/home/ann/p/key", "x");
    let text = r#"{"extends": "default", "filesystem": {"deny": ["$WORKDIR/key"]}}"#;
    let one = resolved(&host, text).unwrap();
    assert_eq!(note(&one, Topic::Warning, "/home/ann/p/key"), None, "control");
    let two = resolved(&host.named("/home/ann/p/key", 2), text).unwrap();
    assert!(
        note(&two, Topic::Warning, "/home/ann/p/key")
            .unwrap()
            .contains("2 names")
    );
    assert!(explain(&two).to_string().contains("hard links"));
}

#[test]
fn a_session_without_a_runtime_folder_is_no_error() {
    let policy = resolved(
        &MemoryHost::debian(),
        r#"{"filesystem": {"read": ["$XDG_RUNTIME_DIR/x"]}}"#,
    )
    .unwrap();
    assert!(note(&policy, Topic::LeftOut, "$XDG_RUNTIME_DIR/x").is_some());
    let other = resolved(&MemoryHost::debian(), r#"{"filesystem": {"read": ["$NO_SUCH/x"]}}"#);
    assert!(
        matches!(other, Err(ResolveError::Variable { .. })),
        "control: {other:?}"
    );
}

#[test]
fn chains_of_links_stand_inside_and_only_what_they_lead_to_is_granted() {
    let host = MemoryHost::debian()
        .without("/etc/resolv.conf")
        .link("/etc/resolv.conf", "/mnt/resolv.conf")
        .link("/mnt/resolv.conf", "../run/systemd/resolve/stub-resolv.conf")
        .link("/etc/ssl/cert.pem", "certs/ca.crt")
        .link("/etc/ssl/certs/ca.crt", "/nix/store/abc-cacert/etc/ca.crt")
        .file("/nix/store/abc-cacert/etc/ca.crt", "x")
        .file("/nix/store/other/secret", "x")
        .link("/etc/locale.conf", "/nix/var/locale.conf")
        .file("/nix/var/locale.conf", "x")
        .link("/etc/localtime.bad", "/gone")
        .link("/etc/hosts", "/gone/hosts");
    let policy = resolve(&shipped("default"), &request(), &host).unwrap();
    let link = |at: &str| {
        policy
            .links
            .iter()
            .find(|link| link.at.to_string() == at)
            .map(|link| link.to.clone())
    };
    assert_eq!(link("/etc/resolv.conf").unwrap(), Path::new("/mnt/resolv.conf"));
    assert!(
        link("/mnt/resolv.conf").is_some(),
        "every link of the chain stands inside"
    );
    assert_eq!(
        targets(&policy, "/run"),
        ["/run/systemd/resolve/stub-resolv.conf"],
        "and only the file is granted"
    );
    assert_eq!(targets(&policy, "/nix/var"), ["/nix/var/locale.conf"]);
    assert_eq!(link("/etc/hosts"), None, "a dangling one is left out");
    let text = explain(&policy).to_string();
    assert!(text.contains("/etc/resolv.conf  link to /mnt/resolv.conf"), "{text}");
}
