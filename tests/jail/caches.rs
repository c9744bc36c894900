//! Package caches are warm inside, and nothing that is written to them there reaches the host's.

use crate::harness::{covered_by_root, not_here, skip};
use crate::place::{Place, finish};
use crate::registry::{Registry, Toolbox, contents};
use std::os::unix::fs::DirBuilderExt as _;

/// One package manager: a project, how it is filled outside, and how it builds inside without a network.
struct Case {
    tool: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// `$R` is the registry.
    outside: &'static str,
    /// Says `left` in the end.
    inside: &'static str,
    /// Below the home folder.
    cache: &'static str,
}

const NODE: &[(&str, &str)] = &[(
    "package.json",
    r#"{"name": "x", "version": "1.0.0", "dependencies": {"left": "1.0.0"}}"#,
)];

/// Overwrites every file of a cache, and makes sure of it.
fn poison(cache: &str) -> String {
    format!(
        "find \"$HOME/{cache}\" -type d -exec chmod u+w {{}} +; find \"$HOME/{cache}\" -type f -exec chmod u+w {{}} +; \
         find \"$HOME/{cache}\" -type f > /tmp/list-$$; test -s /tmp/list-$$; \
         while read -r one; do echo poison > \"$one\"; grep -qx poison \"$one\"; done < /tmp/list-$$; rm /tmp/list-$$"
    )
}

fn warm_and_apart(case: &Case) {
    let (place, tools) = (Place::new(), Toolbox::find());
    let registry = Registry::start(&place, None);
    let address = format!("http://127.0.0.1:{}", registry.port);
    for (name, text) in case.files {
        let path = place.work.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("$R", &address)).unwrap();
    }
    tools
        .outside(&place, &format!("R={address}; {}", case.outside))
        .expect(0);
    drop(registry);
    let cache = place.home.join(case.cache);
    let before = contents(&cache);
    assert!(!before.is_empty(), "{} keeps nothing there", case.tool);
    let inside = |script: &str| tools.inside(&place, &["--block-net"], &format!("R={address}; {script}"));
    let ended = inside(case.inside).expect(0);
    assert_eq!(ended.out().lines().last(), Some("left"), "{}", ended.out());
    inside(&poison(case.cache)).expect(0);
    assert_eq!(
        contents(&cache),
        before,
        "{}: the host's cache was changed from inside",
        case.tool
    );
    // The controls: the same script outside does change it, and without the cache nothing is built inside.
    tools.outside(&place, &poison(case.cache)).expect(0);
    assert_ne!(contents(&cache), before);
    tools
        .outside(&place, &format!("rm -rf \"$HOME/{}\"", case.cache))
        .expect(0);
    let ended = inside(&format!("rm -rf node_modules target v; {}", case.inside));
    assert_ne!(ended.code(), 0, "{} needs no cache: {}", case.tool, ended.out());
}

fn installed(tool: &str) -> bool {
    let is_there = Toolbox::find().has(&Place::new(), tool);
    if !is_there {
        skip(&format!("{tool} is not installed"));
    }
    is_there
}

#[test]
fn npm_installs_from_the_hosts_cache_and_does_not_reach_it() {
    let case = Case {
        tool: "npm",
        files: NODE,
        outside: "npm install --registry $R --no-audit --no-fund --no-update-notifier; rm -r node_modules",
        inside: "npm ci --offline --no-audit --silent; node -p 'require(\"left\")()'",
        cache: ".npm/_cacache",
    };
    if installed(case.tool) {
        warm_and_apart(&case);
    }
}

/// Its files are no hard links into the store, as they are outside: what is written to one changes no other project.
#[test]
fn pnpm_installs_from_the_hosts_store_and_does_not_reach_it() {
    let case = Case {
        tool: "pnpm",
        files: NODE,
        outside: "pnpm install --registry $R; test $(stat -c %h node_modules/left/index.js) = 2; rm -r node_modules",
        inside: "pnpm install --offline --frozen-lockfile --silent; test $(stat -c %h node_modules/left/index.js) = 1
                 node -p 'require(\"left\")()'",
        cache: ".local/share/pnpm/store",
    };
    if installed(case.tool) {
        warm_and_apart(&case);
    }
}

