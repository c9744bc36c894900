//! The tester of the harness: planted failures must not pass for denials.

use crate::harness::{Attempt, Verdict};
use crate::mode::by_mode;
use crate::place::Place;

fn read_key(place: &Place) -> Attempt {
    Attempt::python("open(argv[1]).read()").with(place.secrets.join("key"))
}

#[test]
fn a_grant_too_many_is_reported_as_an_escape() {
    let place = Place::new();
    let attempt = read_key(&place);
    let secrets = place.secrets.to_str().unwrap();
    let gone = by_mode(&["ENOENT"], &["EACCES"]);
    assert_eq!(place.compare(&attempt, &[], &attempt, gone), Verdict::Held);
    assert_eq!(
        place.compare(&attempt, &["--read", secrets], &attempt, gone),
        Verdict::Escape
    );
}

#[test]
fn a_denial_without_its_control_does_not_count() {
    let place = Place::new();
    let attempt = Attempt::python("open('/nothing/is/here')");
    assert_eq!(
        place.compare(&attempt, &[], &attempt, &["ENOENT"]),
        Verdict::NoControl("ENOENT".into())
    );
}

#[test]
fn another_error_than_the_layers_is_no_denial() {
    let place = Place::new();
    let attempt = read_key(&place);
    assert!(matches!(
        place.compare(&attempt, &[], &attempt, &["EPERM"]),
        Verdict::Broken(_)
    ));
}

#[test]
fn a_defect_in_the_attempt_is_no_denial() {
    let place = Place::new();
    let control = Attempt::python("pass");
    for body in [
        "nonsense(",
        "raise ValueError()",
        "raise TimeoutError()",
        "os._exit(77)",
        "os.kill(os.getpid(), 9)",
    ] {
        let attempt = Attempt::python(body);
        let verdict = place.compare(&control, &[], &attempt, &["ENOENT"]);
        assert!(matches!(verdict, Verdict::Broken(_)), "{body}: {verdict:?}");
    }
}
