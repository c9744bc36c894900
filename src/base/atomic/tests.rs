use super::*;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    names
}

#[test]
fn replaces_the_content_and_keeps_it_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    std::fs::write(&path, "old and longer").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    save(&path, b"new").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(folder.path()), ["f"]);
}

#[test]
fn takes_names_of_255_bytes_that_are_not_text() {
    let folder = tempfile::tempdir().unwrap();
    let name = std::os::unix::ffi::OsStringExt::from_vec([vec![0xff, b'\n'], vec![b'x'; 253]].concat());
    save(&folder.path().join::<OsString>(name), b"1").unwrap();
    assert_eq!(names(folder.path()).len(), 1);
}

#[test]
fn replaces_a_link_and_a_pipe_instead_of_writing_through_them() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link, pipe) = (
        folder.path().join("target"),
        folder.path().join("link"),
        folder.path().join("pipe"),
    );
    std::fs::write(&target, "precious").unwrap();
    symlink(&target, &link).unwrap();
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    save(&link, b"new").unwrap();
    save(&pipe, b"new").unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    assert!(link.symlink_metadata().unwrap().is_file());
    assert!(pipe.symlink_metadata().unwrap().is_file());
}

#[test]
fn names_the_path_and_the_step_and_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let occupied = folder.path().join("d\n");
    std::fs::create_dir(&occupied).unwrap();
    let error = save(&occupied, b"x").unwrap_err();
    assert_eq!(error.step, Step::Rename);
    assert!(
        error.to_string().contains("d\\n: renaming the temporary file failed"),
        "{error}"
    );
    assert_eq!(names(folder.path()), ["d\n"]);

    let error = save(&folder.path().join("none/f"), b"x").unwrap_err();
    assert_eq!((error.step, error.kind()), (Step::Folder, Kind::NotFound));
}

#[test]
fn a_full_disk_keeps_the_old_content() {
    crate::base::small_disk::run("base::atomic::tests::on_a_small_disk", 64 * 1024);
}

/// Runs in a mount namespace of its own, where `PINFOLD_SMALL_DISK` names a tiny tmpfs.
#[test]
#[ignore = "run by a_full_disk_keeps_the_old_content on a tiny tmpfs"]
fn on_a_small_disk() {
    let folder = PathBuf::from(std::env::var_os("PINFOLD_SMALL_DISK").unwrap());
    let path = folder.join("f");
    let old = vec![b'o'; 30 * 1024];
    save(&path, &old).unwrap();
    let error = save(&path, &vec![b'n'; 60 * 1024]).unwrap_err();
    assert_eq!(error.step, Step::Write);
    assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
    assert!(error.hint().is_some());
    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(names(&folder), ["f"]);
}
