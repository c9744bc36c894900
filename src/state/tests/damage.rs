//! Files that are no records, and disks that are full.

use super::*;

fn listed(place: &Place) -> (Vec<String>, Vec<Problem>) {
    let listing = place.store.list().unwrap();
    (
        listing.records.iter().map(|r| r.pane_id.as_str().to_owned()).collect(),
        listing.problems,
    )
}

#[test]
fn a_damaged_file_is_set_aside_and_stops_no_other() {
    for bytes in [
        &b""[..],
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{\"version\": 1}",
        b"{\"version\": \"1\"}",
        b"\0\0\0\0",
    ] {
        let place = Place::new();
        place.store.begin(request(Some("good"))).unwrap();
        place.store.begin(request(Some("bad"))).unwrap();
        std::fs::write(place.file(&pane("bad")), bytes).unwrap();
        let (records, problems) = listed(&place);
        assert_eq!(records, ["good"]);
        assert_eq!(problems.len(), 1, "{bytes:?}");
        assert!(matches!(problems[0].reason, Reason::Damaged(_)));
        let aside = problems[0].aside.clone().unwrap();
        assert!(aside.to_string().contains(".json.damaged-2"), "{aside}");
        assert_eq!(std::fs::read(&aside).unwrap(), bytes, "nothing of it is lost");
        assert!(
            problems[0].to_string().contains("it was set aside as"),
            "{}",
            problems[0]
        );
        assert_eq!(listed(&place), (vec!["good".to_owned()], vec![]));
    }
}

#[test]
fn a_file_cut_short_at_any_length_is_never_a_record() {
    let mut record = record("p");
    record.lifecycle_state = Lifecycle::Running;
    let bytes = record.write().unwrap();
    let whole = bytes.len() - 1;
    for length in 0..whole {
        assert!(
            matches!(record::parse(&bytes[..length]), record::Parsed::Damaged(_)),
            "{length}"
        );
    }
    assert!(
        matches!(record::parse(&bytes[..whole]), record::Parsed::Record(_)),
        "control: without the newline it is whole"
    );
}

#[test]
fn an_unknown_state_or_a_doubled_key_is_damage() {
    let text = String::from_utf8(record("p").write().unwrap()).unwrap();
    for (from, to) in [
        ("\"provisional\"", "\"approved\""),
        ("\"launchCount\": 1", "\"launchCount\": 1,\n\"launchCount\": 2"),
    ] {
        assert!(text.contains(from));
        assert!(
            matches!(
                record::parse(text.replace(from, to).as_bytes()),
                record::Parsed::Damaged(_)
            ),
            "{to}"
        );
    }
}

#[test]
fn a_newer_builds_file_is_told_and_left_alone() {
    let place = Place::new();
    place.store.begin(request(Some("good"))).unwrap();
    place.store.begin(request(Some("new"))).unwrap();
    place.write("new", |value| value["version"] = json!(2));
    let before = std::fs::read(place.file(&pane("new"))).unwrap();
    let (records, problems) = listed(&place);
    assert_eq!(records, ["good"]);
    assert_eq!((&problems[0].reason, &problems[0].aside), (&Reason::Newer(2), &None));
    let attempts = [
        place.store.begin(request(Some("new"))).map(drop),
        place.store.update(&pane("new"), |_| {}).map(drop),
        place.store.remove(&pane("new")).map(drop),
    ];
    for attempt in attempts {
        assert!(matches!(
            attempt,
            Err(StateError::Unusable(Problem {
                reason: Reason::Newer(2),
                ..
            }))
        ));
    }
    assert_eq!(place.store.reconcile_all().unwrap().problems.len(), 1);
    assert_eq!(std::fs::read(place.file(&pane("new"))).unwrap(), before);
}

#[test]
fn a_pipe_a_link_or_a_folder_in_place_of_a_record_is_set_aside() {
    let place = Place::new();
    place.store.begin(request(Some("good"))).unwrap();
    nix::unistd::mkfifo(&place.panes().join("pipe.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", place.panes().join("link.json")).unwrap();
    std::fs::create_dir(place.panes().join("folder.json")).unwrap();
    std::fs::copy(place.file(&pane("good")), place.panes().join("copy.json")).unwrap();
    let (records, problems) = listed(&place);
    assert_eq!(records, ["good"]);
    assert_eq!(problems.iter().filter(|p| p.aside.is_some()).count(), 4, "{problems:?}");
}

#[test]
fn a_launch_begins_over_a_damaged_record_and_says_so() {
    let place = Place::new();
    std::fs::write(place.file(&pane("p")), "garbage").unwrap();
    let begun = place.store.begin(request(Some("p"))).unwrap();
    assert!(begun.problem.unwrap().aside.is_some());
    assert_eq!(begun.record.launch_count, 1);
    std::fs::write(place.file(&pane("p")), "garbage").unwrap();
    let error = place.store.update(&pane("p"), |_| {}).unwrap_err();
    assert!(
        matches!(error, StateError::Unusable(Problem { aside: Some(_), .. })),
        "{error}"
    );
    assert_eq!(place.names().iter().filter(|n| n.contains("damaged")).count(), 2);
}

#[test]
fn a_pipe_as_lock_file_is_refused_at_once() {
    let place = Place::new();
    let mut lock = place.file(&pane("p")).into_os_string();
    lock.push(".lock");
    nix::unistd::mkfifo(Path::new(&lock), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let started = std::time::Instant::now();
    let error = place.store.begin(request(Some("p"))).unwrap_err();
    assert!(error.to_string().ends_with("is not a regular file"), "{error}");
    assert!(started.elapsed() < std::time::Duration::from_secs(2));
}

#[test]
fn what_killed_writers_left_is_swept_and_what_is_being_written_is_not() {
    let place = Place::new();
    let (old, new) = (
        place.panes().join(".pinfold-00.tmp"),
        place.panes().join(".pinfold-01.tmp"),
    );
    std::fs::write(&new, "").unwrap();
    std::fs::File::create(&old)
        .unwrap()
        .set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(7200))
        .unwrap();
    place.store.reconcile_all().unwrap();
    assert!(!old.exists() && new.exists());
}

#[test]
fn a_full_disk_keeps_the_old_record() {
    crate::base::small_disk::run("state::tests::damage::on_a_small_disk", 256 * 1024);
}

/// Runs in a mount namespace of its own, where `PINFOLD_SMALL_DISK` names a tiny tmpfs.
#[test]
#[ignore = "run by a_full_disk_keeps_the_old_record on a tiny tmpfs"]
fn on_a_small_disk() {
    let disk = PathBuf::from(std::env::var_os("PINFOLD_SMALL_DISK").unwrap());
    let store = Place::open(&disk);
    store.begin(request(Some("p"))).unwrap();
    let saved = store
        .update(&pane("p"), |r| r.lifecycle_state = Lifecycle::Running)
        .unwrap();
    // Every last block.
    let fill = std::fs::write(disk.join("fill"), vec![0; 1024 * 1024]);
    assert_eq!(fill.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    let error = store
        .update(&pane("p"), |r| r.lifecycle_state = Lifecycle::Exited)
        .unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    let listing = store.list().unwrap();
    assert_eq!((listing.records, listing.problems), (vec![saved], vec![]));
}
