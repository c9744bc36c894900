//! Folders with odd names, and folders that are refused.

use crate::agent::fake;
use crate::pane::{Terminal, Tmux};
use crate::place::{LIMIT, Place, command_of, finished, pinfold, until};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const ODD: [&[u8]; 10] = [
    b"with space",
    b"'single' \"double\"",
    b"two\nlines\ttab",
    b"$(touch planted) `touch planted` $HOME",
    b"--json",
    b"not-\xff\xfe-utf8",
    b"#{pane_id} #(touch planted)",
    b"semicolon;",
    b"back\\slash\\",
    "\u{202e}bidi \u{1f41a}".as_bytes(),
];

#[test]
fn a_workspace_may_have_any_name() {
    let place = Place::new();
    let tmux = Tmux::start(&place);
    let binary = fake(&place, "good");
    for (number, name) in ODD.iter().enumerate() {
        let folder = place.path().join("odd").join(OsStr::from_bytes(name));
        std::fs::create_dir_all(&folder).unwrap();
        // The name as a word, and as the folder that it is started in.
        let mut command = tmux.pinfold();
        command.args(["start", "--json", "--binary"]).arg(&binary);
        match number % 2 {
            0 => drop(command.arg("--workdir").arg(&folder)),
            _ => drop(command.current_dir(&folder)),
        }
        let said = finished(command);
        assert_eq!(said.status, Some(0), "{}", said.stderr);
        let session = place.session_of(&said.stdout, "running");
        let cwd = std::fs::read_link(format!("/proc/{}/cwd", command_of(&session, "server"))).unwrap();
        assert_eq!(cwd, folder);
        tmux.shows(&Tmux::pane_of(&session), "CLIENT READY");
        let key = session["launchId"].as_str().unwrap();
        let inside = place.pinfold(["shell", key, "--", "pwd"]);
        assert_eq!(inside.stdout, format!("{}\n", folder.to_string_lossy()));
        let info = place.pinfold(["info", key]);
        assert!(!info.stdout.contains(['\u{202e}', '\t']), "{}", info.stdout);
        assert_eq!(place.pinfold(["verify", key]).status, Some(0));
        assert_eq!(place.pinfold(["stop", key]).status, Some(0));
        place.nothing_is_left();
    }
    let planted = Command::new("find")
        .arg(place.path())
        .args(["-name", "planted"])
        .output()
        .unwrap();
    assert_eq!(planted.stdout, b"");
}

#[test]
fn a_folder_that_cannot_be_a_workspace_is_refused_before_a_pane_is_opened() {
    let place = Place::new();
    let tmux = Tmux::start(&place);
    let binary = fake(&place, "good");
    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    let link = place.path().join("link-to-root");
    symlink("/", &link).unwrap();
    let table: [(PathBuf, &str); 9] = [
        ("/".into(), "/"),
        (place.home(), "home"),
        (place.path().into(), "home"),
        (place.home().join(".."), "home"),
        (link, "/"),
        ("/etc".into(), "/etc"),
        (place.state(), "pinfold"),
        (place.path().join("none"), "none"),
        (file, "file"),
    ];
    std::fs::create_dir_all(place.state()).unwrap();
    for (folder, word) in table {
        let mut command = tmux.pinfold();
        command
            .args(["start", "--json", "--binary"])
            .arg(&binary)
            .arg("--workdir")
            .arg(&folder);
        let said = finished(command);
        assert!(
            matches!(said.status, Some(125 | 126)),
            "{folder:?}: {:?} {}",
            said.status,
            said.stderr
        );
        assert!(said.stderr.contains(word), "{folder:?}: {}", said.stderr);
        assert!(
            said.stderr.trim_end().lines().count() >= 2,
            "{folder:?}: {}",
            said.stderr
        );
        let answer: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(answer["ok"], false);
        assert_eq!(tmux.panes(), ["%0"], "{folder:?}");
        assert!(place.sessions().is_empty());
    }
}

