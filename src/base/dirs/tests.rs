use super::*;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn us() -> Uid {
    nix::unistd::geteuid()
}

fn env(pairs: &[(&str, &Path)]) -> Environ {
    pairs
        .iter()
        .map(|(name, value)| (OsString::from(name), value.as_os_str().to_owned()))
        .collect()
}

fn mode(path: &Path, bits: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
}

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        mode(&folder.path().join("run"), 0o700);
        Home(folder)
    }
    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }
    fn resolve(&self, more: &[(&str, &Path)]) -> Result<Dirs, DirsError> {
        let (home, run) = (self.path(), self.path().join("run"));
        let pairs = [("HOME", home.as_path()), ("XDG_RUNTIME_DIR", &run)];
        Dirs::resolve(&env(&[&pairs, more].concat()), us())
    }
}

#[test]
fn follows_herdr_then_xdg_then_home() {
    let home = Home::new();
    let at = |path: &str| AbsPath::new(home.path().join(path)).unwrap();
    let dirs = home.resolve(&[("XDG_DATA_HOME", Path::new(""))]).unwrap();
    assert_eq!(dirs.config, at(".config/pinfold"));
    assert_eq!(dirs.state, at(".local/state/pinfold"));
    assert_eq!(dirs.data, at(".local/share/pinfold"));
    assert_eq!(dirs.runtime, at("run/pinfold"));

    let xdg = home.resolve(&[("XDG_STATE_HOME", &home.path().join("s"))]).unwrap();
    assert_eq!(xdg.state, at("s/pinfold"));
    let plugin = home.path().join("plugin");
    let herdr = [
        ("HERDR_PLUGIN_STATE_DIR", plugin.as_path()),
        ("XDG_STATE_HOME", Path::new("/s")),
    ];
    assert_eq!(home.resolve(&herdr).unwrap().state, at("plugin"));
}

#[test]
fn takes_the_home_folder_from_the_user_database_without_home() {
    let home = Home::new();
    let run = home.path().join("run");
    let found = Dirs::resolve(&env(&[("XDG_RUNTIME_DIR", &run)]), us()).unwrap();
    let user = User::from_uid(us()).unwrap().unwrap();
    assert!(found.state.as_path().starts_with(user.dir.canonicalize().unwrap()));
    let nobody = Uid::from_raw(4_242_424);
    assert!(matches!(Dirs::resolve(&env(&[]), nobody), Err(DirsError::NoHome(uid)) if uid == nobody));
}

#[test]
fn keeps_every_byte_of_a_name() {
    let home = Home::new();
    let odd = home.path().join(OsStr::from_bytes(b"p\nq \xff\"x"));
    let dirs = home.resolve(&[("XDG_STATE_HOME", &odd)]).unwrap();
    assert_eq!(dirs.state.as_path(), odd.join("pinfold"));
    make(&dirs.state).unwrap();
    assert_eq!(dirs.state.as_path().metadata().unwrap().mode() & 0o777, 0o700);
    assert_eq!(odd.metadata().unwrap().mode() & 0o777, 0o700);
}

#[test]
fn resolves_links_to_folders_of_ours() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("dotfiles")).unwrap();
    symlink("dotfiles", home.path().join(".config")).unwrap();
    let dirs = home.resolve(&[]).unwrap();
    assert_eq!(dirs.config.as_path(), home.path().join("dotfiles/pinfold"));
}

#[test]
fn refuses_relative_dangling_and_foreign_places() {
    let home = Home::new();
    let relative = home.resolve(&[("XDG_STATE_HOME", Path::new("state"))]).unwrap_err();
    assert!(
        matches!(
            relative,
            DirsError::Variable {
                variable: "XDG_STATE_HOME",
                ..
            }
        ),
        "{relative}"
    );

    let dangling = home.path().join("dangling");
    symlink("/nowhere/at/all", &dangling).unwrap();
    let error = home.resolve(&[("XDG_DATA_HOME", &dangling)]).unwrap_err();
    assert!(matches!(error, DirsError::Dangling(_)), "{error}");

    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = home.resolve(&[("XDG_CONFIG_HOME", &file)]).unwrap_err();
    assert!(matches!(error, DirsError::NotFolder(_)), "{error}");

    let open = home.path().join("open");
    std::fs::create_dir(&open).unwrap();
    mode(&open, 0o777);
    let error = home.resolve(&[("XDG_CONFIG_HOME", &open)]).unwrap_err();
    assert!(matches!(error, DirsError::Exposed(path) if path == open));

    // Seen by another user, this home is somebody else's; for that, root gives its own away.
    let uid = if us().is_root() {
        std::os::unix::fs::chown(home.path(), Some(4_242_424), None).unwrap();
        us()
    } else {
        Uid::from_raw(4_242_424)
    };
    let folder = home.path();
    let error = Dirs::resolve(&env(&[("HOME", &folder)]), uid).unwrap_err();
    assert!(matches!(error, DirsError::NotOurs(_)), "{error}");
}

#[test]
fn an_unusable_runtime_folder_leads_to_a_private_one() {
    let home = Home::new();
    let temporary = home.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let fallback = temporary.join(format!("pinfold-{}", us()));
    let run = home.path().join("run");
    let link = home.path().join("link");
    symlink(&run, &link).unwrap();
    let open = home.path().join("open");
    std::fs::create_dir(&open).unwrap();
    mode(&open, 0o755);
    let missing = home.path().join("missing");
    for bad in [link.as_path(), &open, &missing, Path::new("relative"), Path::new("")] {
        let found = runtime(&env(&[("XDG_RUNTIME_DIR", bad)]), us(), &temporary).unwrap();
        assert_eq!(found.as_path(), fallback, "{bad:?}");
        assert_eq!(fallback.metadata().unwrap().mode() & 0o7777, 0o700);
    }
    let good = runtime(&env(&[("XDG_RUNTIME_DIR", &run)]), us(), &temporary).unwrap();
    assert_eq!(good.as_path(), run.join("pinfold"));
}

#[test]
fn a_planted_fallback_is_refused_and_a_readable_one_closed() {
    let home = Home::new();
    let temporary = home.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let fallback = temporary.join(format!("pinfold-{}", us()));

    symlink(home.path(), &fallback).unwrap();
    assert!(matches!(
        runtime(&env(&[]), us(), &temporary),
        Err(DirsError::NotFolder(_))
    ));
    std::fs::remove_file(&fallback).unwrap();

    std::fs::create_dir(&fallback).unwrap();
    mode(&fallback, 0o777);
    assert!(matches!(
        runtime(&env(&[]), us(), &temporary),
        Err(DirsError::Exposed(_))
    ));

    mode(&fallback, 0o755);
    runtime(&env(&[]), us(), &temporary).unwrap();
    assert_eq!(fallback.metadata().unwrap().mode() & 0o777, 0o700);

    // To another user it is not theirs.
    let other = Uid::from_raw(us().as_raw() + 1);
    assert!(matches!(private(&fallback, other, 0), Err(DirsError::NotOurs(_))));
}