#[test]
fn bun_installs_from_the_hosts_cache_and_does_not_reach_it() {
    let case = Case {
        tool: "bun",
        files: NODE,
        outside: "bun install --registry $R; for i in 1 2; do rm -r node_modules; bun install --frozen-lockfile; done; rm -r node_modules",
        inside: "bun install --frozen-lockfile --silent; bun -e 'console.log(require(\"left\")())'",
        cache: ".bun/install/cache",
    };
    if installed(case.tool) {
        warm_and_apart(&case);
    }
}

#[test]
fn uv_installs_from_the_hosts_cache_and_does_not_reach_it() {
    let case = Case {
        tool: "uv",
        files: &[],
        outside: "uv venv -q --python /usr/bin/python3 v; uv pip install -q --python v --default-index $R/simple left; rm -r v",
        inside: "uv venv -q --python /usr/bin/python3 v; uv pip install -q --offline --python v --default-index $R/simple left
                 v/bin/python -c 'import left; print(left.side())'",
        cache: ".cache/uv",
    };
    if installed(case.tool) {
        warm_and_apart(&case);
    }
}

#[test]
fn cargo_builds_from_the_hosts_registry_and_does_not_reach_it() {
    if std::env::var_os("CARGO").is_none() {
        return covered_by_root("the Rust of these tests is root's");
    }
    warm_and_apart(&Case {
        tool: "cargo",
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nleft = \"1\"\n",
            ),
            ("src/main.rs", "fn main() { println!(\"{}\", left::side()) }\n"),
            (
                ".cargo/config.toml",
                "[source.crates-io]\nreplace-with = \"tiny\"\n[source.tiny]\nregistry = \"sparse+$R/\"\n",
            ),
        ],
        outside: "cargo fetch",
        inside: "cargo build --offline -q; target/debug/x",
        cache: ".cargo/registry",
    });
}

#[test]
fn go_builds_from_the_hosts_modules_and_does_not_reach_them() {
    let (place, tools) = (Place::new(), Toolbox::find());
    if !tools.has(&place, "go") {
        // A fifth of a gigabyte that nothing else here needs: tried where it is there anyway.
        return not_here("go");
    }
    warm_and_apart(&Case {
        tool: "go",
        files: &[
            ("proxy/example.org/left/@v/list", "v1.0.0\n"),
            ("proxy/example.org/left/@v/v1.0.0.info", "{\"Version\": \"v1.0.0\"}"),
            ("proxy/example.org/left/@v/v1.0.0.mod", "module example.org/left\n"),
            ("source/example.org/left@v1.0.0/go.mod", "module example.org/left\n"),
            (
                "source/example.org/left@v1.0.0/left.go",
                "package left\nfunc Side() string { return \"left\" }\n",
            ),
            ("app/go.mod", "module app\ngo 1.16\nrequire example.org/left v1.0.0\n"),
            (
                "app/main.go",
                "package main\nimport (\n\"fmt\"\n\"example.org/left\"\n)\nfunc main() { fmt.Println(left.Side()) }\n",
            ),
        ],
        outside: "(cd source; for one in example.org/left@v1.0.0/*; do
                      /usr/bin/python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1], \"a\").write(sys.argv[2])' \
                          ../proxy/example.org/left/@v/v1.0.0.zip $one; done)
                  cd app; export GOPROXY=file://$PWD/../proxy GOSUMDB=off GOFLAGS=-mod=mod; go mod download; go build -o /dev/null .",
        inside: "cd app; export GOPROXY=off GOSUMDB=off GOFLAGS=-mod=mod; go build -o x .; ./x",
        cache: "go/pkg/mod",
    });
}

