# What a mediator must not be: looks at the address of a trapped connect, and lets the call go on if it is the good one.
import array, ctypes, os, socket, struct, sys
good, argv = sys.argv[1].encode(), sys.argv[2:]
CONNECT, SECCOMP = (42, 317) if os.uname().machine == 'x86_64' else (203, 277)
libc = ctypes.CDLL(None, use_errno=True)
ours, theirs = socket.socketpair()
child = os.fork()
if child == 0:
    step = lambda code, jt, jf, k: struct.pack('HBBI', code, jt, jf, k)
    program = step(0x20, 0, 0, 0) + step(0x15, 0, 1, CONNECT) + step(0x06, 0, 0, 0x7fc00000) + step(0x06, 0, 0, 0x7fff0000)
    held = ctypes.create_string_buffer(program)
    filter = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(program) // 8, ctypes.addressof(held)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    listener = libc.syscall(SECCOMP, 1, 8, filter)
    assert listener >= 0, ctypes.get_errno()
    theirs.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [listener]))])
    os.close(listener)
    ours.close(); theirs.close()
    os.execv(argv[0], argv)
theirs.close()
_, control, _, _ = ours.recvmsg(1, 64)
listener = struct.unpack('i', control[0][2][:4])[0]
import select
poll = select.poll(); poll.register(listener, select.POLLIN)
memory = {}
while poll.poll()[0][1] & select.POLLIN:
    call = ctypes.create_string_buffer(80)
    if libc.ioctl(listener, ctypes.c_ulong(0xc0502100), call) != 0: continue
    id, pid = struct.unpack_from('QI', call)
    pointer, = struct.unpack_from('Q', call, 16 + 16 + 8)
    if pid not in memory: memory[pid] = os.open(f'/proc/{pid}/mem', os.O_RDONLY)
    seen = os.pread(memory[pid], 110, pointer)[2:].split(b'\0')[0]
    error, flags = (0, 1) if seen == good else (-13, 0)
    libc.ioctl(listener, ctypes.c_ulong(0xc0182101), ctypes.create_string_buffer(struct.pack('QqiI', id, 0, error, flags)))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
