//! Reduced mode beside full mode: these make their own machine without namespaces, whatever mode the suite runs in.

use crate::harness::{Attempt, PYTHON, covered_by_root, is_root, not_in_this_kernel};
use crate::place::{Place, Started, eventually, finish, marker, no_namespaces, processes_with};
use crate::refusal::first;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A reduced launch.
fn reduced<S: AsRef<OsStr>>(place: &Place, argv: &[S]) -> Command {
    let mut command = place.filtered(&no_namespaces());
    command.args(["run", "--allow-missing", "P5", "--"]).args(argv);
    command
}

/// What came of an attempt: `done`, or `denied` and the error.
fn tried(mut command: Command) -> String {
    let ended = finish(&mut command);
    let out = ended.out();
    let said = out.lines().last().unwrap_or_default().to_owned();
    assert!(
        said.starts_with("done") || said.starts_with("denied "),
        "{out}{}",
        ended.err()
    );
    said
}

/// Succeeds outside, and inside it is denied with this.
#[track_caller]
fn denies(place: &Place, body: &str, arguments: &[&str], error: &str) {
    let attempt = arguments
        .iter()
        .fold(Attempt::python(body), |attempt, argument| attempt.with(argument));
    let argv = attempt.argv();
    let mut outside = place.command(&argv[0]);
    outside.args(&argv[1..]);
    assert_eq!(tried(outside), "done", "the control: {body}");
    assert_eq!(tried(reduced(place, &argv)), format!("denied {error}"), "{body}");
}

#[test]
fn without_namespaces_a_launch_is_refused_with_promise_step_and_fix_unless_that_is_given_up() {
    let place = Place::new();
    let ran = || place.work.join("ran").exists();
    let mut command = place.filtered(&no_namespaces());
    let refused = finish(command.args(["run", "--", "touch", "ran"])).expect(126);
    for words in [
        "making the namespaces failed (ENOSYS",
        "P5 processes",
        "pinfold doctor",
        "--allow-missing P5",
    ] {
        assert!(refused.err().contains(words), "{words}: {}", refused.err());
    }
    assert!(!ran());
    let other = finish(
        place
            .filtered(&no_namespaces())
            .args(["run", "--allow-missing", "P1", "--", "touch", "ran"]),
    )
    .expect(126);
    assert!(
        other.err().contains("P5") && !ran(),
        "another promise was given up: {}",
        other.err()
    );
    finish(&mut reduced(&place, &["touch", "ran"])).expect(0);
    assert!(ran());
}

/// Ways to outlive a parent; each starts `sleep $0`. The last one forks on until it is ended, at most 400 times.
const STAYING: [&str; 4] = [
    "setsid sleep $0 &",
    "(setsid sh -c '(trap \"\" TERM HUP INT; sleep $0) &' $0 &) &",
    "nohup setsid setsid sleep $0 >/dev/null 2>&1 </dev/null &",
    "setsid python3 -I -S -c 'import os,sys,time\nfor i in range(400):\n  if os.fork(): os._exit(0)\n  time.sleep(0.005)\nos.execvp(\"sleep\", [\"sleep\", sys.argv[1]])' $0 &",
];

#[test]
fn nothing_outlives_a_reduced_launch_however_it_ends() {
    let place = Place::new();
    for how in STAYING {
        let word = marker();
        let script = format!("{how} sleep 0.3; touch up; sleep 30");
        let gone = || eventually(how, || processes_with(&word).is_empty());
        let fresh = || {
            let _ = std::fs::remove_file(place.work.join("up"));
        };
        // The command ends by itself.
        let short = format!("{how} sleep 0.3; exit 3");
        finish(&mut reduced(&place, &["sh", "-c", &short, &word])).expect(3);
        assert_eq!(processes_with(&word), Vec::<i32>::new(), "{how}");
        for victim in [Victim::Launcher, Victim::Command] {
            fresh();
            let run = Started::new(&mut reduced(&place, &["sh", "-c", &script, &word]));
            eventually("the command is up", || place.work.join("up").exists());
            let pid = match victim {
                Victim::Launcher => run.pid(),
                Victim::Command => child_of(first(&run)),
            };
            kill(pid, Signal::SIGKILL).unwrap();
            gone();
        }
    }
    // Outside the same is left behind.
    let word = marker();
    finish(
        place
            .command("sh")
            .args(["-c", "setsid sleep $0 >/dev/null 2>&1 & exit 3", &word]),
    )
    .expect(3);
    eventually("the control stays", || processes_with(&word).len() == 1);
    kill(Pid::from_raw(processes_with(&word)[0]), Signal::SIGKILL).unwrap();
}

