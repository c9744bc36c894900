//! Package caches: shown where tools look for them, below a private layer; what stands beside them is not shown.

use super::*;

fn host() -> MemoryHost {
    MemoryHost::debian()
        .file("/home/ann/.npm/_cacache/index-v5/x", "")
        .file("/home/ann/.npmrc", "//registry/:_authToken=secret")
        .file("/home/ann/.cargo/registry/cache/x", "")
        .file("/home/ann/.cargo/credentials.toml", "secret")
        .file("/home/ann/.config/pip/pip.conf", "secret")
}

#[test]
fn a_cache_that_is_there_is_layered_and_the_secrets_beside_it_are_not_there() {
    let policy = rooted(&host(), ROOT).unwrap();
    for path in ["/home/ann/.npm/_cacache", "/home/ann/.cargo/registry"] {
        let bind = bind(&policy, path).unwrap();
        assert_eq!((bind.access, &bind.source), (Access::Layered, &abs(path)), "{path}");
        let answer = why(&policy, &Question::Path(abs(path)));
        assert!(answer.line.contains("private memory"), "{answer}");
    }
    assert_eq!(policy.layer_size, 2 << 30);
    assert!(bind(&policy, "/home/ann/.cargo/git").is_none());
    for path in [
        "/home/ann/.npmrc",
        "/home/ann/.cargo/credentials.toml",
        "/home/ann/.config/pip/pip.conf",
    ] {
        let answer = why(&policy, &Question::Path(abs(path)));
        assert_eq!(answer.verdict, crate::policy::Verdict::Private, "{path}: {answer}");
    }
}

#[test]
fn a_cache_elsewhere_on_the_host_stands_where_tools_inside_look() {
    let host = host()
        .dir("/data/cache/pip")
        .dir("/usr/local/cargo/registry")
        .env("XDG_CACHE_HOME", "/data/cache")
        .env("CARGO_HOME", "/usr/local/cargo");
    let policy = rooted(&host, ROOT).unwrap();
    for (path, source) in [
        ("/home/ann/.cache/pip", "/data/cache/pip"),
        ("/home/ann/.cargo/registry", "/usr/local/cargo/registry"),
    ] {
        let bind = bind(&policy, path).unwrap();
        assert_eq!((bind.access, &bind.source), (Access::Layered, &abs(source)), "{path}");
    }
}

#[test]
fn a_grant_by_name_is_what_it_says_and_a_cache_in_the_workspace_stays_layered() {
    for (access, expected) in [(Access::Read, Access::Layered), (Access::ReadWrite, Access::ReadWrite)] {
        let policy = granted(&host(), "/home/ann/.npm/_cacache", access).unwrap();
        assert_eq!(bind(&policy, "/home/ann/.npm/_cacache").unwrap().access, expected);
    }
    let host = host().dir("/home/ann/go/pkg/mod");
    let policy = rooted(&host, "/home/ann/go").unwrap();
    assert_eq!(bind(&policy, "/home/ann/go").unwrap().access, Access::ReadWrite);
    assert_eq!(bind(&policy, "/home/ann/go/pkg/mod").unwrap().access, Access::Layered);
}

#[test]
fn a_cache_where_nothing_may_be_shown_from_is_left_out() {
    let host = host().env("XDG_CACHE_HOME", "/proc").dir("/proc/pip");
    let policy = rooted(&host, ROOT).unwrap();
    assert!(bind(&policy, "/home/ann/.cache/pip").is_none());
    let note = policy.notes.iter().find(|note| note.subject == "/proc/pip").unwrap();
    assert_eq!(note.topic, Topic::LeftOut);
}
