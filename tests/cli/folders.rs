//! Homes, XDG folders and workspaces that are missing, strange or somebody else's.

use crate::place::{Place, finish};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_workspace_that_is_none_is_refused_with_its_name() {
    let place = Place::new();
    let file = place.work.join("file");
    std::fs::write(&file, "").unwrap();
    let dangling = place.work.join("dangling");
    symlink("nowhere", &dangling).unwrap();
    let looping = place.work.join("loop");
    symlink("loop", &looping).unwrap();
    for (path, words) in [
        (Path::new("/no/such/folder"), "does not exist"),
        (&file, "is not a folder"),
        (&dangling, "does not exist"),
        (&looping, ""),
        (Path::new("file/below"), ""),
    ] {
        let before = crate::place::finish(place.command("ls").arg("-la")).out();
        let ended = finish(&mut place.run(&["--workdir", path.to_str().unwrap()], &["true"]));
        assert_eq!(ended.code(), 125, "{path:?}: {}", ended.err());
        assert!(ended.err().contains(words), "{path:?}: {}", ended.err());
        assert_eq!(before, finish(place.command("ls").arg("-la")).out());
    }
}

#[test]
fn an_unreadable_workspace_is_refused() {
    let place = Place::new();
    let folder = place.path().join("closed");
    std::fs::create_dir(&folder).unwrap();
    chmod(&folder, 0o000);
    let ended = finish(&mut place.run(&["--workdir", folder.to_str().unwrap()], &["true"]));
    chmod(&folder, 0o700);
    // Root may list it outside, but has no such right inside: there it fails later, when it is entered.
    let code = if nix::unistd::geteuid().is_root() { 125 } else { 126 };
    assert!(ended.expect(code).err().contains("closed"));
}

#[test]
fn a_folder_that_went_away_under_the_caller_is_told() {
    let place = Place::new();
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" run -- true";
    let mut command = place.command("sh");
    let ended = finish(command.args(["-c", script]).arg(crate::place::program())).expect(125);
    assert!(ended.err().contains("--workdir"), "{}", ended.err());
}

#[test]
fn a_workspace_by_a_link_is_what_the_link_leads_to() {
    let place = Place::new();
    let link = place.path().join("link");
    symlink(&place.work, &link).unwrap();
    let ended = finish(&mut place.run(&["--workdir", link.to_str().unwrap()], &["pwd", "-P"])).expect(0);
    assert_eq!(ended.out(), format!("{}\n", place.work.display()));
    let by_proc = format!("/proc/{}/cwd", std::process::id());
    let ended = finish(&mut place.run(&["--workdir", &by_proc], &["true"]));
    assert!(ended.code() == 0 || ended.code() == 125, "{}", ended.err());
}

#[test]
fn without_a_home_variable_the_users_own_is_used_or_its_lack_told() {
    let place = Place::new();
    for value in [None, Some(""), Some("relative/home"), Some("/no/such/home")] {
        let mut command = place.sh(&[], "echo fine");
        command
            .env("XDG_STATE_HOME", place.path().join("state"))
            .env("XDG_CONFIG_HOME", place.path().join("config"));
        command.env("XDG_DATA_HOME", place.path().join("data"));
        match value {
            Some(value) => command.env("HOME", value),
            None => command.env_remove("HOME"),
        };
        let ended = finish(&mut command);
        match ended.code() {
            0 => assert_eq!(ended.out(), "fine\n"),
            125 => assert!(
                ended.err().to_lowercase().contains("home"),
                "{value:?}: {}",
                ended.err()
            ),
            code => panic!("{value:?}: {code} {}", ended.err()),
        }
    }
}

#[test]
fn xdg_folders_that_are_links_relative_or_files_get_an_answer() {
    let place = Place::new();
    let real = place.path().join("real");
    std::fs::create_dir(&real).unwrap();
    let link = place.path().join("xdg-link");
    symlink(&real, &link).unwrap();
    let file = place.path().join("xdg-file");
    std::fs::write(&file, "").unwrap();
    for variable in [
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_CACHE_HOME",
    ] {
        for value in [
            link.to_str().unwrap(),
            "relative",
            file.to_str().unwrap(),
            "/proc/none",
            "",
        ] {
            let ended = finish(place.sh(&[], "echo fine").env(variable, value));
            match ended.code() {
                0 => assert_eq!(ended.out(), "fine\n", "{variable}={value}"),
                125 | 126 => assert!(
                    ended.err().starts_with("pinfold: ") && ended.err().lines().count() <= 3,
                    "{variable}={value}: {}",
                    ended.err()
                ),
                code => panic!("{variable}={value}: {code} {}", ended.err()),
            }
        }
    }
}

#[test]
fn a_state_folder_of_somebody_else_is_not_written_to() {
    if !nix::unistd::geteuid().is_root() {
        // Only root can make a folder that is somebody else's.
        return;
    }
    let place = Place::new();
    let state = place.path().join("state");
    std::fs::create_dir_all(state.join("pinfold")).unwrap();
    std::os::unix::fs::chown(state.join("pinfold"), Some(1), Some(1)).unwrap();
    let ended = finish(place.sh(&[], "echo fine").env("XDG_STATE_HOME", &state));
    assert!(
        ended.code() == 125 || ended.code() == 126,
        "{} {}",
        ended.code(),
        ended.err()
    );
    assert!(ended.err().contains("state"), "{}", ended.err());
}

#[test]
fn a_workspace_that_changes_its_link_while_running_stays_the_same() {
    let place = Place::new();
    let link = place.path().join("moving");
    symlink(&place.work, &link).unwrap();
    let script = format!(
        "ln -sfn {} {} 2>/dev/null; echo x > here; pwd -P",
        place.secrets.display(),
        link.display()
    );
    finish(&mut place.run(&["--workdir", link.to_str().unwrap()], &["sh", "-c", &script])).expect(0);
    assert!(place.work.join("here").exists() && !place.secrets.join("here").exists());
}

#[test]
fn a_named_workspace_is_that_folder_and_nothing_around_it() {
    let place = Place::new();
    std::fs::create_dir_all(place.work.join(".git")).unwrap();
    std::fs::create_dir(place.work.join("part")).unwrap();
    let part = place.work.join("part");
    let script = "echo x > ../beside; echo x > within";
    let ended = finish(&mut place.sh(&["--workdir", part.to_str().unwrap()], script));
    assert_eq!(ended.code(), 0, "{}", ended.err());
    assert!(part.join("within").exists() && !place.work.join("beside").exists());
    // The control: without a name, the project's top level is the workspace.
    let mut command = place.sh(&[], script);
    command.current_dir(&part);
    assert_eq!(finish(&mut command).code(), 0);
    assert!(place.work.join("beside").exists());
}
