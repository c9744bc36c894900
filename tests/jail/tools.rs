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

#[test]
fn a_dev_server_and_its_client_meet_on_the_private_loopback() {
    let script = "
/usr/bin/python3 -m http.server -b 127.0.0.1 8123 >/dev/null 2>&1 &
until curl -so /dev/null http://127.0.0.1:8123/; do sleep 0.05; done
echo here > page; curl -sf http://localhost:8123/page; curl -sf http://127.0.0.1:8123/page | grep -qx here";
    for options in [&["--block-net"][..], &[]] {
        let place = Place::new();
        let ended = finish(&mut place.sh(options, &format!("set -e; {script}"))).expect(0);
        assert_eq!(ended.out(), "here\n", "{options:?}");
    }
}

#[test]
fn a_watcher_hears_of_changes_at_any_depth() {
    works(
        "python3",
        "mkdir -p src/deep; /usr/bin/python3 -c \"
import ctypes, os, struct
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(os.O_NONBLOCK)
for folder in ['.', 'src', 'src/deep', '/tmp', os.environ['HOME']]:
    assert libc.inotify_add_watch(watch, folder.encode(), 0xfff) > 0, folder
open('src/deep/new', 'w').write('x'); os.rename('src/deep/new', 'src/moved'); open('/tmp/x', 'w')
events, names = os.read(watch, 9999), set()
while events:
    number, mask, cookie, length = struct.unpack('iIII', events[:16])
    names.add((mask, events[16:16 + length].rstrip(b'\\0')))
    events = events[16 + length:]
assert {(0x100, b'new'), (0x40, b'new'), (0x80, b'moved'), (0x100, b'x')} <= names, names
\"",
    );
}

#[test]
fn python_starts_fresh_interpreters_and_shares_memory() {
    let body = "
import asyncio, concurrent.futures, multiprocessing as m, socketserver, threading
from multiprocessing import managers, shared_memory
if __name__ == '__main__':
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=m.get_context('spawn')) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
    memory = shared_memory.SharedMemory(create=True, size=1 << 20); memory.buf[0] = 7; memory.unlink()
    with m.Manager() as manager:
        assert manager.list([1, 2])[1] == 2
    with m.get_context('forkserver').Pool(2) as pool:
        assert pool.map(len, ['a', 'bb']) == [1, 2]
    server = socketserver.ThreadingUnixStreamServer('s.sock', socketserver.StreamRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    async def client():
        await asyncio.open_unix_connection('s.sock')
        return await (await asyncio.create_subprocess_exec('true')).wait()
    assert asyncio.run(client()) == 0
";
    let place = Place::new();
    std::fs::write(place.work.join("a.py"), body).unwrap();
    finish(&mut place.run::<&str, _>(&[], &["/usr/bin/python3", "a.py"])).expect(0);
}

#[test]
fn every_process_finds_itself_at_any_depth() {
    works(
        "sh",
        "sh -c 'sh -c \"grep -q ^Name /proc/self/status; ls /dev/fd /proc/self/fd >/dev/null; cat /proc/self/cmdline | grep -qa self\"'
         test $(readlink /proc/self/exe) = $(command -v readlink | xargs readlink -f); cat /proc/$$/maps >/dev/null",
    );
}

#[test]
fn node_runs_worker_threads_a_cluster_and_a_server() {
    let place = Place::new();
    if finish(place.command("node").arg("-v")).code() != 0 {
        return skip("node is not installed");
    }
    let script = "
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads'), http = require('http'), cluster = require('cluster');
if (cluster.isWorker) return http.createServer((q, a) => a.end('cluster')).listen(8124, '127.0.0.1');
if (!isMainThread) return parentPort.postMessage(workerData * 2);
const get = port => new Promise((ok, no) => http.get({ port, host: '127.0.0.1' }, a => a.on('data', d => ok(d.toString()))).on('error', no));
(async () => {
  const sums = await Promise.all([1, 2, 3, 4].map(n => new Promise(ok => new Worker(__filename, { workerData: n }).on('message', ok))));
  if (sums.join() !== '2,4,6,8') process.exit(3);
  await new Promise(ok => { cluster.fork(); cluster.fork(); cluster.on('listening', ok); });
  process.exit(await get(8124) === 'cluster' ? 0 : 4);
})();";
    std::fs::write(place.work.join("a.js"), script).unwrap();
    finish(&mut place.run::<&str, _>(&[], &["node", "a.js"])).expect(0);
}
