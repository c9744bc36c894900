//! Golden policies and refusals over an in-memory host.

use super::*;
use crate::base::{Explain as _, Kind, Port};
use crate::policy::frozen::{Appearing, Bind, Protected, Topic};
use crate::policy::memory::MemoryHost;
use crate::policy::{Question, explain, load, why};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

mod caches;
mod grants;
mod launch;
mod patterns;
mod protect;
mod workspace;

const ROOT: &str = "/home/ann/p";

fn request() -> Request {
    let own = [
        "/home/ann/.config/pinfold",
        "/home/ann/.local/state/pinfold",
        "/home/ann/.local/share/pinfold",
    ];
    Request {
        root: Some(PathBuf::from(ROOT)),
        workdir: PathBuf::from(ROOT),
        own_folders: own.iter().map(PathBuf::from).collect(),
        ..Request::default()
    }
}

fn profile(host: &MemoryHost, text: &str) -> Profile {
    let host = host.clone().file("/profiles/mine.json", text);
    load("mine", &[PathBuf::from("/profiles")], &host).unwrap()
}

fn shipped(name: &str) -> Profile {
    load(name, &[], &MemoryHost::default()).unwrap()
}

fn with(host: &MemoryHost, text: &str) -> Result<Policy, ResolveError> {
    resolve(&profile(host, text), &request(), host)
}

fn rooted(host: &MemoryHost, root: &str) -> Result<Policy, ResolveError> {
    let request = Request {
        root: Some(PathBuf::from(root)),
        workdir: PathBuf::from(root),
        ..request()
    };
    resolve(&shipped("default"), &request, host)
}

fn granted(host: &MemoryHost, path: &str, access: Access) -> Result<Policy, ResolveError> {
    let grant = CommandGrant {
        flag: "--allow".to_owned(),
        path: PathBuf::from(path),
        access,
    };
    resolve(
        &shipped("default"),
        &Request {
            grants: vec![grant],
            ..request()
        },
        host,
    )
}

fn abs(path: &str) -> AbsPath {
    AbsPath::new(path).unwrap()
}

fn bind<'a>(policy: &'a Policy, target: &str) -> Option<&'a Bind> {
    policy.binds.iter().find(|bind| bind.target == abs(target))
}

fn protected<'a>(policy: &'a Policy, path: &str) -> Option<&'a Protected> {
    policy.protected.iter().find(|one| one.path == abs(path))
}

/// Everything that is enforced, in a text that a person can review.
fn golden(policy: &Policy) -> String {
    let mut text = explain(policy).to_string();
    text += "\npins\n";
    for one in policy.protected.iter().filter(|one| !one.pins.is_empty()) {
        let pins: Vec<String> = one.pins.iter().map(AbsPath::to_string).collect();
        text += &format!("  {}: {}\n", one.path, pins.join(" "));
    }
    text += "\nvalues\n";
    for (name, value) in &policy.environment.0 {
        text += &format!("  {}={}\n", name.to_string_lossy(), value.to_string_lossy());
    }
    text
}

fn opencode(host: &MemoryHost) -> (MemoryHost, Request) {
    let host = host
        .clone()
        .file("/home/ann/.gitconfig", "")
        .file("/home/ann/.local/share/opencode/auth.json", "secret")
        .file("/home/ann/.local/state/opencode/service.json", "secret")
        .file("/home/ann/.config/opencode/opencode.json", "{}")
        .file("/home/ann/.config/opencode/tui.json", "{}")
        .file("/home/ann/.config/opencode/package.json", "{}")
        .dir("/home/ann/.config/opencode/node_modules/x")
        .file("/home/ann/dotfiles/agents/a.md", "")
        .link("/home/ann/.config/opencode/agents", "/home/ann/dotfiles/agents")
        .link("/home/ann/.config/opencode/gone", "/nowhere")
        .file("/home/ann/.local/share/pinfold/opencode/bin/opencode", "")
        .env("OPENAI_API_KEY", "secret")
        .env("SSH_AUTH_SOCK", "/run/ssh");
    let variables = vec![
        (
            "AGENT_BINARY".to_owned(),
            PathBuf::from("/home/ann/.local/share/pinfold/opencode/bin/opencode"),
        ),
        (
            "PINFOLD_AGENT_DATA".to_owned(),
            PathBuf::from("/home/ann/.local/share/pinfold/agents/opencode-1"),
        ),
    ];
    let password = (OsString::from("OPENCODE_SERVER_PASSWORD"), OsString::from("0123"));
    let closed_ports = vec![Port::new(14096).unwrap()];
    (
        host,
        Request {
            variables,
            closed_ports,
            added_env: vec![password],
            ..request()
        },
    )
}

#[test]
fn golden_default() {
    let policy = resolve(&shipped("default"), &request(), &MemoryHost::debian()).unwrap();
    insta::assert_snapshot!(golden(&policy));
}

#[test]
fn golden_opencode_server() {
    let (host, request) = opencode(
        &MemoryHost::debian()
            .dir("/home/ann/p/.opencode")
            .dir("/home/ann/.cargo/bin"),
    );
    insta::assert_snapshot!(golden(&resolve(&shipped("opencode-server"), &request, &host).unwrap()));
}

#[test]
fn golden_opencode_client() {
    let (host, request) = opencode(&MemoryHost::debian());
    insta::assert_snapshot!(golden(&resolve(&shipped("opencode-client"), &request, &host).unwrap()));
}

