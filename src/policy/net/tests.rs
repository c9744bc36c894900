//! Tables for the hazards B21 (ports), B22 (names) and B23 (addresses).

use super::*;
use crate::policy::frozen::{Origin, Service};
use std::collections::BTreeMap;

mod address;
mod host_services;

fn origin() -> Origin {
    Origin {
        source: "test".into(),
        key: "network.allow_domain[0]".into(),
        why: None,
    }
}

fn policy(allow: &[&str], deny: &[&str]) -> NetPolicy {
    NetPolicy {
        mode: Network::Brokered,
        allow: allow.iter().map(|text| parse_rule(text, origin()).unwrap()).collect(),
        deny: deny.iter().map(|text| parse_deny(text, origin()).unwrap()).collect(),
        services: BTreeMap::new(),
        open_ports: vec![],
        listen_ports: vec![],
        closed_ports: vec![],
    }
}

fn port(number: u16) -> Port {
    Port::new(number).unwrap()
}

fn allowed(policy: &NetPolicy, name: &str, number: u16) -> bool {
    matches!(decide(policy, name, port(number)), Decision::Allowed { .. })
}

#[test]
fn allows_only_the_listed_ports_of_a_name() {
    let policy = policy(&["ok.test", "ssh.test:22", "*.deep.test:8443"], &[]);
    for (name, number, expected) in [
        ("ok.test", 443, true),
        ("ok.test", 80, true),
        ("ok.test", 22, false),
        ("ok.test", 25, false),
        ("ok.test", 6379, false),
        ("ok.test", 8443, false),
        ("ssh.test", 22, true),
        ("ssh.test", 443, false),
        ("a.deep.test", 8443, true),
        ("a.deep.test", 443, false),
    ] {
        assert_eq!(allowed(&policy, name, number), expected, "{name}:{number}");
    }
    let refused = decide(&policy, "ok.test", port(22));
    assert_eq!(
        refused,
        Decision::Refused(Refusal::Port {
            name: "ok.test".into(),
            ports: "80, 443".into()
        })
    );
}

#[test]
fn refuses_ports_that_are_not_written_plainly() {
    for text in [
        "ok.test:0443",
        "ok.test:+443",
        "ok.test:",
        "ok.test:0",
        "ok.test:65536",
        "ok.test:443 ",
        "ok.test:https",
    ] {
        assert!(
            matches!(parse_rule(text, origin()), Err(RuleError::Port { .. })),
            "{text}"
        );
    }
    assert_eq!(parse_rule("ok.test:443", origin()).unwrap().ports, [port(443)]);
}

#[test]
fn matches_whole_labels_and_folds_spellings() {
    let exact = policy(&["ok.test"], &[]);
    let below = policy(&["*.ok.test"], &[]);
    let long = format!("{}.ok.test", "a.".repeat(130).trim_end_matches('.'));
    let label = format!("{}.ok.test", "a".repeat(64));
    for (name, by_exact, by_below) in [
        ("ok.test", true, false),
        ("OK.TEST", true, false),
        ("ok.test.", true, false),
        ("ok\u{3002}test", true, false),
        ("ok\u{ff0e}test", true, false),
        ("\u{ff4f}\u{ff4b}.test", true, false),
        ("ok.test..", false, false),
        ("evilok.test", false, false),
        ("ok.test.evil.test", false, false),
        ("a.ok.test", false, true),
        ("a.b.ok.test", false, true),
        ("A.Ok.TesT.", false, true),
        (".ok.test", false, false),
        ("a..ok.test", false, false),
        ("", false, false),
        (".", false, false),
        ("%6fk.test", false, false),
        ("ok.test ", false, false),
        (" ok.test", false, false),
        ("ok.test\t", false, false),
        ("ok.test\0", false, false),
        ("ok.test\r\nx", false, false),
        ("user@ok.test", false, false),
        ("ok.test:443", false, false),
        ("ok.test/", false, false),
        ("xn--\u{ff0e}ok.test", false, false),
        (&long, false, false),
        (&label, false, false),
    ] {
        assert_eq!(allowed(&exact, name, 443), by_exact, "{name:?} by ok.test");
        assert_eq!(allowed(&below, name, 443), by_below, "{name:?} by *.ok.test");
    }
}

