//! D01: what a process controls is no evidence. Whatever it makes of its own memory, name, arguments and environment
//! fails no look and ends no launch; a process without the layers in the same sandbox still does.

use crate::harness::{PYTHON, skip};
use crate::intruder::Intruder;
use crate::mode::only_in_full;
use crate::place::{Place, Started, eventually};
use crate::refusal::first;

/// Looks come every second: this sees three of them.
const STAYS: &str = "
print('up', file=open('up', 'w'), flush=True)
time.sleep(3.2)
print('whole', flush=True)";

fn start(place: &Place, body: &str) -> Started {
    let script = format!(
        "import ctypes, mmap, os, struct, sys, time\nlibc = ctypes.CDLL(None, use_errno=True)\n{body}\n{STAYS}"
    );
    Started::new(&mut place.run::<&str, _>(&[], &[PYTHON, "-I", "-S", "-c", &script]))
}

/// The launch lives on with what the body has done, and ends at once where somebody unconfined comes to it.
#[track_caller]
fn is_no_evidence(body: &str) {
    let place = Place::new();
    let ended = start(&place, body).finish().expect(0);
    assert_eq!(ended.out(), "whole\n", "{}", ended.err());
    only_in_full!("without namespaces nobody can step into the sandbox");
    std::fs::remove_file(place.work.join("up")).unwrap();
    let run = start(&place, &format!("{body}\ntime.sleep(0.1)"));
    eventually("the command runs", || place.work.join("up").exists());
    let intruder = match Intruder::enter(place.command("nsenter"), &first(&run).to_string()) {
        Ok(intruder) => intruder,
        Err(reason) => return skip(reason),
    };
    let ended = run.finish().expect(126);
    drop(intruder);
    assert!(ended.err().contains("verification failed"), "{}", ended.err());
}

#[test]
fn memory_of_huge_pages_is_no_file_from_outside() {
    // Without huge pages of that size the file can be made and not filled, which is enough for a descriptor.
    is_no_evidence(
        "
made = []
for flags in (os.MFD_HUGETLB, os.MFD_HUGETLB | os.MFD_HUGE_2MB, os.MFD_HUGETLB | os.MFD_HUGE_1GB):
    try: made.append(os.memfd_create('huge', flags))
    except OSError as e: assert e.errno in (19, 38, 22), e
assert made or not os.path.exists('/sys/kernel/mm/hugepages')",
    );
}

#[test]
fn secret_memory_is_no_file_from_outside() {
    is_no_evidence(&format!(
        "
fd = libc.syscall({}, 0)
assert fd >= 0 or ctypes.get_errno() == 38, ctypes.get_errno()
plain = os.memfd_create('plain')",
        nix::libc::SYS_memfd_secret
    ));
}

/// Where the arguments and the environment are, as fields of `/proc/self/stat` (48 to 51).
const PLACES: &str = "
fields = open('/proc/self/stat').read().rsplit(')', 1)[1].split()
args, args_end, env, env_end = [int(f) for f in fields[45:49]]";

#[test]
fn a_process_that_rewrites_its_arguments_and_environment_goes_on() {
    is_no_evidence(&format!(
        "{PLACES}
ctypes.memset(args, 0x78, env_end - args)
ctypes.memmove(args, b'\\xff\\x00 nobody\\n', 10)
libc.prctl(15, b'\\xfe(init) R 1\\n', 0, 0, 0)
assert b'xxxx' in open('/proc/self/environ', 'rb').read()"
    ));
}

#[test]
fn a_process_that_points_its_arguments_at_all_of_its_memory_is_not_read_whole() {
    // PR_SET_MM_MAP (prctl(2)): 128 MiB as arguments, and as many as environment.
    is_no_evidence(&format!(
        "{PLACES}
size = 256 << 20
big = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
half = size // 2
big.write(b'y' * (half - 1) + b'\\0' + b'z' * half)
at = ctypes.addressof(ctypes.c_char.from_buffer(big))
own = [0] + [int(f) for f in fields[1:]]
code, code_end, stack = own[23], own[24], own[25]
data, data_end, brk = own[42], own[43], own[44]
words = [code, code_end, data, data_end, brk, brk, stack, at, at + half, at + half, at + size]
packed = struct.pack('11Q', *words) + struct.pack('QIi', 0, 0, -1)
if libc.prctl(35, 14, ctypes.c_char_p(packed), ctypes.c_ulong(len(packed)), ctypes.c_ulong(0)) == 0:
    assert open('/proc/self/cmdline', 'rb').read(9) == b'y' * 9
else:
    print('no PR_SET_MM_MAP:', ctypes.get_errno(), file=sys.stderr)"
    ));
}
