//! Many connects at once: none is refused for there being others, and none waits for another's.

use crate::harness::{Attempt, Verdict};
use crate::mode::by_mode;
use crate::place::{Place, Started, eventually, finish, program};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// Connects `argv[2]` times to a listener of its own; it accepts as it goes.
const LOOP: &str = "
l = socket.socket(socket.AF_UNIX); l.bind(argv[1]); l.listen(64)
for i in range(int(argv[2])):
    s = socket.socket(socket.AF_UNIX); s.connect(argv[1]); s.close(); l.accept()[0].close()
os.unlink(argv[1])";

#[test]
fn ten_thousand_connects_in_a_loop_all_succeed() {
    let place = Place::new();
    place.allows(&[], &Attempt::python(LOOP).with(place.work.join("own")).with("10000"));
}

/// Descriptors that a process has open.
fn open_files(pid: nix::unistd::Pid) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

#[test]
fn a_supervisor_with_few_descriptors_serves_sixty_four_loops_and_keeps_none() {
    let place = Place::new();
    let one = format!(
        "import socket, os, sys\nargv = sys.argv\nopen(argv[1] + '.up', 'w')\n{LOOP}\nopen(argv[1] + '.done', 'w')"
    );
    std::fs::write(place.work.join("loop.py"), one).unwrap();
    let loops = "i=0; while [ $i -lt 64 ]; do python3 -I -S loop.py $PWD/own$i 300 & i=$((i+1)); done; wait; while [ ! -e over ]; do sleep 0.05; done; ls | grep -c done";
    let script = format!("ulimit -n 256; exec {} run -- sh -c '{loops}'", program().display());
    let run = Started::new(place.command("sh").args(["-c", &script]));
    let ready = |end: &str| {
        let names = std::fs::read_dir(&place.work).unwrap().flatten();
        names
            .filter(|name| name.file_name().to_string_lossy().ends_with(end))
            .count()
    };
    eventually("the first loops are up", || ready(".up") > 0);
    let most = {
        let mut most = 0;
        let end = Instant::now() + crate::place::LIMIT;
        while ready(".done") < 64 && Instant::now() < end {
            most = most.max(open_files(run.pid()));
            std::thread::sleep(Duration::from_millis(20));
        }
        most
    };
    let after = open_files(run.pid());
    std::fs::write(place.work.join("over"), "").unwrap();
    assert_eq!(run.finish().expect(0).out(), "64\n");
    assert!(
        most < 64 && after <= most,
        "{most} descriptors at most, {after} afterwards"
    );
}

/// A listener that accepts nothing until it is told, with a backlog that is soon full.
fn closed_up(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    // listen again: the smallest backlog that there is.
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    listener
}

/// Starts `argv[2]` threads that each connect to `argv[1]` and wait for it; tells how many have got through in a file.
const BLOCKED: &str = "
import threading
done, refused = [], []
def one():
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(argv[1]); done.append(s)
    except BlockingIOError: refused.append(s)
threads = [threading.Thread(target=one) for _ in range(int(argv[2]))]
for t in threads: t.start()
open('waiting', 'w').close()
for t in threads: t.join()
open('result', 'w').write(f'{len(done)} {len(refused)}')";

#[test]
fn connects_that_wait_for_a_full_backlog_hold_up_nobody_and_get_through_when_it_drains() {
    let place = Place::new();
    let path = place.work.join("slow");
    let profile = place.home.join("slow.json");
    let listener = closed_up(&path);
    let grant = serde_json::json!({"extends": "default", "filesystem": {"unix_socket": [path]}});
    std::fs::write(&profile, grant.to_string()).unwrap();
    let beside = "
import threading
threading.Thread(target=lambda: exec(argv[3], globals()), daemon=True).start()
while not os.path.exists('waiting'): time.sleep(0.01)
time.sleep(0.5)
begin = time.monotonic()
l = socket.socket(socket.AF_UNIX); l.bind(argv[4]); l.listen(64)
for i in range(500):
    s = socket.socket(socket.AF_UNIX); s.connect(argv[4]); s.close(); l.accept()[0].close()
if argv[5] == 'full': tcp = socket.create_server(('127.0.0.1', 0)); socket.create_connection(tcp.getsockname())
open('took', 'w').write(str(time.monotonic() - begin))
while not os.path.exists('result'): time.sleep(0.01)";
    let attempt = Attempt::python(beside)
        .with(&path)
        .with("200")
        .with(BLOCKED)
        .with(place.work.join("own"))
        .with(by_mode("full", "reduced"));
    let options = ["--profile", profile.to_str().unwrap()];
    let run = Started::new(&mut place.run(&options, &attempt.argv()));
    eventually("the others are served", || place.work.join("took").exists());
    assert!(!place.work.join("result").exists(), "nothing was blocked");
    let draining = std::thread::spawn(move || {
        for _ in 0..200 {
            drop(listener.accept().unwrap());
        }
    });
    run.finish().expect(0);
    draining.join().unwrap();
    assert_eq!(std::fs::read_to_string(place.work.join("result")).unwrap(), "200 0");
    let took: f64 = std::fs::read_to_string(place.work.join("took"))
        .unwrap()
        .parse()
        .unwrap();
    assert!(took < 5.0, "501 connects beside 200 that wait took {took} s");
}

