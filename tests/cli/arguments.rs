//! Arguments, folders and environments of any bytes and of any size.

use crate::place::{Place, finish};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Names that have broken shells, scripts and parsers.
const ODD: [&[u8]; 16] = [
    b"with space",
    b"it's",
    b"say \"hi\"",
    b"new\nline",
    b"$(touch pwned)",
    b"`touch pwned`",
    b"-rf",
    b"--bind",
    b"a'b\"c",
    b"\xff\xfe",
    b"p\nq \xffx",
    b"tab\there",
    b"\x1b[31mred",
    b"*",
    b"~",
    b"end\\",
];

/// Words of any kind as arguments.
fn words(list: &[&[u8]]) -> Vec<OsString> {
    list.iter().map(|word| OsStr::from_bytes(word).to_owned()).collect()
}

#[test]
fn arguments_arrive_as_they_are() {
    let place = Place::new();
    let mut argv = words(&[b"printf", b"%s\\0"]);
    argv.extend(words(&ODD));
    argv.push(OsString::new());
    let ended = finish(&mut place.run::<&str, _>(&[], &argv)).expect(0);
    let mut expected: Vec<&[u8]> = ODD.to_vec();
    expected.extend([&b""[..], b""]);
    assert_eq!(ended.out.split(|byte| *byte == 0).collect::<Vec<_>>(), expected);
    assert_eq!(std::fs::read_dir(&place.work).unwrap().count(), 0);
}

#[test]
fn a_workspace_of_any_name_is_one() {
    let place = Place::new();
    for name in ODD {
        let folder = place.path().join(OsStr::from_bytes(name));
        std::fs::create_dir(&folder).unwrap();
        let mut command = place.sh(&[], "printf %s \"$PWD\"; echo x > made; pwd -P >/dev/null");
        let ended = finish(command.current_dir(&folder)).expect(0);
        assert_eq!(ended.out, folder.as_os_str().as_bytes());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{name:?}");
        let option = [OsStr::new("--workdir"), folder.as_os_str()];
        let ended = finish(&mut place.run(&option, &["sh", "-c", "printf %s \"$PWD\""].map(OsStr::new))).expect(0);
        assert_eq!(ended.out, folder.as_os_str().as_bytes());
    }
}

#[test]
fn a_grant_of_any_name_is_that_one() {
    let place = Place::new();
    for name in ODD {
        let folder = place.secrets.join(OsStr::from_bytes(name));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("f"), "found").unwrap();
        let file = folder.join("f");
        let argv = [OsStr::new("cat"), OsStr::new("--"), file.as_os_str()];
        let mut option = OsString::from("--read=");
        option.push(&folder);
        assert_eq!(finish(&mut place.run(&[option], &argv)).expect(0).out(), "found");
        assert_ne!(finish(&mut place.run::<&str, _>(&[], &argv)).code(), 0);
    }
}

#[test]
fn a_program_of_any_name_is_run() {
    let place = Place::new();
    for name in ODD {
        let path = place.work.join(OsStr::from_bytes(name));
        std::os::unix::fs::symlink("/bin/echo", &path).unwrap();
        let mut program = OsString::from("./");
        program.push(OsStr::from_bytes(name));
        assert_eq!(
            finish(&mut place.run::<&str, _>(&[], &[program, "x".into()]))
                .expect(0)
                .out(),
            "x\n"
        );
    }
}

#[test]
fn a_long_argument_and_many_arguments_arrive() {
    let place = Place::new();
    let long = "x".repeat(130_000);
    let ended = finish(&mut place.run::<&str, _>(&[], &["printf", "%s", &long])).expect(0);
    assert_eq!(ended.out.len(), 130_000);
    let many: Vec<String> = ["sh", "-c", "echo $#"]
        .map(str::to_owned)
        .into_iter()
        .chain((0..5000).map(|number| number.to_string()))
        .collect();
    assert_eq!(finish(&mut place.run::<&str, _>(&[], &many)).expect(0).out(), "4999\n");
}

#[test]
fn a_command_that_is_too_long_for_the_kernel_is_told() {
    let place = Place::new();
    // One value of 200 KiB is more than the kernel takes for one string, and a profile may hold it.
    let profile = place.path().join("long.json");
    let value = "x".repeat(200 << 10);
    let text = serde_json::json!({"meta": {"name": "long"}, "extends": "default", "environment": {"set_vars": {"LONG": value}}});
    std::fs::write(&profile, text.to_string()).unwrap();
    let ended = finish(&mut place.run(&["--profile", profile.to_str().unwrap()], &["true"])).expect(126);
    assert!(
        ended
            .err()
            .contains("true cannot be run inside: Argument list too long"),
        "{}",
        ended.err()
    );
}

#[test]
fn a_large_environment_is_no_obstacle() {
    let place = Place::new();
    let mut command = place.run::<&str, _>(&[], &["sh", "-c", "echo ${#LC_A} ${#LC_B} ${#LC_C} ${#SECRET}"]);
    for name in ["LC_A", "LC_B", "LC_C", "SECRET"] {
        command.env(name, "v".repeat(100_000));
    }
    assert_eq!(finish(&mut command).expect(0).out(), "100000 100000 100000 0\n");
}

#[test]
fn a_thousand_grants_are_granted() {
    let place = Place::new();
    let mut options = Vec::new();
    for number in 0..1000 {
        let folder = place.secrets.join(format!("d{number}"));
        std::fs::create_dir(&folder).unwrap();
        options.extend(["--read".to_owned(), folder.to_str().unwrap().to_owned()]);
    }
    let script = format!("ls -d {}/d* | wc -l", place.secrets.display());
    let argv = ["sh".to_owned(), "-c".into(), script];
    assert_eq!(finish(&mut place.run(&options, &argv)).expect(0).out(), "1000\n");
}

#[test]
fn an_argument_vector_with_no_text_in_it_gets_an_answer() {
    let place = Place::new();
    let odd = OsString::from_vec(b"--profile=\xff".to_vec());
    let ended = finish(&mut place.run(&[odd], &["true"].map(OsStr::new))).expect(125);
    assert!(ended.err().contains("profile"), "{}", ended.err());
    let odd = OsString::from_vec(b"--allow-domain=\xff.org".to_vec());
    let ended = finish(&mut place.run(&[odd], &["true"].map(OsStr::new)));
    assert!(ended.code() == 2 || ended.code() == 125, "{}", ended.err());
}