#[derive(Clone, Copy)]
enum Victim {
    Launcher,
    Command,
}

fn child_of(pid: i32) -> Pid {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap())
}

fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

#[test]
fn a_stop_of_the_launcher_stops_what_is_inside_and_nothing_else() {
    let place = Place::new();
    let (inner, outer) = (marker(), marker());
    let outside = Started::new(Command::new("sleep").arg(&outer));
    // In its own group, as a shell would start it: one that nobody could continue is not stopped.
    let run =
        Started::new(reduced(&place, &["sh", "-c", "setsid sleep $0 & sleep 2; exit 4", &inner]).process_group(0));
    let inside = || {
        let all = processes_with(&inner);
        all.into_iter()
            .filter(|pid| std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"sleep\n"))
            .collect::<Vec<_>>()
    };
    eventually("the sleeper is there", || inside().len() == 1);
    kill(run.pid(), Signal::SIGTSTP).unwrap();
    eventually("the launcher stands still", || state(run.pid().as_raw()) == 'T');
    assert_eq!(state(inside()[0]), 'T', "something runs, and the launcher is stopped");
    assert_eq!(state(outside.pid().as_raw()), 'S', "a process outside was stopped");
    kill(run.pid(), Signal::SIGCONT).unwrap();
    run.finish().expect(4);
}

/// The rooms that launches of this place have now.
fn rooms(place: &Place) -> Vec<PathBuf> {
    let rooms = std::fs::read_dir(place.home.join(".local/state/pinfold/rooms"));
    let all = rooms.into_iter().flatten().flatten().map(|entry| entry.path());
    all.filter(|path| path.is_dir()).collect()
}

#[test]
fn the_room_of_a_killed_launch_goes_with_the_next_start() {
    let place = Place::new();
    let word = marker();
    let run = Started::new(&mut reduced(
        &place,
        &[
            "sh",
            "-c",
            "mkdir $HOME/closed; touch $HOME/closed/x; chmod 0 $HOME/closed; touch up; sleep $0",
            &word,
        ],
    ));
    eventually("the command is up", || place.work.join("up").exists());
    let room = rooms(&place);
    assert_eq!(room.len(), 1);
    // What verification goes by: there to be read outside, and not inside.
    let canary = room[0].join("canary");
    assert!(std::fs::read(&canary).is_ok());
    let ended = finish(&mut reduced(&place, &["cat", canary.to_str().unwrap()])).expect(1);
    assert!(ended.err().contains("Permission denied"), "{}", ended.err());
    kill(run.pid(), Signal::SIGKILL).unwrap();
    eventually("it is gone", || processes_with(&word).is_empty());
    assert_eq!(rooms(&place), room, "nobody was left to remove it");
    drop(run);
    finish(&mut reduced(&place, &["true"])).expect(0);
    assert_eq!(rooms(&place), Vec::<PathBuf>::new());
}

#[test]
fn sockets_of_ones_own_work_in_reduced_mode_and_others_are_refused() {
    let place = Place::new();
    let own = "
l = socket.socket(socket.AF_UNIX); l.bind('own'); l.listen()
for _ in range(50): socket.socket(socket.AF_UNIX).connect('own'); l.accept()
os.unlink('own')";
    assert_eq!(tried(reduced(&place, &Attempt::python(own).argv())), "done");
    let host = place.work.join("host");
    let _listener = UnixListener::bind(&host).unwrap();
    let connect = "socket.socket(socket.AF_UNIX).connect(argv[1])";
    denies(&place, connect, &[host.to_str().unwrap()], "EACCES");
    let name = marker();
    let address = <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name);
    let _abstract = UnixListener::bind_addr(&address.unwrap()).unwrap();
    denies(
        &place,
        "socket.socket(socket.AF_UNIX).connect('\\0' + argv[1])",
        &[&name],
        "EACCES",
    );
    denies(
        &place,
        "l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen()",
        &[],
        "EACCES",
    );
    denies(
        &place,
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        &[],
        "EACCES",
    );
}

