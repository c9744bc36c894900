use super::{Outcome, Targets, Tried, UsageError, Verdict, attempt_by_name, escape_set, names};
use nix::errno::Errno;
use std::ffi::OsString;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;

mod attempts;

fn attempt(name: &str, args: &[&Path]) -> Tried {
    let args: Vec<OsString> = args.iter().map(|a| a.as_os_str().to_owned()).collect();
    attempt_by_name(name, &args).unwrap().result
}

fn text(name: &str, arg: impl ToString) -> Tried {
    attempt(name, &[Path::new(&arg.to_string())])
}

/// A process that another test is starting holds a copy of every socket until its exec: what was closed here may answer
/// for a moment more.
fn refused_in_the_end(attempt: impl Fn() -> Tried) -> bool {
    (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        attempt() == Tried::Refused
    })
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[test]
fn every_attempt_has_one_name_and_counts_its_arguments() {
    let mut all: Vec<_> = names().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    assert_eq!(
        attempt_by_name("nothing", &[]),
        Err(UsageError::Unknown("nothing".into()))
    );
    assert!(matches!(
        attempt_by_name("read", &[]),
        Err(UsageError::Arguments { attempt: "read", .. })
    ));
    assert!(attempt_by_name("vsock", &["x".into()]).is_err());
}

#[test]
fn every_layer_that_is_checked_stops_an_attempt_and_every_named_one_is_checked() {
    let checked: Vec<&str> = crate::verify::CHECKS.iter().map(|(name, _)| *name).collect();
    for layer in &checked {
        assert!(
            super::ATTEMPTS.iter().any(|attempt| attempt.layers.contains(layer)),
            "no attempt tries {layer}"
        );
    }
    for attempt in super::ATTEMPTS {
        for layer in attempt.layers {
            assert!(checked.contains(layer), "{} names {layer}", attempt.name);
        }
        let must_work = ["own-abstract", "own-tcp"].contains(&attempt.name);
        assert_eq!(attempt.layers.is_empty(), must_work, "{}", attempt.name);
    }
}

#[test]
fn every_seccomp_rule_names_an_attempt_that_seccomp_stops() {
    let rules = include_str!("../../../profiles/seccomp/base.json");
    let rules: serde_json::Value = serde_json::from_str(rules).unwrap();
    let rules = rules["rules"].as_array().unwrap();
    assert!(rules.len() > 20);
    for rule in rules {
        let probe = rule["probe"].as_str().unwrap();
        assert!(
            super::layers_of(probe).contains(&"seccomp"),
            "{} names {probe}",
            rule["name"]
        );
    }
}

#[test]
fn a_batch_takes_bytes_and_refuses_what_it_cannot_do_before_it_does_anything() {
    use super::{Argument, Try, attempt_all};
    use std::os::unix::ffi::OsStringExt as _;
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsString::from_vec(vec![b'p', 0xff, b'\n']));
    std::fs::write(&odd, "").unwrap();
    let tries = [Try::new("read", &[odd.clone().into()]), Try::new("own-tcp", &[])];
    assert!(matches!(&tries[0].args[..], [Argument::Bytes(_)]));
    let text = serde_json::to_string(&tries).unwrap();
    let back: Vec<Try> = serde_json::from_str(&text).unwrap();
    assert_eq!(back, tries);
    let met: Vec<Tried> = attempt_all(&back).unwrap().iter().map(|o| o.result).collect();
    assert_eq!(met, [Tried::Done, Tried::Done]);
    let made = folder.path().join("b");
    let bad = [Try::new("create", &[made.into()]), Try::new("no such", &[])];
    assert_eq!(attempt_all(&bad), Err(UsageError::Unknown("no such".into())));
    assert!(serde_json::from_str::<Vec<Try>>(r#"[{"attempt":"read","arg":["x"]}]"#).is_err());
}

#[test]
fn silence_and_errors_are_no_denial_and_a_failed_control_no_proof() {
    let met = |result| Outcome {
        attempt: "x".into(),
        result,
        detail: String::new(),
    };
    let verdict = |control, inside| Verdict::of(&met(control), &met(inside));
    let denied = Tried::Denied(13);
    for inside in [denied, Tried::Absent, Tried::Refused] {
        assert_eq!(verdict(Tried::Done, inside), Verdict::Held);
        assert_eq!(verdict(Tried::TimedOut, inside), Verdict::NoControl);
        assert_eq!(verdict(Tried::Refused, inside), Verdict::NoControl);
    }
    for inside in [Tried::TimedOut, Tried::Error(5)] {
        assert_eq!(verdict(Tried::Done, inside), Verdict::Unproven);
        assert_eq!(verdict(Tried::Absent, inside), Verdict::NoControl);
    }
    for control in [Tried::Done, denied, Tried::TimedOut] {
        assert_eq!(verdict(control, Tried::Done), Verdict::Escaped);
    }
    assert_eq!(verdict(denied, denied), Verdict::DeniedAnyway);
}

#[test]
fn an_outcome_survives_json() {
    for result in [
        Tried::Done,
        Tried::Denied(13),
        Tried::Absent,
        Tried::Refused,
        Tried::TimedOut,
        Tried::Error(5),
    ] {
        let outcome = Outcome {
            attempt: "read".into(),
            result,
            detail: "a\u{1b}b".into(),
        };
        let json = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), outcome, "{json}");
    }
}

#[test]
fn the_escape_set_names_real_attempts_with_the_right_arguments() {
    let path = |name: &str| Some(name.into());
    let targets = Targets {
        secret: path("/x/secret"),
        folder: path("/x"),
        protected: path("/w/.git/config"),
        protected_folder: path("/w/.git/hooks"),
        joined: crate::base::Port::new(20_000),
        writable: path("/w"),
        writable_file: path("/w/f"),
        own: path("/x/state"),
        socket: path("/x/s"),
        socket_within: path("/w/s"),
        datagrams: path("/x/d"),
        abstract_name: Some("n".into()),
        tcp: "127.0.0.1:1".parse().ok(),
        udp: "127.0.0.1:1".parse().ok(),
        forbidden: "192.0.2.1:443".parse().ok(),
        process: crate::base::Pid::new(1),
        terminal: path("/dev/pts/0"),
        tokens: vec!["T".into()],
        shares: super::Shares::Namespaces,
    };
    let set = escape_set(&targets);
    for planned in &set {
        let found = super::ATTEMPTS.iter().find(|a| a.name == planned.attempt).unwrap();
        assert!(found.count.contains(&planned.args.len()), "{}", planned.name);
        assert!(names().any(|name| name == planned.control), "{}", planned.name);
    }
    for name in names().filter(|name| !["own-abstract", "own-tcp", "reach"].contains(name)) {
        assert!(
            set.iter().any(|planned| planned.attempt == name),
            "{name} is not in the set"
        );
    }
    let bare = escape_set(&Targets::default());
    assert!(!bare.is_empty() && bare.len() < set.len());
}
