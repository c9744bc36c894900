//! The tools of the trade work inside with the default profile.

use crate::harness::skip;
use crate::mode::only_in_full;
use crate::place::{Place, finish};

/// Runs a script inside; the first word names the tool that it is about.
fn works(tool: &str, script: &str) {
    let place = Place::new();
    if finish(place.command("sh").args(["-c", "command -v \"$0\"", tool])).code() != 0 {
        return skip(&format!("{tool} is not installed"));
    }
    let ended = finish(&mut place.sh(&[], &format!("set -e; {script}")));
    assert_eq!(
        ended.code(),
        0,
        "{tool}\nstdout: {}\nstderr: {}",
        ended.out(),
        ended.err()
    );
}

#[test]
fn a_compiler_compiles_and_its_program_runs() {
    works(
        "cc",
        "printf '#include <stdio.h>\\nint main(void){puts(\"hi\");return 0;}' > a.c; cc -o a a.c; ./a | grep hi; cc -x c -o ${TMPDIR:-/tmp}/b a.c; ${TMPDIR:-/tmp}/b",
    );
}

#[test]
fn make_runs_its_jobs_side_by_side() {
    let script = "
{ printf 'all:'; for i in 1 2 3 4 5 6 7 8; do printf ' job%s' $i; done; printf '\\njob%%: ; @echo $@ > out-$@\\n'; } > Makefile
make -s -j8 all; ls out-* | grep -c . | grep 8";
    let place = Place::new();
    if finish(place.command("make").arg("-v")).code() != 0 {
        return skip("make is not installed");
    }
    finish(&mut place.sh(&[], &format!("set -e; {script}"))).expect(0);
}

#[test]
fn python_runs_threads_processes_and_locks() {
    only_in_full!("there is no /dev/shm of its own, which multiprocessing's locks need");
    works("python3", "/usr/bin/python3 -c \"
import multiprocessing, tempfile, threading, subprocess, os, socket
m = multiprocessing.get_context('fork'); q = m.Queue(); p = m.Process(target=q.put, args=(1,)); p.start(); assert q.get() == 1; p.join()
t = threading.Thread(target=print); t.start(); t.join()
tempfile.NamedTemporaryFile().write(b'x'); assert subprocess.check_output(['echo', 'x']) == b'x\\n'
assert m.Pool(2).map(abs, [-1, -2]) == [1, 2]
\"");
}

#[test]
fn node_listens_forks_and_hears_of_changes() {
    let place = Place::new();
    if finish(place.command("node").arg("-v")).code() != 0 {
        return skip("node is not installed");
    }
    let script = "
const net = require('net'), fs = require('fs'), { spawnSync } = require('child_process'), { Worker } = require('worker_threads');
new Worker('1', { eval: true });
if (spawnSync('echo', ['x']).stdout.toString() !== 'x\\n') process.exit(3);
const s = net.createServer(c => c.end('hi')).listen(process.cwd() + '/s.sock', () =>
  net.connect(process.cwd() + '/s.sock').on('data', () => {
    s.close();
    const w = fs.watch('.', () => { w.close(); process.exit(0); });
    fs.writeFileSync('new', '');
  }));";
    finish(&mut place.run::<&str, _>(&[], &["node", "-e", script])).expect(0);
}

#[test]
fn shells_pipe_and_substitute() {
    works(
        "bash",
        "bash -c 'diff <(echo a) <(echo a) && echo x | tee /dev/stderr | cat > /dev/null; read x <<< y; test $x = y; ulimit -a >/dev/null; umask | grep -q 00'",
    );
}

#[test]
fn a_multiplexer_runs_inside() {
    only_in_full!("programs that insist on /tmp, whatever TMPDIR says, do not find one");
    works(
        "tmux",
        "tmux new-session -d 'sleep 30'; tmux list-sessions | grep 1; tmux kill-server",
    );
}

#[test]
fn archives_and_permissions_survive() {
    works(
        "tar",
        "mkdir d; echo x > d/f; chmod 750 d/f; tar czf d.tgz d; rm -r d; tar xzf d.tgz; stat -c %a d/f | grep 750; cp -a d e; mv e f; ln d/f l; ln -s l k; mkfifo p",
    );
}