/// A port of the host's loopback that the launcher listens on.
fn port_of(run: &Started) -> Option<u16> {
    let open = std::fs::read_dir(format!("/proc/{}/fd", run.pid())).ok()?;
    let links = open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let links: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields[3] == "0A" && links.contains(&format!("socket:[{}]", fields[9]));
        let port = fields[1].rsplit(':').next()?;
        listens.then(|| u16::from_str_radix(port, 16).ok()).flatten()
    })
}

#[test]
fn the_broker_on_the_machines_loopback_serves_the_sandbox_and_nobody_else() {
    let place = Place::new();
    let body = "
def ask(port):
    s = socket.create_connection(('127.0.0.1', port), 5); s.settimeout(5)
    s.sendall(b'CONNECT denied.example.com:443 HTTP/1.1\\r\\n\\r\\n'); return s.recv(99)
assert ask(3129).startswith(b'HTTP/1.1 4'), 'the control'
open('up', 'w').close()
while not os.path.exists('port'): time.sleep(0.01)
time.sleep(0.05)
ask(int(open('port').read()))";
    let run = Started::new(&mut reduced(&place, &Attempt::python(body).argv()));
    eventually("the sandbox was answered", || place.work.join("up").exists());
    let port = port_of(&run).expect("the broker listens");
    let mut stranger = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stranger.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let _ = stranger.write_all(b"CONNECT denied.example.com:443 HTTP/1.1\r\n\r\n");
    let mut answer = Vec::new();
    // Closed, with or without a reset.
    let _ = stranger.read_to_end(&mut answer);
    assert_eq!(String::from_utf8_lossy(&answer), "", "a stranger was answered");
    std::fs::write(place.work.join("port"), port.to_string()).unwrap();
    let ended = run.finish().expect(77);
    assert_eq!(ended.out(), "denied EACCES\n", "its real port, from inside");
}

#[test]
fn a_process_outside_cannot_be_signalled_or_read_in_reduced_mode() {
    let place = Place::new();
    let victim = Started::new(Command::new("sleep").arg(marker()).env("API_TOKEN", "t"));
    let pid = victim.pid().to_string();
    denies(&place, "os.kill(int(argv[1]), 0)", &[&pid], "EPERM");
    denies(&place, "os.kill(int(argv[1]), signal.SIGCONT)", &[&pid], "EPERM");
    denies(
        &place,
        "open('/proc/' + argv[1] + '/environ').read()",
        &[&pid],
        "EACCES",
    );
    let by_handle = "signal.pidfd_send_signal(os.pidfd_open(int(argv[1])), 0)";
    denies(&place, by_handle, &[&pid], "EPERM");
}

