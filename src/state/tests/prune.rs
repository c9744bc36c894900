//! What is forgotten, and what never is.

use super::*;
use crate::state::prune::{LAST, Which, YOUNG};
use std::collections::BTreeSet;

/// A launch in a pane, ended some time ago.
fn ended(place: &Place, name: &str, ago: u64, change: impl FnOnce(&mut Record)) -> Record {
    let begun = place.store.begin(request(Some(name))).unwrap().record;
    let at = Timestamp::from_millis(Timestamp::now().millis() - i64::try_from(ago * 1000).unwrap());
    let pane = begun.pane_id;
    let update = place.store.update(&pane, |record| {
        record.lifecycle_state = Lifecycle::Exited;
        record.exited_at = at;
        change(record);
    });
    update.unwrap()
}

fn left(place: &Place) -> BTreeSet<String> {
    let records = place.store.list().unwrap().records;
    records
        .into_iter()
        .map(|record| record.pane_id.as_str().to_owned())
        .collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn forgets_what_has_ended_with_its_logs_and_nothing_that_may_live() {
    let place = Place::new();
    let done = ended(&place, "done", 1, |_| {});
    let log = place.store.logs().server(&done.session_name).unwrap();
    place.store.logs().append(&log).unwrap();
    place.store.begin(request(Some("waiting"))).unwrap();
    // Held by a bridge, whatever its record says.
    ended(&place, "held", 1, |_| {});
    let claim = place.store.claim(&pane("held")).unwrap();
    let pruned = place.store.prune(Which::All, None).unwrap();
    assert_eq!(left(&place), names(&["held", "waiting"]));
    assert_eq!(pruned.pruned.len(), 1);
    assert_eq!(pruned.kept[0].reason, "its agent still runs");
    assert!(!log.as_path().exists());
    drop(claim);
    place.store.prune(Which::All, None).unwrap();
    assert_eq!(left(&place), names(&["waiting"]));
}

#[test]
fn keeps_a_bad_end_until_somebody_has_seen_it() {
    let place = Place::new();
    ended(&place, "fine", 1, |_| {});
    let failed = ended(&place, "failed", 1, |record| record.lifecycle_state = Lifecycle::Failed);
    ended(&place, "changed", 1, |record| {
        record.changed = vec![AbsPath::new("/p/.envrc").unwrap()]
    });
    let pruned = place.store.prune(Which::Seen, None).unwrap();
    assert_eq!(left(&place), names(&["failed", "changed"]));
    assert_eq!((pruned.pruned.len(), pruned.kept.len()), (1, 2));
    place.store.mark_seen(&failed);
    place.store.prune(Which::Seen, None).unwrap();
    assert_eq!(left(&place), names(&["changed"]));
    place.store.prune(Which::All, None).unwrap();
    assert_eq!(left(&place), BTreeSet::new());
}

#[test]
fn forgets_one_by_name() {
    let place = Place::new();
    let one = ended(&place, "one", 1, |_| {});
    ended(&place, "two", 1, |_| {});
    place.store.prune(Which::Seen, Some(&one)).unwrap();
    assert_eq!(left(&place), names(&["two"]));
}

#[test]
fn by_itself_it_forgets_only_what_is_old_and_not_among_the_last() {
    let place = Place::new();
    let old = YOUNG.as_secs() + 60;
    for number in 0..LAST {
        ended(&place, &format!("last{number}"), old, |_| {});
    }
    let more = u64::try_from(LAST).unwrap();
    ended(&place, "older", old + more, |_| {});
    ended(&place, "older-and-unseen", old + more, |record| {
        record.lifecycle_state = Lifecycle::Failed
    });
    assert_eq!(left(&place).len(), LAST + 2);
    place.store.prune(Which::Old, None).unwrap();
    let left_now = left(&place);
    assert_eq!(left_now.len(), LAST + 1);
    assert!(left_now.contains("older-and-unseen") && !left_now.contains("older"));
    // Young ones stay, however many there are.
    for number in 0..5 {
        ended(&place, &format!("young{number}"), 60, |_| {});
    }
    place.store.prune(Which::Old, None).unwrap();
    assert_eq!(left(&place).iter().filter(|name| name.starts_with("young")).count(), 5);
}