/// `start` in a terminal until the client is up, and its normal end.
#[track_caller]
fn works(place: &Place) {
    let (program, binary) = (pinfold(), fake(place, "good"));
    let words = ["start", "--host", "terminal", "--binary"].map(OsStr::new);
    let mut terminal = Terminal::open();
    terminal.lead(
        place,
        &[&[program.as_os_str()], &words[..], &[binary.as_os_str()]].concat(),
    );
    terminal.shows("CLIENT READY");
    terminal.write(b"q");
    assert_eq!(terminal.status(), Some(7), "{}", terminal.text());
    place.nothing_is_left();
}

#[track_caller]
fn is_refused(place: &Place, words: &str) {
    let (program, binary) = (pinfold(), fake(place, "good"));
    let start = ["start", "--host", "terminal", "--binary"].map(OsStr::new);
    let mut terminal = Terminal::open();
    terminal.lead(
        place,
        &[&[program.as_os_str()], &start[..], &[binary.as_os_str()]].concat(),
    );
    let status = terminal.status();
    let said = terminal.text();
    assert!(matches!(status, Some(125 | 126)), "{said}");
    assert!(said.contains(words), "{words}: {said}");
}

fn xdg(place: &Place) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let names = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
    names.map(|name| (name.into(), place.path().join(name).into())).to_vec()
}

#[test]
fn works_without_home_and_with_folders_that_are_links() {
    let mut place = Place::new();
    // Empty counts as not set; the XDG folders are set, so nothing is written to this user's own.
    place.variables = [xdg(&place), vec![("HOME".into(), "".into())]].concat();
    works(&place);

    let place = Place::new();
    let real = place.path().join("real-state");
    std::fs::create_dir_all(&real).unwrap();
    std::fs::create_dir_all(place.home().join(".local")).unwrap();
    symlink(&real, place.home().join(".local/state")).unwrap();
    works(&place);
    assert!(real.join("pinfold/panes").exists());
}

#[test]
fn folders_of_its_own_that_an_agent_or_another_user_could_change_are_refused() {
    let with = |variable: &str, path: &Path| {
        let mut place = Place::new();
        place.variables.push((variable.into(), path.into()));
        place
    };
    is_refused(&with("XDG_STATE_HOME", Path::new("relative/path")), "XDG_STATE_HOME");
    let mut place = Place::new();
    place
        .variables
        .push(("XDG_STATE_HOME".into(), place.project.join("state").into()));
    is_refused(&place, "pinfold");
    let place = Place::new();
    std::fs::create_dir_all(place.home().join(".local")).unwrap();
    symlink(&place.project, place.home().join(".local/state")).unwrap();
    is_refused(&place, "pinfold");
    let place = Place::new();
    std::fs::create_dir_all(place.home().join(".local")).unwrap();
    symlink("/none/such", place.home().join(".local/state")).unwrap();
    is_refused(&place, "is a link that leads nowhere");
    let place = Place::new();
    std::fs::create_dir_all(place.state()).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.state(), open).unwrap();
    is_refused(&place, "can be changed by other users");
    if nix::unistd::geteuid().is_root() {
        let place = Place::new();
        std::fs::create_dir_all(place.state()).unwrap();
        std::os::unix::fs::chown(place.state(), Some(1), None).unwrap();
        is_refused(&place, "belongs to another user");
    }
}

#[test]
fn a_terminal_of_no_size_gets_a_client_that_can_draw() {
    let place = Place::new();
    let (program, binary) = (pinfold(), fake(&place, "good"));
    let words = ["start", "--host", "terminal", "--binary"].map(OsStr::new);
    let mut terminal = Terminal::sized(0, 0);
    terminal.lead(
        &place,
        &[&[program.as_os_str()], &words[..], &[binary.as_os_str()]].concat(),
    );
    terminal.shows("CLIENT READY");
    terminal.write(b"q");
    assert_eq!(terminal.status(), Some(7));
    until(LIMIT, "nothing is left", || place.left().is_empty().then_some(()));
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let place = Place::new();
    let binary = fake(&place, "good");
    for host in [&[][..], &["--host", "terminal"]] {
        let binary = ["start", "--binary", binary.to_str().unwrap()];
        let said = place.pinfold([&binary[..], host].concat());
        assert_eq!(said.status, Some(125), "{}", said.stderr);
        assert!(said.stderr.contains("pinfold run"), "{}", said.stderr);
    }
    assert!(place.sessions().is_empty());
}
