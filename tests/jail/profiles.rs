//! What a profile may say of files, in force: patterns, denies under grants, chains of links; and what was refused, told.

use crate::mode::by_mode;
use crate::place::{Ended, Place, finish, program};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

fn with_profile(place: &Place, profile: &serde_json::Value, script: &str) -> Ended {
    let file = place.path().join("mine.json");
    std::fs::write(&file, profile.to_string()).unwrap();
    finish(&mut place.run(&["--profile", file.to_str().unwrap()], &["sh", "-c", script]))
}

#[test]
fn a_deny_holds_under_a_writable_and_a_read_only_grant() {
    let place = Place::new();
    let data = place.path().join("data");
    for folder in [&place.work, &data] {
        std::fs::create_dir_all(folder.join("keys")).unwrap();
        for file in ["secret", "keys/k", "open"] {
            std::fs::write(folder.join(file), format!("{file} is read\n")).unwrap();
        }
    }
    let read = "for f in secret keys/k open; do cat $f; done 2>/dev/null; cd \"$DATA\"; for f in secret keys/k open; do cat $f; done 2>/dev/null; true";
    let grants = |deny: serde_json::Value| {
        serde_json::json!({"extends": "default", "filesystem": {"read": [data], "deny": deny},
            "environment": {"set_vars": {"DATA": data}}})
    };
    let all = with_profile(&place, &grants(serde_json::json!([])), read).expect(0);
    assert_eq!(all.out().matches("is read").count(), 6, "control: {}", all.out());
    let deny = serde_json::json!(["$WORKDIR/secret", "$WORKDIR/k*", data.join("secret"), data.join("keys")]);
    let held = with_profile(&place, &grants(deny.clone()), read).expect(0);
    assert_eq!(held.out(), "open is read\nopen is read\n");
    let change = "rm -rf secret keys; echo x > secret; mv keys other; cat other/k secret 2>/dev/null; true";
    let changed = with_profile(&place, &grants(deny), change).expect(0);
    assert!(!changed.out().contains("is read"), "{}", changed.out());
    let kept = std::fs::read_to_string(place.work.join("secret")).unwrap();
    assert_eq!(kept, "secret is read\n", "what is denied cannot be changed either");
}

#[test]
fn a_denied_file_with_a_second_name_is_warned_of_before_the_command_runs() {
    let place = Place::new();
    std::fs::write(place.work.join("secret"), "x\n").unwrap();
    let profile = serde_json::json!({"extends": "default", "filesystem": {"deny": ["$WORKDIR/secret"]}});
    let one = with_profile(&place, &profile, "true").expect(0);
    assert!(!one.err().contains("hard links"), "control: {}", one.err());
    std::fs::hard_link(place.work.join("secret"), place.work.join("alias")).unwrap();
    let two = with_profile(&place, &profile, "cat secret 2>/dev/null; cat alias").expect(0);
    assert!(
        two.err().contains("secret") && two.err().contains("hard links"),
        "{}",
        two.err()
    );
    assert_eq!(
        two.out(),
        // A rule of Landlock is one of the file: granted by one name it is open by all.
        by_mode("x\n", "x\nx\n"),
        "and that is so: only the name that was denied is covered"
    );
}

#[test]
fn thousands_of_denied_files_start_or_are_refused_clearly() {
    let place = Place::new();
    for number in 0..1100 {
        std::fs::write(place.work.join(format!("d{number}")), "read\n").unwrap();
    }
    let deny = |pattern: &str| serde_json::json!({"extends": "default", "filesystem": {"deny": [pattern]}});
    let many = with_profile(&place, &deny("$WORKDIR/d*"), "true").expect(125);
    assert!(many.err().contains("more than 1024 paths"), "{}", many.err());
    let some = with_profile(&place, &deny("$WORKDIR/d??"), "cat d* 2>/dev/null | wc -l").expect(0);
    assert_eq!(some.out().trim(), "1010");
    let deep = with_profile(&place, &deny("$WORKDIR/**/d1"), "true").expect(125);
    assert!(deep.err().contains("whole tree"), "{}", deep.err());
}

