use super::*;
use crate::base::{AbsPath, Dirs, PaneId, Pid, ProcessRecord, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

mod damage;
mod owners;
mod prune;

pub(super) fn process(pid: i32) -> ProcessRecord {
    ProcessRecord {
        pid: Pid::new(pid).unwrap(),
        start_ticks: 1,
        boot_id: "another-boot".to_owned(),
    }
}

pub(super) fn pane(name: &str) -> PaneId {
    PaneId::new(name).unwrap()
}

fn request(name: Option<&str>) -> Request {
    let launch = LaunchId::fresh();
    Request {
        pane: name.map(pane),
        session_name: session_name("pinfold", "opencode", &launch),
        launch,
        host: "tmux".to_owned(),
        agent: "opencode".to_owned(),
        root: AbsPath::new(OsStr::from_bytes(b"/p\nq \xff\"x")).unwrap(),
        workdir: AbsPath::new("/w").unwrap(),
        profile: "opencode-server".to_owned(),
        client_profile: Some("opencode-client".to_owned()),
    }
}

pub(super) fn record(name: &str) -> Record {
    Record::new(request(Some(name)), Timestamp::now())
}

struct Place {
    folder: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let store = Place::open(folder.path());
        Place { folder, store }
    }
    fn open(path: &Path) -> Store {
        let at = |name: &str| AbsPath::new(path.join(name)).unwrap();
        Store::open(&Dirs {
            config: at("c"),
            state: at("s"),
            data: at("d"),
            runtime: at("r"),
        })
        .unwrap()
    }
    fn panes(&self) -> PathBuf {
        self.folder.path().join("s/panes")
    }
    fn file(&self, pane: &PaneId) -> PathBuf {
        self.panes().join(slot::file_name(pane))
    }
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.panes()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
    fn write(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let path = self.file(&pane(name));
        let mut value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        std::fs::write(path, serde_json::to_vec(&value).unwrap()).unwrap();
    }
}

#[test]
fn a_pane_has_a_readable_file_name_of_its_own() {
    assert_eq!(slot::file_name(&pane("pane-1")), "pane-1-370bd5d12a.json");
    let long = slot::file_name(&pane(&format!("tmux:1a2b:%3 🐑 ../\n{}", "x".repeat(300))));
    assert!(
        long.starts_with("tmux_1a2b__3____..__x") && long.len() == 64 + 1 + 10 + 5,
        "{long}"
    );
}

#[test]
fn a_session_name_can_stand_in_a_file_name() {
    let launch: LaunchId = "0123456789ab".parse().unwrap();
    assert_eq!(
        session_name("pinfold", "opencode", &launch),
        "pinfold-opencode-0123456789ab"
    );
    assert_eq!(session_name("../p", "a b\n", &launch), ".._p-a_b_-0123456789ab");
}

#[test]
fn a_record_is_saved_privately_with_the_documented_keys() {
    let place = Place::new();
    let begun = place.store.begin(request(Some("p"))).unwrap().record;
    let path = place.file(&pane("p"));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.panes().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text.starts_with("{\n  \"version\": 1,\n") && text.ends_with("}\n"),
        "{text}"
    );
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["paneId"], "p");
    assert_eq!(value["localPath"], json!({"bytes": "2f700a7120ff2278"}));
    assert_eq!(value["lifecycleState"], "provisional");
    assert_eq!(value["launchCount"], 1);
    assert_eq!(value["lastError"], Value::Null);
    assert_eq!(value["revision"].as_str().unwrap().len(), 12);
    assert_eq!(place.store.list().unwrap().records, [begun]);
}

#[test]
fn every_save_has_a_new_revision_and_keeps_the_pane() {
    let place = Place::new();
    let first = place.store.begin(request(Some("p"))).unwrap().record;
    let second = place
        .store
        .update(&pane("p"), |record| {
            record.lifecycle_state = Lifecycle::Running;
            record.pane_id = pane("elsewhere");
        })
        .unwrap();
    assert_ne!(first.revision, second.revision);
    assert_eq!(second.pane_id, pane("p"));
    assert_eq!(place.store.find("p").unwrap(), second);
}

