use super::*;
use crate::base::Explain as _;

fn chosen(pairs: &[(&str, &str)], wanted: Option<&str>) -> Result<&'static str, HostError> {
    let env: Environ = pairs
        .iter()
        .map(|(k, v)| (OsString::from(k), OsString::from(v)))
        .collect();
    let around = Surroundings {
        env: &env,
        uid: nix::unistd::geteuid(),
        workspace: None,
    };
    choose(&around, wanted).map(|host| host.name())
}

const TMUX: [(&str, &str); 2] = [("TMUX", "/tmp/tmux-0/default,1,0"), ("TMUX_PANE", "%1")];

#[test]
fn takes_tmux_where_it_is_and_any_host_by_name() {
    assert_eq!(chosen(&TMUX, None).unwrap(), "tmux");
    assert_eq!(chosen(&TMUX, Some("terminal")).unwrap(), "terminal");
    assert_eq!(chosen(&[], Some("tmux")).unwrap(), "tmux");
}

#[test]
fn inside_herdr_it_says_what_is_missing_and_falls_back_only_when_asked() {
    let herdr = [&[("HERDR_ENV", "1")][..], &TMUX].concat();
    let error = chosen(&herdr, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this is a Herdr pane, and the Herdr host arrives with the Herdr plugin"
    );
    assert!(error.hint().unwrap().contains("--host terminal"));
    assert!(matches!(chosen(&[], Some("herdr")), Err(HostError::Herdr)));
    assert_eq!(chosen(&herdr, Some("terminal")).unwrap(), "terminal");
    assert_eq!(chosen(&herdr, Some("tmux")).unwrap(), "tmux");
}

#[test]
fn names_the_hosts_that_there_are() {
    let error = chosen(&[], Some("scr\u{1b}een")).unwrap_err();
    assert_eq!(error.to_string(), "there is no host called scr\\u{1b}een");
    assert_eq!(error.hint().unwrap(), "the hosts are tmux, terminal");
}
