//! Checks of single processes: privileges, filters, descriptors, limits, Landlock, environment.

use super::*;

#[test]
fn finds_privileges() {
    spoiled("privileges", |f, _| tool(f).status.no_new_privs = 0);
    spoiled("privileges", |f, _| tool(f).status.uids[2] = 0);
    spoiled("privileges", |f, _| tool(f).status.gids[3] = 0);
    for set in 0..5 {
        spoiled("capabilities", |f, _| tool(f).status.capabilities[set] = 1 << 40);
    }
    for set in [0, 1, 2, 4] {
        spoiled("capabilities", |f, s| {
            s.walls = Walls::Descent { terminal: None };
            tool(f).status.capabilities[set] = 1;
        });
    }
}

#[test]
fn counts_filters() {
    spoiled("seccomp", |f, _| tool(f).status.seccomp_mode = 1);
    spoiled("seccomp", |f, _| tool(f).status.seccomp_filters = 1);
    spoiled("seccomp", |f, _| f.members[0].threads[0].status.seccomp_filters = 2);
    spoiled_at(Moment::Held, "seccomp", |f, _| {
        f.members[1].threads[0].status.seccomp_filters = 3
    });
}

#[test]
fn finds_descriptors_from_outside() {
    let has = |d: Descriptor| move |f: &mut Facts, _: &mut Subject| command_holds(f, d.clone());
    spoiled("descriptors", has(descriptor(9, Kind::File, 30, 8, 3)));
    spoiled("descriptors", has(descriptor(9, Kind::Device, 6, 8, 3)));
    spoiled("descriptors", has(descriptor(9, Kind::Socket, 8, FOREIGN, 0)));
    spoiled("descriptors", has(descriptor(9, Kind::Namespace(3), 4, 3, 0)));
    spoiled("descriptors", has(descriptor(9, Kind::Process(Some(1)), 14, 3, 0)));
    let mut terminal = descriptor(1, Kind::Device, PTS + 1, 3, 15);
    terminal.object.rdev = nix::sys::stat::makedev(136, 0);
    spoiled("descriptors", has(terminal));
    spoiled("descriptors", |f, _| tool(f).status.inner_session = 0);
}

#[test]
fn lets_descriptors_from_inside_be() {
    let mut own = descriptor(1, Kind::Device, PTS, 3, 15);
    own.object.rdev = nix::sys::stat::makedev(136, 0);
    let mut facts = facts();
    for descriptor in [
        own,
        descriptor(2, Kind::Pipe, 1, 50, 3),
        descriptor(6, Kind::File, 66, 9, 2),
        descriptor(7, Kind::Namespace(1003), 4, 3, 0),
        descriptor(8, Kind::Process(Some(subject().namespaces.pid)), 14, 3, 0),
        descriptor(9, Kind::Process(None), 14, 3, 0),
        // A shell's copy of its standard input.
        descriptor(10, Kind::File, 1, 50, 3),
    ] {
        command_holds(&mut facts, descriptor);
    }
    assert_eq!(run(&facts, &subject(), Moment::Running), []);
}

#[test]
fn finds_what_is_open_before_exec() {
    spoiled_at(Moment::Held, "descriptors", |f, _| {
        command_holds(f, descriptor(9, Kind::Anonymous, 14, 3, 0))
    });
    spoiled_at(Moment::Held, "descriptors", |f, _| {
        command_holds(f, descriptor(9, Kind::File, 30, 3, 12))
    });
}

#[test]
fn finds_loose_limits() {
    spoiled("limits", |f, _| f.command.as_mut().unwrap().limits = limits("513"));
    spoiled("limits", |f, _| {
        f.command.as_mut().unwrap().limits = limits("unlimited")
    });
    spoiled("limits", |_, s| s.limits.open_files = Some(1024));
}

#[test]
fn finds_landlock_evidence_that_proves_nothing() {
    for (control, errno) in [(0, 0), (0, 110), (0, 2), (13, 13)] {
        spoiled("landlock", |_, s| {
            s.landlock.push(Attempted {
                name: "x".into(),
                control,
                errno,
            })
        });
    }
    spoiled("landlock", |_, s| s.landlock.clear());
}

#[test]
fn finds_what_leaks_from_the_launcher_and_nothing_else() {
    let with = |bytes: &'static [u8]| {
        move |f: &mut Facts, _: &mut Subject| {
            f.command.as_mut().unwrap().environment.extend(bytes);
        }
    };
    spoiled("environment", with(b"TOKEN=secret\0"));
    spoiled("environment", with(b"OTHER=hunter2\0"));
    let mut facts = facts();
    facts.command.as_mut().unwrap().environment = b"\0\0=\0TOKEN=own\0\xff\xff".to_vec();
    assert_eq!(run(&facts, &subject(), Moment::Running), []);
}
