use super::*;
use crate::base::{Explain as _, Kind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A real tmux server of its own, on a socket of its own.
struct Server {
    folder: tempfile::TempDir,
    pane: String,
}

impl Server {
    fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server {
            folder,
            pane: String::new(),
        };
        // A shell that would betray itself, were it ever asked to read a line for us.
        let shell = server.path().join("shell");
        std::fs::write(&shell, "#!/bin/sh\necho shell >> \"${0%/*}/betrayed\"\nsleep 60\n").unwrap();
        std::fs::set_permissions(&shell, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        server.tmux(&["new-session", "-d", "-x", "200", "-y", "100", "sleep", "600"]);
        server.tmux(&["set-option", "-g", "default-shell", shell.to_str().unwrap()]);
        server.pane = server.tmux(&["list-panes", "-F", "#{pane_id}"]);
        server
    }
    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }
    fn socket(&self) -> PathBuf {
        self.path().join("so,cket")
    }
    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .env_clear()
            .args(["-f", "/dev/null", "-S"])
            .arg(self.socket())
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
    fn env(&self) -> Environ {
        let tmux = format!("{},1,0", self.socket().display());
        let pairs = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("TMUX", &tmux),
            ("TMUX_PANE", &self.pane),
        ];
        pairs
            .iter()
            .map(|(k, v)| (OsString::from(k), OsString::from(v)))
            .collect()
    }
    fn host(&self) -> Tmux {
        let env = self.env();
        Tmux::new(&Surroundings {
            env: &env,
            uid: nix::unistd::geteuid(),
            workspace: None,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .env_clear()
            .arg("-S")
            .arg(self.socket())
            .arg("kill-server")
            .output();
    }
}

fn request(argv: &[&OsStr], folder: &Path) -> Request {
    Request {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        folder: AbsPath::new(folder).unwrap(),
        env: Vec::new(),
        place: Place::Right,
        focus: Focus::New,
    }
}

/// A program that writes its working folder, the variable K and its arguments, each ended by NUL, and then waits.
const TELL: &str =
    "out=$1; shift; { pwd; printf '%s\\0' \"$K\" \"$@\"; } > \"$out.new\"; mv \"$out.new\" \"$out\"; exec sleep 60";

fn read(path: &Path) -> Vec<u8> {
    let since = Instant::now();
    while !path.exists() {
        assert!(since.elapsed() < Duration::from_secs(10), "the pane ran nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::fs::read(path).unwrap()
}

fn there(opened: Opened) -> PaneId {
    match opened {
        Opened::There(pane) => pane,
        Opened::Here(pane) => panic!("{pane} is not a new pane"),
    }
}

#[test]
fn words_variables_and_folder_arrive_byte_for_byte_without_a_shell() {
    let server = Server::start();
    let odd: [&[u8]; 22] = [
        b"a b",
        b"it's \"quoted\"",
        b"$(touch betrayed)",
        b"`touch betrayed`",
        b"line\nbreak",
        b";",
        b"\\;",
        b"\\\\;",
        b"x;",
        b"x\\;",
        b"-t",
        b"--",
        b"",
        b"\xff\xfe",
        b"#{pane_id}",
        b"#(touch betrayed)",
        b"##[x",
        b"%H",
        b"~",
        b"*",
        b"\x1b[2K",
        b"${K}",
    ];
    let folder = server.path().join(OsStr::from_bytes(
        b"-f #(touch betrayed) #{pane_id} ##[x %H 'q\" \n\xff;",
    ));
    std::fs::create_dir(&folder).unwrap();
    let out = server.path().join("out");
    let mut argv: Vec<&OsStr> = ["/bin/sh", "-c", TELL, "sh"].map(OsStr::new).to_vec();
    argv.push(out.as_os_str());
    argv.extend(odd.map(OsStr::from_bytes));
    for (place, value) in [
        (Place::Right, &b"a=b\n\xff;"[..]),
        (Place::Below, b";"),
        (Place::Window, b"#{pane_id} $(x)\\;"),
    ] {
        let mut request = request(&argv, &folder);
        request.place = place;
        request.env = vec![("K".into(), OsString::from_vec(value.to_vec()))];
        let pane = there(server.host().open_pane(&request).unwrap());
        let mut expected = [folder.as_os_str().as_bytes(), b"\n", value, b"\0"].concat();
        odd.iter().for_each(|word| expected.extend([word, &b"\0"[..]].concat()));
        assert_eq!(
            read(&out).escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
        std::fs::remove_file(&out).unwrap();
        server.host().close(&pane).unwrap();
    }
    assert!(!server.path().join("betrayed").exists() && !folder.join("betrayed").exists());
}

#[test]
fn a_single_word_is_a_program_not_a_line_for_a_shell() {
    let server = Server::start();
    let program = server.path().join("it's a; touch betrayed");
    std::os::unix::fs::symlink("/bin/cat", &program).unwrap();
    let pane = there(
        server
            .host()
            .open_pane(&request(&[program.as_os_str()], &server.path()))
            .unwrap(),
    );
    let local = pane.as_str().rsplit(':').next().unwrap();
    let since = Instant::now();
    let command = || server.tmux(&["display-message", "-p", "-t", local, "#{pane_current_command}"]);
    // tmux shows the first word of the name.
    while command() != "it's" {
        assert!(since.elapsed() < Duration::from_secs(10), "{}", command());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!server.path().join("betrayed").exists());
    // Control: the same word given to tmux as it is goes through the person's shell.
    server.tmux(&["new-window", "-d", "--", program.to_str().unwrap()]);
    read(&server.path().join("betrayed"));
}

#[test]
fn opens_shows_and_closes_only_its_own_pane() {
    let server = Server::start();
    let host = server.host();
    let here = host.here().unwrap();
    assert!(host.is_around() && host.pane_exists(&here).unwrap());
    let mut wanted = request(&["sleep".as_ref(), "600".as_ref()], &server.path());
    wanted.focus = Focus::Unchanged;
    let active = || server.tmux(&["display-message", "-p", "#{pane_id}"]);
    let opened = there(host.open_pane(&wanted).unwrap());
    assert_eq!(active(), server.pane);
    host.focus(&opened).unwrap();
    assert_ne!(active(), server.pane);
    assert!(host.pane_exists(&opened).unwrap());
    host.close(&opened).unwrap();
    assert!(!host.pane_exists(&opened).unwrap() && host.pane_exists(&here).unwrap());
    host.close(&opened).unwrap();

    let other = PaneId::new("tmux:00000000:%0").unwrap();
    assert!(matches!(host.close(&other), Err(HostError::Foreign { .. })));
    server.tmux(&["kill-server"]);
    let since = Instant::now();
    while host.pane_exists(&here).unwrap_or(true) && since.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!host.pane_exists(&here).unwrap());
    let error = host.open_pane(&wanted).unwrap_err();
    assert_eq!(
        (
            error.kind(),
            error.to_string().starts_with("there is no tmux server at ")
        ),
        (Kind::NotFound, true)
    );
}

#[test]
fn says_what_is_wrong_with_a_request() {
    let server = Server::start();
    let host = server.host();
    let gone = host
        .open_pane(&request(&["sleep".as_ref(), "1".as_ref()], &server.path().join("gone")))
        .unwrap_err();
    assert!(matches!(gone, HostError::Folder(_)), "{gone}");
    assert!(matches!(
        host.open_pane(&request(&[], &server.path())),
        Err(HostError::NoProgram)
    ));
    let mut bad = request(&["sleep".as_ref(), "1".as_ref()], &server.path());
    bad.env = vec![("A=B".into(), "c".into())];
    assert!(matches!(host.open_pane(&bad), Err(HostError::Variable(_))));
    let long = "x".repeat(20_000);
    let error = host
        .open_pane(&request(&["echo".as_ref(), long.as_ref()], &server.path()))
        .unwrap_err();
    assert!(matches!(error, HostError::Refused { .. }), "{error}");
}

#[test]
fn never_runs_a_tmux_from_the_workspace() {
    let server = Server::start();
    let work = server.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let planted = work.join("tmux");
    std::fs::write(&planted, "#!/bin/sh\ntouch \"${0%/*}/betrayed\"\n").unwrap();
    std::fs::set_permissions(&planted, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut env = server.env();
    env.insert("PATH".into(), format!("{}:.::/usr/bin:/bin", work.display()).into());
    let root = AbsPath::new(&work).unwrap();
    let host = |workspace| {
        Tmux::new(&Surroundings {
            env: &env,
            uid: nix::unistd::geteuid(),
            workspace,
        })
    };
    let here = server.host().here().unwrap();
    assert!(
        !host(None).pane_exists(&here).unwrap() && work.join("betrayed").exists(),
        "control: without a workspace it runs"
    );
    std::fs::remove_file(work.join("betrayed")).unwrap();
    assert!(host(Some(&root)).pane_exists(&here).unwrap());
    assert!(!work.join("betrayed").exists());

    env.insert("PATH".into(), work.clone().into());
    let host = Tmux::new(&Surroundings {
        env: &env,
        uid: nix::unistd::geteuid(),
        workspace: Some(&root),
    });
    assert!(matches!(host.pane_exists(&here), Err(HostError::Program(_))));
}

#[test]
fn reads_only_a_well_formed_surrounding() {
    let around = |pairs: &[(&str, &str)]| {
        let env: Environ = pairs
            .iter()
            .map(|(k, v)| (OsString::from(k), OsString::from(v)))
            .collect();
        let host = Tmux::new(&Surroundings {
            env: &env,
            uid: nix::unistd::Uid::from_raw(7),
            workspace: None,
        });
        (host.here(), host.socket)
    };
    let default = AbsPath::new("/tmp/tmux-7/default").unwrap();
    for pairs in [
        &[("TMUX_PANE", "%1")][..],
        &[("TMUX", "relative,1,0"), ("TMUX_PANE", "%1")],
        &[("TMUX", "/s"), ("TMUX_PANE", "%1")],
        &[("TMUX", ""), ("TMUX_PANE", "%1")],
    ] {
        assert_eq!(around(pairs), (None, Some(default.clone())), "{pairs:?}");
    }
    for pane in ["", "1", "%", "%1;kill-server", "%-1", "%99999999999"] {
        assert_eq!(around(&[("TMUX", "/s,1,0"), ("TMUX_PANE", pane)]).0, None, "{pane}");
    }
    let (here, socket) = around(&[("TMUX", "/a,b,1,0"), ("TMUX_PANE", "%12")]);
    assert_eq!(socket.unwrap().as_path(), Path::new("/a,b"));
    assert!(here.unwrap().as_str().ends_with(":%12"));
}