#[test]
fn golden_everything_from_a_profile_and_the_command_line() {
    let host = MemoryHost::debian()
        .file("/data/ref/big.txt", "")
        .file("/data/rw/secret/key", "")
        .dir("/data/rw/docs")
        .link("/home/ann/ref", "/data/ref")
        .socket("/run/user/1000/one.sock")
        .socket("/srv/sockets/two.sock")
        .file("/srv/sockets/file", "")
        .env("WANTED", "1")
        .env("WANTED", "2");
    let profile = profile(
        &host,
        r#"{"extends": "default",
            "filesystem": {"allow": [{"path": "/data/rw", "why": "work"}], "read": ["~/ref", "/data/rw/docs", "/gone"],
                "deny": ["/data/rw/secret"], "unix_socket": ["/run/user/1000/one.sock"], "unix_socket_dir": ["/srv/sockets"]},
            "network": {"allow_domain": ["*.example.org:8443"], "deny_domain": ["bad.example.org"], "listen_port": [3000]},
            "environment": {"set_vars": {"A": "b"}},
            "pinfold": {"services": {"model.pinfold": "127.0.0.1:11434"}, "limits": {"processes": 500, "address_space": "8G"}}}"#,
    );
    let request = Request {
        workdir: PathBuf::from("/home/ann/p/src"),
        grants: vec![CommandGrant {
            flag: "--read".to_owned(),
            path: PathBuf::from("../../ref"),
            access: Access::Read,
        }],
        allow_domains: vec!["api.test".to_owned()],
        services: vec!["db.pinfold=127.0.0.1:5432".to_owned()],
        open_ports: vec![Port::new(9000).unwrap()],
        env: vec![
            EnvWish::Pass("WANTED".into()),
            EnvWish::Pass("UNSET".into()),
            EnvWish::Set("NODE_OPTIONS".into(), "x".into()),
        ],
        allow_missing: vec![Promise::Sockets],
        ..request()
    };
    insta::assert_snapshot!(golden(&resolve(&profile, &request, &host).unwrap()));
}

#[test]
fn answers_why_with_the_deciding_line() {
    let (host, request) = opencode(&MemoryHost::debian().socket("/srv/s.sock"));
    let mut profile = shipped("opencode-server");
    let own = self::profile(
        &host,
        r#"{"filesystem": {"unix_socket": ["/srv/s.sock"], "deny": ["$WORKDIR/src"]}, "pinfold": {"services": {"m.pinfold": "127.0.0.1:1234"}}}"#,
    );
    profile.sockets = own.sockets;
    profile.deny = own.deny;
    profile.services = own.services;
    let policy = resolve(&profile, &request, &host).unwrap();
    let answer = |text: &str| why(&policy, &Question::parse(text).unwrap()).to_string();
    let answers: Vec<String> = [
        "/home/ann/p/README.md",
        "/home/ann/p/.git/hooks/pre-commit",
        "/home/ann/p/.envrc",
        "/home/ann/p/src/main.rs",
        "/home/ann/.ssh/id_ed25519",
        "/bin/sh",
        "/etc/shadow",
        "/etc/resolv.conf",
        "/tmp/x",
        "/home/ann/.local/state/opencode/service.json",
        "/home/ann/.local/share/opencode/auth.json",
        "/home/ann/.config/opencode/package.json",
        "api.openai.com",
        "api.openai.com:22",
        "evil.test",
        "127.0.0.1:80",
        "[::1]:80",
        "m.pinfold:80",
        "unix:/srv/s.sock",
        "unix:/run/docker.sock",
        "unix:@x",
    ]
    .iter()
    .map(|text| format!("{text}\n  {}", answer(text)))
    .collect();
    insta::assert_snapshot!(answers.join("\n"));
    assert!(Question::parse("a.test:x").is_err() && Question::parse("unix:rel").is_err());
}

#[test]
fn resolves_on_this_machine_and_takes_paths_as_bytes() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile::tempdir().unwrap();
    let odd = dir
        .path()
        .canonicalize()
        .unwrap()
        .join(std::ffi::OsStr::from_bytes(b"-p\nq \xff\"$(x)`y`"));
    std::fs::create_dir_all(odd.join(".git/hooks")).unwrap();
    let request = Request {
        root: Some(odd.clone()),
        workdir: odd.clone(),
        ..Request::default()
    };
    let host = crate::policy::LiveHost::new();
    let policy = resolve(&load("default", &[], &host).unwrap(), &request, &host).unwrap();
    assert_eq!(policy.root.as_ref().unwrap().as_path(), odd);
    assert!(
        policy
            .binds
            .iter()
            .any(|bind| bind.target.as_path() == odd && bind.access == Access::ReadWrite)
    );
    assert!(
        policy
            .protected
            .iter()
            .any(|one| one.path.as_path() == odd.join(".git/hooks") && one.kind == Some(FileKind::Dir))
    );
    assert!(!explain(&policy).to_string().contains("-p\nq"));
}

#[test]
fn takes_thousands_of_grants() {
    let mut host = MemoryHost::debian();
    let paths: Vec<String> = (0..3000).map(|n| format!("/data/{}/d{n}", n % 7)).collect();
    for path in &paths {
        host = host.dir(path);
    }
    let grant = |path: &String| CommandGrant {
        flag: "--read".to_owned(),
        path: PathBuf::from(path),
        access: Access::Read,
    };
    let request = Request {
        grants: paths.iter().map(grant).collect(),
        ..request()
    };
    let policy = resolve(&shipped("default"), &request, &host).unwrap();
    assert_eq!(
        policy
            .binds
            .iter()
            .filter(|bind| bind.target.is_within(&abs("/data")))
            .count(),
        3000
    );
}