#[test]
fn one_connect_more_than_may_wait_is_told_to_try_again() {
    let place = Place::new();
    let body = format!(
        "
l = socket.socket(socket.AF_UNIX); l.bind(argv[1]); l.listen(0)
import threading
def drain():
    while not os.path.exists('waiting'): time.sleep(0.01)
    time.sleep(4)
    while not os.path.exists('result'):
        l.settimeout(1)
        try: l.accept()
        except OSError: pass
threading.Thread(target=drain, daemon=True).start()
{BLOCKED}
assert len(done) >= 256 and len(done) + len(refused) == 300, (len(done), len(refused))
assert refused or argv[3] == 'outside'
s = socket.socket(socket.AF_UNIX); l.listen(64); s.connect(argv[1])"
    );
    let attempt = |side: &str| {
        Attempt::python(&body)
            .with(place.work.join("own"))
            .with("300")
            .with(side)
    };
    place.allows(&[], &attempt("inside"));
}

#[test]
fn connects_of_callers_that_were_killed_are_given_up() {
    let place = Place::new();
    let body = "
l = socket.socket(socket.AF_UNIX); l.bind(argv[1]); l.listen(0)
first = socket.socket(socket.AF_UNIX); first.connect(argv[1])
for round in range(3):
    children = []
    for i in range(100):
        pid = os.fork()
        if pid == 0:
            try: socket.socket(socket.AF_UNIX).connect(argv[1])
            finally: os._exit(0)
        children.append(pid)
    time.sleep(0.8)
    for pid in children: os.kill(pid, signal.SIGKILL)
    for pid in children: os.waitpid(pid, 0)
    time.sleep(0.3)
o = socket.socket(socket.AF_UNIX); o.bind(argv[1] + '2'); o.listen(8)
socket.socket(socket.AF_UNIX).connect(argv[1] + '2')";
    place.allows(&[], &Attempt::python(body).with(place.work.join("own")));
}

#[test]
fn a_non_blocking_connect_does_not_wait_and_an_interrupted_program_ends() {
    let place = Place::new();
    let body = "
l = socket.socket(socket.AF_UNIX); l.bind(argv[1]); l.listen(0)
a = socket.socket(socket.AF_UNIX); a.connect(argv[1])
b = socket.socket(socket.AF_UNIX); b.setblocking(False)
begin = time.monotonic()
try: b.connect(argv[1]); deny('EIO')
except BlockingIOError: pass
assert time.monotonic() - begin < 1
if argv[2] == 'full':
    t = socket.create_server(('127.0.0.1', 0)); n = socket.socket(); n.setblocking(False)
    assert n.connect_ex(t.getsockname()) in (0, errno.EINPROGRESS)
    m = socket.socket(socket.AF_INET6); m.connect(('::ffff:127.0.0.1', t.getsockname()[1]))
pid = os.fork()
if pid == 0: socket.socket(socket.AF_UNIX).connect(argv[1])
time.sleep(0.2); os.kill(pid, signal.SIGTERM); assert os.waitpid(pid, 0)[1] == signal.SIGTERM";
    let attempt = Attempt::python(body)
        .with(place.work.join("own"))
        .with(by_mode("full", "reduced"));
    place.allows(&[], &attempt);
}

#[test]
fn a_hundred_starts_and_thirty_two_at_once_all_end() {
    let place = Place::new();
    for _ in 0..100 {
        let begin = Instant::now();
        finish(&mut place.run(&[] as &[&str], &["/bin/true"])).expect(0);
        assert!(begin.elapsed() < Duration::from_secs(5), "a start hung");
    }
    let all: Vec<Started> = (0..32)
        .map(|_| Started::new(&mut place.run(&[] as &[&str], &["/bin/true"])))
        .collect();
    for one in all {
        one.finish().expect(0);
    }
}

#[test]
fn a_refused_connect_in_a_crowd_is_still_refused() {
    let place = Place::new();
    let path = place.work.join("host");
    let _listener = UnixListener::bind(&path).unwrap();
    let body = "
import threading
def busy():
    l = socket.socket(socket.AF_UNIX); l.bind('\\0busy%d' % threading.get_ident()); l.listen(8)
    while True: socket.socket(socket.AF_UNIX).connect(l.getsockname()); l.accept()
for _ in range(4): threading.Thread(target=busy, daemon=True).start()
for i in range(500):
    try: socket.socket(socket.AF_UNIX).connect(argv[1]); break
    except PermissionError: pass
else: deny('EACCES')";
    let attempt = Attempt::python(body).with(&path);
    assert_eq!(place.compare(&attempt, &[], &attempt, &["EACCES"]), Verdict::Held);
}
