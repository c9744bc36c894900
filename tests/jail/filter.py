# Runs a command in a process in which the named system calls fail, as on a kernel that lacks them.
import ctypes, os, struct, sys
calls, errno, argv = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
numbers = [int(n) for n in calls.split(',') if n]
def step(code, jt, jf, k): return struct.pack('HBBI', code, jt, jf, k)
program = step(0x20, 0, 0, 0)
for i, n in enumerate(numbers): program += step(0x15, len(numbers) - i, 0, n)
program += step(0x06, 0, 0, 0x7fff0000) + step(0x06, 0, 0, 0x00050000 | errno)
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(program)
class Prog(ctypes.Structure): _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
prog = Prog(len(program) // 8, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(prog), 0, 0) == 0, ctypes.get_errno()
os.execv(argv[0], argv)
