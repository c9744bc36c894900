//! Profiles that are missing, broken or misspelt: the file, the key and the nearest known one are named.

use crate::place::{Place, finish, program};

fn refused(text: &str, words: &[&str]) {
    let place = Place::new();
    let path = place.path().join("mine.json");
    std::fs::write(&path, text).unwrap();
    let ended = finish(&mut place.run(&["--profile", path.to_str().unwrap()], &["true"])).expect(125);
    for word in words {
        assert!(ended.err().contains(word), "{word:?} in {}", ended.err());
    }
}

#[test]
fn a_broken_profile_is_refused_with_the_place() {
    refused("", &["mine.json"]);
    refused("not JSON", &["mine.json"]);
    refused("[]", &["mine.json"]);
    refused(
        "{\"meta\": {\"name\": \"x\"}, \"filesystm\": {}}",
        &["filesystm", "filesystem"],
    );
    refused("{\"filesystem\": {\"alow\": []}}", &["alow", "allow"]);
    refused("{\"filesystem\": {\"allow\": \"no list\"}}", &["allow"]);
    refused("{\"network\": {\"allow_domain\": [\"bad name!\"]}}", &["bad name!"]);
    refused("{\"extends\": \"no-such-profile\"}", &["no-such-profile"]);
    refused("{\"filesystem\": {\"read\": [\"$NO_SUCH/x\"]}}", &["NO_SUCH"]);
    refused("{\"filesystem\": {\"read\": [\"/\"]}}", &["refusing"]);
    refused("{\"a\": 1, \"a\": 2}", &["mine.json"]);
    refused(&"[".repeat(100_000), &["mine.json"]);
}

#[test]
fn a_missing_profile_names_where_it_was_looked_for() {
    let place = Place::new();
    let ended = finish(&mut place.run(&["--profile", "nothere"], &["true"])).expect(125);
    assert!(
        ended.err().contains("nothere") && ended.err().contains("default"),
        "{}",
        ended.err()
    );
    let ended = finish(&mut place.run(&["--profile", "./nothere.json"], &["true"])).expect(125);
    assert!(ended.err().contains("nothere.json"), "{}", ended.err());
}

#[test]
fn profiles_that_extend_themselves_or_each_other_are_refused() {
    let place = Place::new();
    let folder = place.home.join(".config/pinfold/profiles");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("self.json"), "{\"extends\": \"self\"}").unwrap();
    std::fs::write(folder.join("a.json"), "{\"extends\": \"b\"}").unwrap();
    std::fs::write(folder.join("b.json"), "{\"extends\": \"a\"}").unwrap();
    for name in ["self", "a"] {
        let ended = finish(&mut place.run(&["--profile", name], &["true"])).expect(125);
        assert!(ended.err().contains("extends"), "{}", ended.err());
    }
}

#[test]
fn a_profile_that_is_no_plain_file_is_refused_at_once() {
    let place = Place::new();
    let fifo = place.path().join("fifo.json");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    for path in [fifo.to_str().unwrap(), "/dev/zero", place.work.to_str().unwrap()] {
        let mut command = place.command("timeout");
        command
            .args(["10"])
            .arg(program())
            .args(["run", "--profile", path, "--", "true"]);
        finish(&mut command).expect(125);
    }
}

#[test]
fn ones_own_profile_is_found_by_its_name() {
    let place = Place::new();
    let folder = place.home.join(".config/pinfold/profiles");
    std::fs::create_dir_all(&folder).unwrap();
    let text = serde_json::json!({"meta": {"name": "mine"}, "extends": "default", "filesystem": {"read": [place.secrets]}, "environment": {"set_vars": {"MINE": "yes"}}});
    std::fs::write(folder.join("mine.json"), text.to_string()).unwrap();
    let script = format!("echo $MINE; cat {}/key", place.secrets.display());
    let ended = finish(&mut place.run(&["--profile", "mine"], &["sh", "-c", &script])).expect(0);
    assert_eq!(ended.out(), "yes\nthe secret key\n");
}

#[test]
fn a_profile_in_the_workspace_is_not_used_by_itself() {
    let place = Place::new();
    for name in ["default.json", ".pinfold.json", "pinfold.json"] {
        std::fs::write(place.work.join(name), "{ broken").unwrap();
    }
    std::fs::create_dir_all(place.work.join(".pinfold/profiles")).unwrap();
    std::fs::write(place.work.join(".pinfold/profiles/default.json"), "{ broken").unwrap();
    finish(&mut place.run::<&str, _>(&[], &["true"])).expect(0);
}