#[test]
fn a_chain_of_links_reads_inside_as_it_does_outside_and_shows_nothing_more() {
    let place = Place::new();
    let [front, back] = ["front", "back"].map(|name| place.path().join(name));
    std::fs::create_dir(&front).unwrap();
    std::fs::create_dir(&back).unwrap();
    std::fs::write(back.join("ca.crt"), "certificates\n").unwrap();
    std::fs::write(back.join("private"), "key\n").unwrap();
    symlink("second", front.join("first")).unwrap();
    symlink(back.join("ca.crt"), front.join("second")).unwrap();
    symlink("/nowhere/at/all", front.join("dangling")).unwrap();
    let profile = serde_json::json!({"extends": "default", "filesystem": {"read": [front.join("first"), front.join("dangling")]}});
    let script = format!(
        "cat {0}/first; readlink {0}/first; readlink {0}/second; {2} {1}",
        front.display(),
        back.display(),
        // A folder with one granted file in it cannot be listed where it is the machine's own.
        by_mode("ls", "ls -d")
    );
    let ended = with_profile(&place, &profile, &script).expect(0);
    let listed = by_mode("ca.crt", back.to_str().unwrap());
    let expected = format!("certificates\nsecond\n{0}/ca.crt\n{listed}\n", back.display());
    assert_eq!(ended.out(), expected);
}

#[test]
fn a_pattern_shows_what_fits_it_and_nothing_that_a_link_leads_to() {
    let place = Place::new();
    let cache = place.path().join("cache");
    for name in ["foo-1", "foo-2", "bar"] {
        std::fs::create_dir_all(cache.join(name)).unwrap();
    }
    symlink(&place.secrets, cache.join("foo-3")).unwrap();
    let profile = serde_json::json!({"extends": "default", "filesystem": {"read": [cache.join("foo-*")]}});
    let list = by_mode(
        "ls",
        "for name in foo-1 foo-2 foo-3 bar; do ls $0/$name >/dev/null 2>&1 && echo $name; done; true",
    )
    .replace("$0", cache.to_str().unwrap());
    let script = format!("{list} {}; cat {}/key", cache.display(), place.secrets.display());
    let ended = with_profile(&place, &profile, &script).expect(1);
    assert_eq!(ended.out(), "foo-1\nfoo-2\n");
}

#[test]
fn what_was_refused_is_told_with_the_smallest_grant() {
    let place = Place::new();
    let socket = place.work.join("host.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let body = format!(
        "import socket, urllib.request\ntry: socket.socket(socket.AF_UNIX).connect('{0}')\nexcept OSError as e: print(e.errno)\n\
         s = socket.create_connection(('127.0.0.1', 3129))\ns.sendall(b'CONNECT api.example.com:443 HTTP/1.1\\r\\n\\r\\n')\nprint(s.recv(99)[:12])\nraise SystemExit(3)",
        socket.display()
    );
    let ended = finish(&mut place.run::<&str, _>(&[], &["/usr/bin/python3", "-I", "-c", &body])).expect(3);
    assert!(ended.out().starts_with("13\n"), "{}", ended.out());
    assert!(
        ended.err().contains("2 things were refused: `pinfold why --last`"),
        "{}",
        ended.err()
    );
    let told = finish(place.command(program()).args(["why", "--last", "--json"])).expect(0);
    let told: serde_json::Value = serde_json::from_str(&told.out()).unwrap();
    let text = told.to_string();
    assert!(text.contains("--allow-domain api.example.com"), "{text}");
    assert!(text.contains("unix_socket") && text.contains("host.sock"), "{text}");
    assert!(!text.contains("\"*\"") && !text.contains("--allow /"), "{text}");
    let launch = told["launch"].as_str().unwrap();
    let words = finish(place.command(program()).args(["why", "--last", launch])).expect(0);
    assert!(
        words.out().contains("to allow it once") && words.out().contains("pinfold why PATH"),
        "{}",
        words.out()
    );
    finish(place.command(program()).args(["why", "--last", "nothing-like-it"])).expect(1);
    let profile = serde_json::json!({"extends": "default", "filesystem": {"unix_socket": [socket]}});
    let script = format!(
        "/usr/bin/python3 -I -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}')\"",
        socket.display()
    );
    with_profile(&place, &profile, &script).expect(0);
    let good = finish(&mut place.run::<&str, _>(&[], &["false"])).expect(1);
    assert!(!good.err().contains("refused"), "control: {}", good.err());
}

#[test]
fn a_promise_that_may_be_missing_and_is_not_is_said() {
    let place = Place::new();
    let ended = finish(&mut place.run(&["--allow-missing", "P5"], &["true"])).expect(0);
    assert!(
        ended.err().contains("P5 processes may be missing, and is not"),
        "{}",
        ended.err()
    );
    for text in ["P8", "P9", "honest", "P55"] {
        let refused = finish(&mut place.run(&["--allow-missing", text], &["true"])).expect(2);
        assert!(
            refused.err().contains("never given up") || refused.err().contains("P7 environment"),
            "{}",
            refused.err()
        );
    }
    let profile = serde_json::json!({"extends": "default", "pinfold": {"allow_missing": ["network"]}});
    let ended = with_profile(&place, &profile, "true").expect(0);
    assert!(ended.err().contains("P3 network may be missing"), "{}", ended.err());
}