#[test]
fn unknown_keys_and_their_order_survive_changes_and_later_launches() {
    let place = Place::new();
    place.store.begin(request(Some("p"))).unwrap();
    place.write("p", |value| {
        value["zeta"] = json!({"b": [1, null], "a": "x"});
        value["alpha"] = json!(18_446_744_073_709_551_615_u64);
        value["server"] = json!({"init": process(7), "cgroup": "/x"});
        value["lifecycleState"] = json!("exited");
    });
    let created = place.store.find("p").unwrap().created_at;
    place
        .store
        .update(&pane("p"), |record| record.last_exit_code = Some(3))
        .unwrap();
    assert_eq!(place.store.find("p").unwrap().server.unwrap().other["cgroup"], "/x");
    let again = place.store.begin(request(Some("p"))).unwrap().record;
    assert_eq!(
        (again.launch_count, again.created_at, again.last_exit_code),
        (2, created, None)
    );
    let text = std::fs::read_to_string(place.file(&pane("p"))).unwrap();
    let (zeta, alpha) = (
        text.find("\"zeta\"").unwrap(),
        text.find("\"alpha\": 18446744073709551615").unwrap(),
    );
    assert!(
        zeta < alpha && text.find("\"b\"").unwrap() < text.find("\"a\": \"x\"").unwrap(),
        "{text}"
    );
}

#[test]
fn finds_by_session_pane_or_the_beginning_of_either() {
    let place = Place::new();
    let names = ["tmux:1:%1", "tmux:1:%11", "tty:/dev/pts/3"];
    let records = names.map(|name| place.store.begin(request(Some(name))).unwrap().record);
    let found = |key: &str| place.store.find(key).map(|r| r.pane_id.as_str().to_owned());
    assert_eq!(
        found("tmux:1:%1").unwrap(),
        names[0],
        "exact wins over the beginning of another"
    );
    assert_eq!(found(&records[1].session_name).unwrap(), names[1]);
    assert_eq!(found("tty:").unwrap(), names[2]);
    assert!(matches!(found("tmux:"), Err(StateError::Ambiguous { names, .. }) if names.len() == 2));
    assert!(matches!(found("none"), Err(StateError::NotFound(_))));
    assert!(matches!(found(""), Err(StateError::NotFound(_))));
}

#[test]
fn removing_leaves_nothing_behind() {
    let place = Place::new();
    place.store.begin(request(Some("p"))).unwrap();
    assert_eq!(place.store.remove(&pane("p")).unwrap().unwrap().pane_id, pane("p"));
    assert_eq!(place.store.remove(&pane("p")).unwrap(), None);
    assert!(matches!(
        place.store.update(&pane("p"), |_| {}),
        Err(StateError::NotFound(_))
    ));
    assert_eq!(place.names(), [""; 0]);
}

/// JSON without fractions: `serde_json` reads those to the nearest double, which is not what this test is about.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..4).prop_map(|m| m.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn every_record_survives_its_file(
        name in "\\PC{1,20}",
        path in proptest::collection::vec(1u8.., 0..20),
        port in 1u16..,
        code: i32,
        millis in 0i64..4_000_000_000_000,
        weakened in proptest::collection::vec(any::<String>(), 0..3),
        other in proptest::collection::btree_map("x\\PC{0,8}", any_json(), 0..5),
    ) {
        let at = Timestamp::from_millis(millis).unwrap();
        let mut record = record(&name);
        let raw = [b"/", path.as_slice()].concat();
        if let Ok(path) = AbsPath::new(OsStr::from_bytes(&raw)) {
            record.changed = vec![path.clone()];
            record.local_path = path;
        }
        record.port = crate::base::Port::new(port);
        record.last_exit_code = Some(code);
        record.last_error = Some(LastError { kind: "startup".to_owned(), message: name, at });
        record.bridge = Some(process(1));
        record.server = Some(Side { init: process(2), pid_namespace: Some(u64::MAX), given: None, other: other.clone().into_iter().collect() });
        record.weakened = weakened;
        record.verification = other.values().next().cloned().filter(|v| !v.is_null());
        record.other = other.into_iter().collect();
        let parsed = record::parse(&record.write().unwrap());
        prop_assert_eq!(parsed, record::Parsed::Record(Box::new(record)));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
        prop_assert!(matches!(record::parse(&bytes), record::Parsed::Damaged(_)));
    }
}
