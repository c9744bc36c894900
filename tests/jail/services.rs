//! B31: services that would start something on the host are not there inside, and a command that needs one is told so.
//! The services are doubles: a socket that accepts, a program that leaves its job in a folder of the host.

use crate::harness::PYTHON;
use crate::place::{Place, finish};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

const CLIENT: &str = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])";

#[test]
fn sockets_of_services_are_not_there_and_a_failed_command_is_told_why() {
    let place = Place::new();
    for (path, name) in [
        ("run/docker.sock", "the container engine"),
        ("run/podman/podman.sock", "the container engine"),
        ("run/systemd/private", "the service manager"),
        ("gnupg/S.gpg-agent", "gpg's agent"),
    ] {
        let socket = place.secrets.join(path);
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let _service = UnixListener::bind(&socket).unwrap();
        let argv = ["-I", "-c", CLIENT, socket.to_str().unwrap()];
        finish(place.command(PYTHON).args(argv)).expect(0);
        let refused = finish(&mut place.run::<&str, _>(&[], &[&[PYTHON], &argv[..]].concat())).expect(1);
        assert!(refused.err().contains("FileNotFoundError"), "{}", refused.err());
        let told = format!(
            "the command needs {name}, which is not there inside at {}",
            socket.display()
        );
        assert!(refused.err().contains(&told), "{}", refused.err());
        // A command that managed without it is not told.
        let script = format!("{PYTHON} -I -c '{CLIENT}' {} 2>/dev/null || true", socket.display());
        assert_eq!(finish(&mut place.sh(&[], &script)).expect(0).err(), "");
    }
}

#[test]
fn programs_that_start_something_outside_fail_and_say_so() {
    let place = Place::new();
    let spool = place.secrets.join("spool");
    std::fs::create_dir(&spool).unwrap();
    for (program, name) in [
        ("at", "the machine's clock for jobs"),
        ("crontab", "the machine's clock for jobs"),
        ("systemctl", "the service manager"),
        ("podman", "the container engine"),
        ("docker", "the container engine"),
    ] {
        let path = place.work.join(program);
        let job = spool.join(program);
        std::fs::write(&path, format!("#!/bin/sh\necho job > {}\n", job.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let argv = [format!("./{program}")];
        finish(&mut place.command(&path)).expect(0);
        std::fs::remove_file(&job).expect("the double leaves its job");
        let refused = finish(&mut place.run::<&str, _>(&[], &argv));
        assert_ne!(refused.code(), 0, "{program}");
        assert!(!job.exists(), "{program} left a job on the host");
        let told = format!("the command needs {name}, which is not there inside: ");
        assert!(refused.err().contains(&told), "{}", refused.err());
    }
    let other = place.work.join("other");
    std::fs::copy(place.work.join("at"), other).unwrap();
    let quiet = finish(&mut place.run::<&str, _>(&[], &["./other"]));
    assert!(!quiet.err().contains("the command needs"), "{}", quiet.err());
}
