use super::*;

const LAYER: &str =
    "21 10 0:40 / /srv/cache rw,nosuid,nodev - overlay none rw,lowerdir=9,upperdir=11/u,workdir=11/w,userxattr\n";
const EMPTY: &str = "21 10 0:40 /u /srv/cache rw,nosuid,nodev - tmpfs none rw\n";
const BIND: &str = "21 10 8:1 /c /srv/cache rw,nosuid,nodev - ext4 /dev/sda1 rw\n";
const PRIVILEGED: &str =
    "21 10 0:40 / /srv/cache rw,nosuid,nodev - overlay none rw,lowerdir=9,upperdir=11/u,workdir=11/w\n";

fn layered(line: &str) -> Vec<Finding> {
    let (mut facts, mut subject) = (facts(), subject());
    shared(&mut facts)
        .mounts
        .extend(mountinfo::parse(line.as_bytes()).unwrap());
    let rule = rule("/srv/cache", MountKind::Layer, Writing::Allowed);
    subject.mounts.push(rule);
    run(&facts, &subject, Moment::Running)
}

fn unlayered(line: &str) -> Vec<AbsPath> {
    let (mut facts, mut subject) = (facts(), subject());
    shared(&mut facts)
        .mounts
        .extend(mountinfo::parse(line.as_bytes()).unwrap());
    subject
        .mounts
        .push(rule("/srv/cache", MountKind::Layer, Writing::Allowed));
    crate::verify::checks::unlayered(&facts, &subject)
}

#[test]
fn an_empty_folder_in_place_of_a_layer_is_told() {
    assert_eq!(unlayered(LAYER), []);
    assert_eq!(unlayered(EMPTY), [AbsPath::new("/srv/cache").unwrap()]);
}

#[test]
fn a_layer_is_private_or_it_is_found() {
    assert_eq!(layered(LAYER), []);
    assert_eq!(layered(EMPTY), []);
    for line in [BIND, PRIVILEGED, "", &LAYER.replace("nosuid,", "")] {
        let found = layered(line);
        assert!(found.iter().any(|finding| finding.check == "mounts"), "{line}");
    }
}
