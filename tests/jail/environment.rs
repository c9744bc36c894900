//! P7: the environment inside is an allow list, and no descriptor from outside is there.

use crate::mode::by_mode;
use crate::place::{Ended, Place, finish, program};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

/// Secrets, sockets of the person's session, and variables that load code.
const UNWANTED: [&str; 34] = [
    "GITHUB_TOKEN",
    "NPM_TOKEN",
    "OPENAI_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "DATABASE_URL",
    "PGPASSWORD",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "TMUX",
    "TMUX_PANE",
    "HERDR_SOCKET_PATH",
    "HERDR_PANE_ID",
    "PINFOLD_X",
    "OPENCODE_SERVER_PASSWORD",
    "OPENCODE_CONFIG_CONTENT",
    "LD_LIBRARY_PATH",
    "LD_AUDIT_X",
    "BASH_ENV",
    "ENV",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PERL5OPT",
    "RUBYOPT",
    "GIT_CONFIG_COUNT",
    "GIT_SSH_COMMAND",
    "JAVA_TOOL_OPTIONS",
    "DOCKER_HOST",
];

fn names(ended: &Ended) -> BTreeSet<String> {
    let entries = ended.out.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            String::from_utf8_lossy(entry)
                .split('=')
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

fn laden(command: &mut Command) -> &mut Command {
    command
        .envs(UNWANTED.map(|name| (name, "unwanted")))
        .env("EDITOR", "vi")
        .env("LC_ALL", "C.UTF-8")
}

#[test]
fn only_allowed_variables_are_inside() {
    let place = Place::new();
    let outside = names(&finish(laden(place.command("env").arg("-0"))));
    assert!(UNWANTED.iter().all(|name| outside.contains(*name)));
    let inside = names(&finish(laden(&mut place.run(&["--block-net"], &["env", "-0"]))).expect(0));
    let mut expected = BTreeSet::from(["EDITOR", "HOME", "LANG", "LC_ALL", "PATH"].map(str::to_owned));
    // Where there is no /tmp of its own, it is told where its place for temporary files is.
    expected.extend(by_mode(None, Some("TMPDIR".to_owned())));
    assert_eq!(inside, expected);
}

#[test]
fn a_loader_of_the_launchers_own_environment_is_not_inside() {
    let place = Place::new();
    let mut command = place.run(&["--block-net"], &["env", "-0"]);
    let inside = names(&finish(command.env("LD_PRELOAD", "/nowhere.so").env("LD_BIND_NOW", "1")).expect(0));
    assert!(inside.iter().all(|name| !name.starts_with("LD_")), "{inside:?}");
}

#[test]
fn a_variable_that_was_named_is_inside() {
    let place = Place::new();
    let options = [
        "--block-net",
        "--env",
        "GITHUB_TOKEN",
        "--env",
        "MINE=a b=c",
        "--env",
        "EMPTY=",
    ];
    let ended = finish(laden(&mut place.run(&options, &["env"]))).expect(0);
    let lines: Vec<String> = ended.out().lines().map(str::to_owned).collect();
    for line in ["GITHUB_TOKEN=unwanted", "MINE=a b=c", "EMPTY="] {
        assert!(lines.iter().any(|one| one == line), "{line} in {lines:?}");
    }
    for bad in ["=x", ""] {
        assert_ne!(finish(&mut place.run(&["--env", bad], &["true"])).code(), 0, "{bad:?}");
    }
}

#[test]
fn a_variable_to_pass_on_that_is_not_set_is_named_and_nothing_runs() {
    let place = Place::new();
    let odd = OsStr::from_bytes(b"AB\xfeSENT");
    for name in [OsStr::new("ABSENT"), odd] {
        let options = [OsStr::new("--env"), name];
        let ended = finish(&mut place.run(&options, &["touch", "made"].map(OsStr::new))).expect(2);
        assert!(ended.err().starts_with("pinfold: --env AB"), "{}", ended.err());
        assert!(!place.work.join("made").exists());
        let control = finish(
            place
                .run(&options, &["sh", "-c", "exit 4"].map(OsStr::new))
                .env(name, "x"),
        );
        assert_eq!(control.code(), 4, "{}", control.err());
    }
    let ended = finish(place.command(program()).args(["explain", "--env", "ABSENT"])).expect(2);
    assert!(ended.err().contains("ABSENT"), "{}", ended.err());
}

#[test]
fn a_value_that_is_no_text_arrives_as_it_is() {
    let place = Place::new();
    let value = OsStr::from_bytes(b"\xff\n\x1b[31m");
    let ended = finish(place.run(&["--block-net"], &["env", "-0"]).env("EDITOR", value)).expect(0);
    let entry = [b"EDITOR=", value.as_bytes(), b"\0"].concat();
    assert!(ended.out.windows(entry.len()).any(|window| window == entry));
    let option = OsStr::from_bytes(b"ODD=\xfe");
    let ended = finish(&mut place.run(
        &[OsStr::new("--env"), option],
        &["sh", "-c", "printf %s \"$ODD\""].map(OsStr::new),
    ))
    .expect(0);
    assert_eq!(ended.out, b"\xfe");
}

#[test]
fn a_name_given_twice_is_there_once() {
    let place = Place::new();
    // Only a raw call gives a program the same name twice.
    let script = "
import ctypes, sys
strings = lambda words: (ctypes.c_char_p * (len(words) + 1))(*words, None)
env = [b'HOME=' + sys.argv[2].encode(), b'PATH=/usr/bin:/bin', b'GITHUB_TOKEN=x', b'EDITOR=one', b'EDITOR=two', b'GITHUB_TOKEN=y', b'noequals', b'=odd', b'LD_PRELOAD=', b'LD_PRELOAD=x']
ctypes.CDLL(None).execve(sys.argv[1].encode(), strings([b'pinfold', b'run', b'--block-net', b'--', b'env', b'-0']), strings(env))";
    let mut command = place.command("/usr/bin/python3");
    let ended = finish(command.args(["-c", script]).arg(program()).arg(&place.home)).expect(0);
    let names: Vec<String> = ended
        .out()
        .split('\0')
        .filter_map(|entry| Some(entry.split_once('=')?.0.to_owned()))
        .collect();
    assert_eq!(names.iter().filter(|name| *name == "EDITOR").count(), 1, "{names:?}");
    assert!(
        !names
            .iter()
            .any(|name| name == "GITHUB_TOKEN" || name == "LD_PRELOAD" || name.is_empty()),
        "{names:?}"
    );
}

#[test]
fn inherited_descriptors_are_not_inside() {
    let place = Place::new();
    let list = "for f in /proc/self/fd/*; do readlink $f || :; done";
    let open = "exec 7<\"$1/key\" 8<\"$1\" 9<>\"$1/key\" 200<\"$1\"; shift; exec \"$@\"";
    let folder = place.secrets.to_str().unwrap();
    let mut outside = place.command("bash");
    let control = finish(outside.args(["-c", open, "bash", folder, "sh", "-c", list])).expect(0);
    assert!(control.out().matches(folder).count() >= 4, "{}", control.out());
    let mut inside = place.command("bash");
    inside
        .args(["-c", open, "bash", folder])
        .arg(program())
        .args(["run", "--", "sh", "-c", list]);
    let ended = finish(&mut inside).expect(0);
    assert!(!ended.out().contains(folder), "{}", ended.out());
    let mut missing = place.command("bash");
    missing
        .args(["-c", open, "bash", folder])
        .arg(program())
        .args(["run", "--", "no-such-command"]);
    finish(&mut missing).expect(127);
}

#[test]
fn only_three_descriptors_are_inside() {
    let place = Place::new();
    let body =
        "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1], os.readlink('/proc/self/fd/0'))";
    let ended = finish(&mut place.run::<&str, _>(&[], &["/usr/bin/python3", "-I", "-c", body])).expect(0);
    assert_eq!(ended.out(), "[0, 1, 2] /dev/null\n");
    let ended = finish(&mut place.run(
        &["--service", "a.pinfold=127.0.0.1:9", "--open-port", "9"],
        &["/usr/bin/python3", "-I", "-c", body],
    ))
    .expect(0);
    assert_eq!(ended.out(), "[0, 1, 2] /dev/null\n");
}

#[test]
fn a_socket_that_leads_further_than_to_its_peer_is_refused_as_a_stream() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let start = |stream: std::os::fd::OwnedFd| {
        place
            .sh(&[], "echo ran")
            .stdin(std::process::Stdio::from(stream))
            .output()
            .unwrap()
    };
    let ended = start(stream.into());
    assert_eq!(ended.status.code(), Some(125));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(
        said.contains("standard input is a socket that leads further than to its peer"),
        "{said}"
    );
    let loose = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Unix,
        nix::sys::socket::SockType::Stream,
        nix::sys::socket::SockFlag::empty(),
        None,
    );
    assert_eq!(start(loose.unwrap()).status.code(), Some(125));
    let (pair, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let control = start(pair.into());
    assert_eq!(String::from_utf8_lossy(&control.stdout), "ran\n");
}
