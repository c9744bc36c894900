//! After exit a launch tells what it changed that the host may execute, and only that.

use crate::place::{Place, finish, program};
use crate::protected::repository;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

fn told(place: &Place, script: &str) -> Vec<String> {
    let ended = finish(&mut place.sh(&[], script)).expect(0);
    ended.err().lines().map(str::to_owned).collect()
}

#[test]
fn what_the_host_may_execute_is_told_and_ordinary_work_is_not() {
    for (script, wanted) in [
        (
            "mkdir -p src; echo x > src/main.rs; echo x > README.md; rm -f file",
            None,
        ),
        ("echo '{}' > package.json", Some("package.json")),
        ("mkdir -p a/b; echo x: > a/b/Makefile", Some("a/b/Makefile")),
        (
            "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
            Some(".github/workflows/ci.yml"),
        ),
        ("echo x > run; chmod +x run", Some("run")),
        ("chmod +x file", Some("file")),
        ("mkdir sub; echo x > sub/.envrc", Some("sub/.envrc")),
        (
            "mkdir -p v; git -C v init -q; echo x > v/.git/hooks/post-checkout",
            Some("v/.git/hooks/post-checkout"),
        ),
        (
            "git -c safe.directory='*' init -q --bare odd; echo x > odd/hooks/update",
            Some("odd/hooks/update"),
        ),
        ("mkdir -p evil; echo 'gitdir: ../x' > evil/.git", Some("evil/.git")),
    ] {
        let place = repository();
        let told = told(&place, script);
        match wanted {
            None => assert_eq!(told, [""; 0], "{script}"),
            Some(path) => {
                let whole = place.work.join(path);
                assert!(
                    told.iter().any(|line| line.contains(whole.to_str().unwrap())),
                    "{script}: {told:?}"
                );
            }
        }
    }
}

#[test]
fn what_was_there_before_is_not_told_and_a_time_set_back_hides_nothing() {
    let place = repository();
    for name in ["Makefile", "package.json", "build.rs"] {
        std::fs::write(place.work.join(name), "x").unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(told(&place, "cat Makefile package.json build.rs > /dev/null"), [""; 0]);
    let told = told(&place, "echo y > Makefile; touch -d 1990-01-01 Makefile");
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn many_are_told_in_few_lines_and_all_of_them_on_request() {
    let place = repository();
    let script = "
mkdir -p node_modules/x; for i in $(seq 50); do echo x > node_modules/x/$i; chmod +x node_modules/x/$i; done
for i in $(seq 40); do mkdir p$i; echo '{}' > p$i/package.json; done";
    let told = told(&place, script);
    assert_eq!(told.len(), 21, "{told:?}");
    let name = told[20]
        .split_whitespace()
        .find(|word| word.starts_with("run-"))
        .unwrap();
    let mut info = place.command(program());
    let all = finish(info.args(["info", name, "--changes"])).expect(0).out();
    assert_eq!(all.lines().count(), 41, "{all}");
    assert!(all.contains("50 files in"), "{all}");
    let mut info = place.command(program());
    let json = finish(info.args(["info", name, "--changes", "--json"])).expect(0).out();
    assert!(
        json.contains("\"count\":50") || json.contains("\"count\": 50"),
        "{json}"
    );
}

#[test]
fn bytes_of_a_name_cannot_write_to_the_terminal() {
    let place = Place::new();
    let mut name = b"x\x1b]0;y\x07\n".to_vec();
    name.push(0xff);
    let file = place.work.join(std::ffi::OsStr::from_bytes(&name));
    std::fs::write(&file, "x").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ended = finish(&mut place.sh(&[], "chmod +x x*")).expect(0);
    assert_eq!(ended.err.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(!ended.err.contains(&0x1b) && !ended.err.contains(&7), "{}", ended.err());
}

#[test]
fn a_protected_file_that_is_changed_by_another_name_is_told() {
    let place = repository();
    std::fs::hard_link(place.work.join(".mcp.json"), place.work.join("alias")).unwrap();
    std::fs::hard_link(place.work.join(".vscode/tasks.json"), place.work.join("tasks")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(told(&place, "cat alias tasks > /dev/null"), [""; 0]);
    let told = told(&place, "echo evil > alias; echo evil > tasks");
    for name in [".mcp.json", ".vscode/tasks.json"] {
        let whole = place.work.join(name);
        assert!(
            told.iter().any(|line| line.contains(whole.to_str().unwrap())),
            "{name}: {told:?}"
        );
    }
}
