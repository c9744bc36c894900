//! Who owns a launch, and what happens when the owner dies.

use super::*;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

const FOLDER: &str = "PINFOLD_TEST_STORE";

/// Another process of this binary that takes a waiting launch (if it is given one), says so, and waits to be killed.
struct Bridge {
    child: Child,
    said: String,
}

impl Bridge {
    fn start(place: &Place, launch: Option<&LaunchId>) -> Bridge {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "state::tests::owners::be_a_bridge",
                "--ignored",
                "--nocapture",
            ])
            .env(FOLDER, place.folder.path())
            .env("PINFOLD_TEST_LAUNCH", launch.map_or("", LaunchId::as_str))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = lines
            .map(Result::unwrap)
            .filter_map(|l| l.split_once("bridge: ").map(|(_, said)| said.to_owned()));
        let said = said.next().unwrap();
        Bridge { child, said }
    }
    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "the other process of the tests beside it"]
fn be_a_bridge() {
    let store = Place::open(Path::new(&std::env::var_os(FOLDER).unwrap()));
    let claim = store.claim(&pane("p"));
    let said = match &claim {
        Err(error) => error.to_string(),
        Ok(claim) => match std::env::var("PINFOLD_TEST_LAUNCH").unwrap().parse() {
            Ok(launch) => match claim.take(&launch, ProcessRecord::current().unwrap()) {
                Ok(taken) => format!("took {}", taken.record.launch_id),
                Err(error) => error.to_string(),
            },
            Err(_) => "claimed".to_owned(),
        },
    };
    let mut out = std::io::stdout();
    writeln!(out, "\nbridge: {said}").unwrap();
    out.flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn one_of_two_processes_wins_and_the_other_names_it() {
    let place = Place::new();
    let mut first = Bridge::start(&place, None);
    assert_eq!(first.said, "claimed");
    let second = Bridge::start(&place, None);
    assert!(
        second
            .said
            .starts_with(&format!("pane p is in use by process {} since 2", first.pid())),
        "{}",
        second.said
    );
    assert!(matches!(
        place.store.begin(request(Some("p"))),
        Err(StateError::Claimed { .. })
    ));
    assert!(matches!(place.store.remove(&pane("p")), Ok(None)));
    first.kill();
    place.store.claim(&pane("p")).unwrap();
}

#[test]
fn of_many_claims_at_once_exactly_one_wins() {
    let place = Place::new();
    for _ in 0..20 {
        let start = std::sync::Barrier::new(4);
        let wins = std::thread::scope(|scope| {
            let attempt = || {
                start.wait();
                let claim = place.store.claim(&pane("p"));
                // Held until all have tried.
                start.wait();
                match claim {
                    Ok(_) => true,
                    Err(StateError::Claimed { holder: Some(_), .. }) => false,
                    Err(error) => panic!("{error}"),
                }
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(attempt)).collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap())
                .filter(|won| *won)
                .count()
        });
        assert_eq!(wins, 1);
    }
}

#[test]
fn a_launch_is_taken_once_and_moves_to_the_pane_that_was_opened() {
    let place = Place::new();
    place.store.begin(request(Some("p"))).unwrap();
    let earlier = place
        .store
        .update(&pane("p"), |r| r.lifecycle_state = Lifecycle::Exited)
        .unwrap();
    let launch = place.store.begin(request(None)).unwrap().record.launch_id;
    assert_eq!(place.store.list().unwrap().records.len(), 2);

    let claim = place.store.claim(&pane("p")).unwrap();
    let me = ProcessRecord::current().unwrap();
    let taken = claim.take(&launch, me.clone()).unwrap().record;
    assert_eq!(
        (taken.lifecycle_state, &taken.bridge),
        (Lifecycle::Starting, &Some(me.clone()))
    );
    assert_eq!((taken.launch_count, taken.created_at), (2, earlier.created_at));
    assert_eq!(place.store.list().unwrap().records, [taken]);
    assert!(matches!(
        claim.take(&launch, me.clone()),
        Err(StateError::NotWaiting(_))
    ));
    assert!(matches!(
        claim.take(&LaunchId::fresh(), me),
        Err(StateError::NotWaiting(_))
    ));
    assert_eq!(place.names().iter().filter(|n| n.starts_with("launch")).count(), 0);
}