#[test]
fn takes_unicode_and_a_labels_for_one_name() {
    let policy = policy(&["bücher.example.org"], &[]);
    assert_eq!(policy.allow[0].name, "xn--bcher-kva.example.org");
    assert!(allowed(&policy, "BÜCHER.example.org", 443));
    assert!(allowed(&policy, "xn--bcher-kva.example.org", 443));
}

#[test]
fn an_empty_list_allows_nothing_and_a_star_every_public_name() {
    assert!(!allowed(&policy(&[], &[]), "ok.test", 443));
    let all = policy(&["*"], &[]);
    for (name, expected) in [
        ("ok.test", true),
        ("a.b.c", true),
        ("localhost", false),
        ("intranet", false),
        ("x.localhost", false),
        ("m.pinfold", false),
    ] {
        assert_eq!(allowed(&all, name, 443), expected, "{name}");
    }
    assert!(!allowed(&all, "ok.test", 22));
}

#[test]
fn a_deny_wins_on_every_port_over_every_allow() {
    let policy = policy(&["*", "bad.test:8443", "a.bad.org"], &["bad.test", "*.bad.org"]);
    for (name, number, expected) in [
        ("ok.test", 443, true),
        ("bad.test", 443, false),
        ("bad.test", 8443, false),
        ("BAD.test.", 443, false),
        ("x.bad.test", 443, true),
        ("a.bad.org", 443, false),
        ("bad.org", 443, true),
    ] {
        assert_eq!(allowed(&policy, name, number), expected, "{name}:{number}");
    }
}

#[test]
fn refuses_addresses_in_every_spelling() {
    let policy = policy(&["*"], &[]);
    for name in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7f000001",
        "0X7F.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "127.0.0.1.",
        "0",
        "0x",
        "::1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "::ffff:7f00:1",
        "fe80::1%eth0",
        "[fe80::1%25eth0]",
        "1.2.3.4.5",
        "8.8.8.8",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "\u{2460}27.1",
        "x.0x7f",
    ] {
        assert_eq!(
            decide(&policy, name, port(443)),
            Decision::Refused(Refusal::Literal),
            "{name:?}"
        );
    }
    assert!(allowed(&policy, "0x7f.example.org", 443));
    assert!(allowed(&policy, "127.0.0.1.nip.io", 443));
}

#[test]
fn refuses_rules_that_are_too_wide_or_no_public_name() {
    for text in [
        "*.com",
        "*.test",
        "*.",
        "*.*",
        "a.*.com",
        "**",
        "*ok.test",
        "http://ok.test",
        "ok.test/x",
        "localhost",
        "db",
        "x.localhost",
        "printer.local",
        "*.internal",
        "m.pinfold",
        "127.0.0.1",
        "127.1:80",
        "[::1]:80",
        "::1",
        "",
        " ",
        "a b.com",
        "a..b",
    ] {
        assert!(parse_rule(text, origin()).is_err(), "{text:?}");
    }
    assert!(matches!(parse_rule("*.com", origin()), Err(RuleError::TooWide { .. })));
    assert!(matches!(
        parse_rule("https://a.b", origin()),
        Err(RuleError::Url { .. })
    ));
    assert!(matches!(
        parse_rule("127.1:80", origin()),
        Err(RuleError::Name {
            source: NameError::Literal,
            ..
        })
    ));
    assert!(matches!(
        parse_deny("ok.test:80", origin()),
        Err(RuleError::DenyPort(_))
    ));
    assert!(parse_deny("*.com", origin()).is_ok());
}