/// pip asks for the list of a project each time, and for what it has only once.
#[test]
fn pip_takes_from_the_hosts_cache_what_it_has() {
    let (place, tools) = (Place::new(), Toolbox::find());
    let certificate = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=left \
                       -addext subjectAltName=IP:127.0.0.1 -keyout pem -out crt; cat crt >> pem";
    tools.outside(&place, certificate).expect(0);
    let registry = Registry::start(&place, Some(&place.work.join("pem")));
    let port = registry.port.as_str();
    let install = format!(
        "rm -rf out; /usr/bin/python3 -m pip install -q --disable-pip-version-check --cert crt \
         --index-url https://127.0.0.1:{port}/simple --target out left; test -e out/left.py"
    );
    tools.outside(&place, &install).expect(0);
    let whole = "/simple/left/\n/files/left-1.0.0-py3-none-any.whl\n";
    assert_eq!(registry.asked(), whole);
    let cache = place.home.join(".cache/pip");
    let before = contents(&cache);
    assert!(!before.is_empty());
    tools.inside(&place, &["--open-port", port], &install).expect(0);
    assert_eq!(registry.asked(), "/simple/left/\n");
    tools.inside(&place, &[], &poison(".cache/pip")).expect(0);
    assert_eq!(contents(&cache), before);
    // The control: without the cache it asks for all.
    std::fs::remove_dir_all(&cache).unwrap();
    tools.inside(&place, &["--open-port", port], &install).expect(0);
    assert_eq!(registry.asked(), whole);
    assert!(!cache.exists(), "a cache came into being on the host");
}

#[test]
fn pip_installs_a_wheel_of_the_project_without_any_index() {
    let (place, tools) = (Place::new(), Toolbox::find());
    let registry = Registry::start(&place, None);
    let wheel = format!("http://127.0.0.1:{}/files/left-1.0.0-py3-none-any.whl", registry.port);
    tools.outside(&place, &format!("curl -sSfO {wheel}")).expect(0);
    drop(registry);
    let script = "/usr/bin/python3 -m pip install -q --no-index --find-links . --target out left
                  PYTHONPATH=out /usr/bin/python3 -c 'import left; print(left.side())'";
    assert_eq!(tools.inside(&place, &[], script).expect(0).out(), "left\n");
}

/// Whatever the tool: nothing made, changed, moved or removed inside is seen outside, and the next launch begins anew.
#[test]
fn nothing_done_to_a_cache_inside_is_seen_outside_or_by_the_next_launch() {
    let place = Place::new();
    let cache = place.home.join(".npm/_cacache");
    std::fs::create_dir_all(cache.join("content/aa")).unwrap();
    for name in ["one", "two", "three"] {
        std::fs::write(cache.join("content/aa").join(name), name).unwrap();
    }
    std::fs::write(place.home.join(".npmrc"), "//registry/:_authToken=secret").unwrap();
    let before = contents(&cache);
    let script = "set -e; cd ~/.npm/_cacache/content; test \"$(cat aa/one)\" = one
                  echo bad > aa/one; mv aa/two aa/four; rm aa/three; mv aa bb; mkdir aa; echo bad > aa/one; ln aa/one l; ls -R . >&2
                  test ! -e ~/.npmrc";
    for _ in 0..2 {
        finish(&mut place.sh(&[], script)).expect(0);
        assert_eq!(contents(&cache), before);
    }
    let ended = finish(
        place
            .command("sh")
            .args(["-c", &script.replace("test ! -e ~/.npmrc", "")]),
    );
    ended.expect(0);
    assert_ne!(contents(&cache), before, "the control changed nothing");
}

/// Where the kernel lays nothing over a cache (here: something is mounted below it), tools begin with an empty one.
#[test]
fn a_cache_that_no_layer_can_lie_over_is_empty_and_private_inside() {
    let place = Place::new();
    let cache = place.home.join(".npm/_cacache");
    std::fs::create_dir_all(cache.join("content")).unwrap();
    std::fs::write(cache.join("file"), "good").unwrap();
    // Inside this namespace the user is called root, whose usual folder for sockets is somebody else's.
    let runtime = place.path().join("runtime");
    std::fs::DirBuilder::new().mode(0o700).create(&runtime).unwrap();
    let script = format!(
        "mount -t tmpfs x {0}/content && exec {1} run -- sh -ec 'cd ~/.npm/_cacache; test -z \"$(ls)\"; echo bad > file; cat file'",
        cache.display(),
        crate::place::program().display()
    );
    let mut command = place.command("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-ec", &script])
        .env("XDG_RUNTIME_DIR", &runtime);
    let ended = finish(&mut command).expect(0);
    assert_eq!(ended.out(), "bad\n");
    let told = format!("{} is empty inside", cache.display());
    assert!(ended.err().contains(&told), "{}", ended.err());
    assert_eq!(std::fs::read_to_string(cache.join("file")).unwrap(), "good");
}