#[test]
fn a_launch_asked_for_in_a_known_pane_is_taken_there() {
    let place = Place::new();
    let launch = place.store.begin(request(Some("p"))).unwrap().record.launch_id;
    assert!(
        matches!(place.store.begin(request(Some("p"))), Err(StateError::Busy { .. })),
        "it waits for its bridge"
    );
    let claim = place.store.claim(&pane("p")).unwrap();
    let taken = claim.take(&launch, ProcessRecord::current().unwrap()).unwrap().record;
    assert_eq!((taken.launch_count, taken.launch_id), (1, launch));
    assert!(
        claim
            .update(|r| r.lifecycle_state = Lifecycle::Running)
            .unwrap()
            .lifecycle_state
            .is_active()
    );
}

#[test]
fn a_killed_bridge_is_found_out_and_a_living_one_left_alone() {
    let place = Place::new();
    let launch = place.store.begin(request(Some("p"))).unwrap().record.launch_id;
    let mut bridge = Bridge::start(&place, Some(&launch));
    assert_eq!(bridge.said, format!("took {launch}"));
    let before = place.store.list().unwrap().records;
    assert_eq!(place.store.reconcile_all().unwrap().records, before);
    bridge.kill();
    let settled = place.store.reconcile_all().unwrap().records.remove(0);
    assert_eq!(settled.lifecycle_state, Lifecycle::Failed);
    assert_eq!(
        settled.last_error.unwrap().message,
        "the bridge ended without recording its exit"
    );
    place.store.begin(request(Some("p"))).unwrap();
}

#[test]
fn a_stranger_with_the_bridges_number_is_not_the_bridge() {
    let place = Place::new();
    place.store.begin(request(Some("p"))).unwrap();
    let me = ProcessRecord::current().unwrap();
    let reused = ProcessRecord {
        start_ticks: me.start_ticks - 1,
        ..me.clone()
    };
    for (bridge, state) in [(me, Lifecycle::Running), (reused, Lifecycle::Failed)] {
        place
            .store
            .update(&pane("p"), |r| {
                r.lifecycle_state = Lifecycle::Running;
                r.bridge = Some(bridge);
            })
            .unwrap();
        assert_eq!(place.store.reconcile_all().unwrap().records[0].lifecycle_state, state);
    }
}

#[test]
fn a_held_claim_is_believed_over_a_record_that_looks_dead() {
    let place = Place::new();
    place.store.begin(request(Some("p"))).unwrap();
    let claim = place.store.claim(&pane("p")).unwrap();
    let record = claim
        .update(|r| {
            r.lifecycle_state = Lifecycle::Running;
            r.bridge = Some(process(1));
        })
        .unwrap();
    assert_eq!(place.store.reconcile_all().unwrap().records, [record]);
    drop(claim);
    assert_eq!(
        place.store.reconcile_all().unwrap().records[0].lifecycle_state,
        Lifecycle::Failed
    );
}

#[test]
fn a_stand_in_left_by_a_kill_during_the_move_is_neither_listed_nor_kept() {
    let place = Place::new();
    let stand_in = place.store.begin(request(None)).unwrap().record;
    let copy = std::fs::read(place.file(&stand_in.pane_id)).unwrap();
    let claim = place.store.claim(&pane("p")).unwrap();
    claim
        .take(&stand_in.launch_id, ProcessRecord::current().unwrap())
        .unwrap();
    std::fs::write(place.file(&stand_in.pane_id), copy).unwrap();
    let listing = place.store.list().unwrap();
    assert_eq!(
        listing.records.iter().map(|r| r.pane_id.as_str()).collect::<Vec<_>>(),
        ["p"]
    );
    place.store.reconcile_all().unwrap();
    assert!(!place.file(&stand_in.pane_id).exists());
}

#[test]
fn changes_of_many_writers_are_all_kept() {
    let place = Place::new();
    place.store.begin(request(Some("p"))).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = place.store.clone();
            scope.spawn(move || {
                for n in 0..10 {
                    store
                        .update(&pane("p"), |r| r.weakened.push(format!("{writer}.{n}")))
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(place.store.find("p").unwrap().weakened.len(), 40);
}