#[test]
fn permissions_are_changed_only_where_writing_is_granted() {
    let place = Place::new();
    let key = place.secrets.join("key");
    let key = key.to_str().unwrap();
    for body in [
        "os.chmod(argv[1], 0o644)",
        "os.chmod('key', 0o644, dir_fd=os.open(os.path.dirname(argv[1]), os.O_PATH))",
        "os.chmod('/proc/self/fd/%d' % os.open(argv[1], os.O_PATH), 0o644)",
        "os.path.lexists('way') or os.symlink(argv[1], 'way'); os.chmod('way', 0o644)",
    ] {
        denies(&place, body, &[key], "EACCES");
    }
    let own = "
open('own', 'w').close(); f = os.open('own', os.O_RDONLY); d = os.open('.', os.O_PATH)
def mode(): return os.stat('own').st_mode & 0o7777
os.chmod('own', 0o640); assert mode() == 0o640
os.fchmod(f, 0o700); assert mode() == 0o700
os.chmod('own', 0o604, dir_fd=d); assert mode() == 0o604
os.symlink('own', 'to-own'); os.chmod('to-own', 0o600); assert mode() == 0o600
os.unlink('own'); os.fchmod(f, 0o640); assert os.fstat(f).st_mode & 0o7777 == 0o640
try: os.fchmod(d, 0o700); deny('EIO')
except OSError as e: assert e.errno == errno.EBADF, e
try: os.chmod('', 0o700); deny('EIO')
except FileNotFoundError: pass
open('x', 'w').close()
subprocess.run(['chmod', '+x', 'x'], check=True); assert os.access('x', os.X_OK)
subprocess.run('mkdir d; echo x > d/f; chmod 750 d/f; tar cf - d | (mkdir e; cd e; tar xpf -); cp -a d g', shell=True, check=True)
assert os.stat('e/d/f').st_mode & 0o777 == os.stat('g/f').st_mode & 0o777 == 0o750";
    assert_eq!(tried(reduced(&place, &Attempt::python(own).argv())), "done");
    if !is_root() {
        return covered_by_root("only root can give a file to another user");
    }
    // The supervisor is root and the command has none of its rights.
    let foreign = place.work.join("foreign");
    std::fs::write(&foreign, "").unwrap();
    std::os::unix::fs::chown(&foreign, Some(65_534), Some(65_534)).unwrap();
    denies(
        &place,
        "os.chmod(argv[1], 0o666)",
        &[foreign.to_str().unwrap()],
        "EPERM",
    );
}

#[test]
fn a_server_for_every_address_is_reached_on_loopback_only() {
    let place = Place::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let server = "import socket, sys\nl = socket.create_server(('0.0.0.0', int(sys.argv[1]))); print(l.getsockname()[0], flush=True)\nc, _ = l.accept(); c.sendall(b'from inside')";
    let text = port.to_string();
    let mut command = place.filtered(&no_namespaces());
    command.args(["run", "--allow-missing", "P5", "--listen-port", &text, "--"]);
    let run = Started::new(command.args([PYTHON, "-I", "-S", "-c", server, &text]));
    let mut answer = String::new();
    eventually("it answers", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok_and(|mut stream| stream.read_to_string(&mut answer).is_ok())
    });
    assert_eq!(answer, "from inside");
    assert_eq!(run.finish().expect(0).out(), "127.0.0.1\n");
}

#[test]
fn killing_the_first_process_of_a_reduced_sandbox_leaves_nothing() {
    let place = Place::new();
    let word = marker();
    let script = "setsid sleep $0 & sleep 0.2; touch up; sleep $0";
    let run = Started::new(&mut reduced(&place, &["sh", "-c", script, &word]));
    eventually("the command is up", || place.work.join("up").exists());
    kill(Pid::from_raw(first(&run)), Signal::SIGKILL).unwrap();
    run.finish().expect(125);
    assert_eq!(processes_with(&word), Vec::<i32>::new());
}

/// No process of the host can come to descend from the sandbox's first one by itself, and none inside can lose a layer.
/// A debugger on the host can make that first process fork: what comes of it has no Landlock domain, and one filter less.
#[test]
fn a_descendant_that_lacks_a_layer_ends_a_reduced_launch() {
    let place = Place::new();
    if cfg!(not(target_arch = "x86_64")) {
        return not_in_this_kernel("the registers that the plant knows");
    }
    let start = || Started::new(&mut reduced(&place, &["sh", "-c", "touch up; sleep 4; echo whole"]));
    assert_eq!(start().finish().expect(0).out(), "whole\n");
    std::fs::remove_file(place.work.join("up")).unwrap();
    let run = start();
    eventually("the command runs", || place.work.join("up").exists());
    let mut plant = place.command(PYTHON);
    plant.args(["-I", "-S", "-c", include_str!("plant.py"), &first(&run).to_string()]);
    let planted = finish(&mut plant);
    if planted.code() == 3 {
        return covered_by_root(&format!("the first process cannot be traced: {}", planted.out()));
    }
    let planted = planted.expect(0);
    let ended = run.finish().expect(126);
    assert!(ended.err().contains("verification failed"), "{}", ended.err());
    let child = PathBuf::from("/proc").join(planted.out().trim());
    eventually("what was planted is gone too", || !child.exists());
}
