//! Raced decisions: an address that changes while it is looked at, and a link that changes while it is followed. Each
//! race has its control: a supervisor that answers "continue" loses it.

use crate::harness::PYTHON;
use crate::place::{Place, finish};
use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often an address is tried in one launch, and in how many launches for each way to change it: 100,000 in all.
const TRIES: u32 = 10_000;
const LAUNCHES: u32 = 5;

/// Connects again and again while another changes where the address leads, by two threads of C: an interpreter's take turns.
const RACER: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
static union { struct sockaddr_un un; struct sockaddr_in in; } *shared, good, bad;
static volatile int *over, *begun;
static socklen_t length;
static const char *how, *link_path, *ok, *no;
static void *flip(void *none) {
    char fresh[256];
    snprintf(fresh, sizeof fresh, "%s.new", link_path ? link_path : "");
    for (int i = 0; !*over; i++) {
        if (!strcmp(how, "link")) {
            unlink(fresh);
            if (symlink(i & 1 ? no : ok, fresh) || rename(fresh, link_path)) perror("link");
        } else memcpy(shared, i & 1 ? &bad : &good, length);
        *begun = i;
    }
    return none;
}
int main(int count, char **words) {
    how = words[1]; ok = words[2]; no = words[3]; int tries = atoi(words[4]), made = 0;
    if (count > 5) link_path = words[5];
    shared = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    over = (volatile int *) ((char *) shared + 4096); begun = over + 1;
    int inet = ok[0] != '/';
    length = inet ? sizeof good.in : sizeof good.un;
    if (inet) {
        good.in.sin_family = bad.in.sin_family = AF_INET;
        good.in.sin_addr.s_addr = bad.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        good.in.sin_port = htons(atoi(ok)); bad.in.sin_port = htons(atoi(no));
    } else {
        good.un.sun_family = bad.un.sun_family = AF_UNIX;
        strcpy(good.un.sun_path, ok); strcpy(bad.un.sun_path, no);
    }
    *shared = good;
    if (link_path) strcpy(shared->un.sun_path, link_path);
    /* Where nobody else listens, the one that is allowed is made here. */
    int own = -1;
    if (!inet && access(ok, F_OK)) { own = socket(AF_UNIX, SOCK_STREAM, 0); if (bind(own, (void *) &good, sizeof good.un) || listen(own, 4096)) { perror("own"); return 3; } }
    if (inet) { own = socket(AF_INET, SOCK_STREAM, 0); int one = 1; setsockopt(own, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one); if (bind(own, (void *) &good, length) || listen(own, 4096)) { perror("own"); return 3; } }
    if (own >= 0) fcntl(own, F_SETFL, O_NONBLOCK);
    pthread_t thread; pid_t child = 0;
    if (!strcmp(how, "process")) { child = fork(); if (!child) { flip(0); _exit(0); } }
    else pthread_create(&thread, 0, flip, 0);
    while (*begun < 4) usleep(100);
    struct linger off = {1, 0};
    for (int i = 0; i < tries; i++) {
        int s = socket(inet ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
        if (inet) setsockopt(s, SOL_SOCKET, SO_LINGER, &off, sizeof off);
        made += !connect(s, (void *) shared, length);
        close(s);
        if (own >= 0) { int a = accept(own, 0, 0); if (a >= 0) close(a); }
    }
    *over = 1;
    if (child) waitpid(child, 0, 0); else pthread_join(thread, 0);
    printf("%d of %d\n", made, tries);
    return 0;
}
"#;

/// Answers "continue" to every trapped connect to what it looked at and found good: what must not be done.
const NAIVE: &str = include_str!("naive.py");

fn racer(place: &Place) -> String {
    let source = place.home.join("racer.c");
    std::fs::File::create(&source)
        .unwrap()
        .write_all(RACER.as_bytes())
        .unwrap();
    let built = place.work.join("racer");
    finish(
        place
            .command("cc")
            .args(["-O1", "-pthread", "-o"])
            .arg(&built)
            .arg(&source),
    )
    .expect(0);
    built.to_str().unwrap().to_owned()
}

/// A listener of the host that counts who reaches it.
fn counted(path: &Path) -> Arc<AtomicUsize> {
    let (listener, count) = (UnixListener::bind(path).unwrap(), Arc::new(AtomicUsize::new(0)));
    let counting = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            if stream.is_ok() {
                counting.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    count
}

/// What came of one race: how many connects were made, and how many reached what is refused.
fn raced(command: &mut std::process::Command, count: &AtomicUsize) -> (u32, usize) {
    let before = count.load(Ordering::SeqCst);
    let out = finish(command).expect(0).out();
    let made = out.split(' ').next().and_then(|made| made.trim().parse().ok());
    std::thread::sleep(std::time::Duration::from_millis(50));
    (
        made.unwrap_or_else(|| panic!("{out}")),
        count.load(Ordering::SeqCst) - before,
    )
}

#[test]
fn an_address_that_another_thread_or_process_changes_reaches_nothing_refused() {
    let place = Place::new();
    let (racer, bad) = (racer(&place), place.work.join("bad"));
    let (good, naive) = (place.work.join("good"), place.home.join("naive.py"));
    let count = counted(&bad);
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    std::fs::write(&naive, NAIVE).unwrap();
    for how in ["thread", "process"] {
        let argv = |tries: u32| [racer.clone(), how.into(), good.into(), bad.into(), tries.to_string()];
        loses(|| {
            let _ = std::fs::remove_file(good);
            let mut control = place.command(PYTHON);
            control.arg("-I").arg(&naive).arg(good).args(argv(TRIES));
            raced(&mut control, &count)
        });
        let mut made_in_all = 0;
        for _ in 0..LAUNCHES {
            std::fs::remove_file(good).unwrap();
            let (made, hits) = raced(&mut place.run(&[] as &[&str], &argv(TRIES)), &count);
            assert_eq!(hits, 0, "{how}: of {made}");
            made_in_all += made;
        }
        assert!(made_in_all > 100, "{how}: only {made_in_all} were made");
        std::fs::remove_file(good).unwrap();
    }
}

/// The control: within a few runs it reaches what is refused, and the good one too. On a busy machine one run may not.
#[track_caller]
fn loses(mut race: impl FnMut() -> (u32, usize)) {
    let mut seen = Vec::new();
    let lost = (0..20).any(|_| {
        let (made, hits) = race();
        seen.push((made, hits));
        hits > 0 && made as usize > hits
    });
    assert!(lost, "the control lost no race: {seen:?}");
}

#[test]
fn a_link_that_changes_while_it_is_followed_leads_to_nothing_refused() {
    let place = Place::new();
    let (racer, bad) = (racer(&place), place.work.join("bad"));
    let good = place.work.join("good");
    let count = counted(&bad);
    let argv = |tries: u32| {
        let path = |name: &str| place.work.join(name).to_str().unwrap().to_owned();
        [
            racer.clone(),
            "link".into(),
            path("good"),
            path("bad"),
            tries.to_string(),
            path("link"),
        ]
    };
    loses(|| {
        let _ = std::fs::remove_file(&good);
        raced(place.command(&racer).args(&argv(2_000)[1..]), &count)
    });
    let mut made_in_all = 0;
    for _ in 0..LAUNCHES {
        std::fs::remove_file(&good).unwrap();
        let (made, hits) = raced(&mut place.run(&[] as &[&str], &argv(TRIES / 2)), &count);
        assert_eq!(hits, 0, "of {made}");
        made_in_all += made;
    }
    assert!(made_in_all > 100, "only {made_in_all} were made");
}
