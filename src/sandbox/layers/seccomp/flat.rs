//! One filter for all that a single comparison decides. Loading a filter costs the kernel time for each instruction and
//! each call number, twice a launch, and the general compiler writes ten times as many (seccomp(2), bpf(4)).

use crate::sys::names::NEWEST_CALL;
use nix::errno::Errno;
use seccompiler::{BpfProgram, sock_filter};

/// One call that fails.
#[derive(Debug, Clone, Copy)]
pub struct Deny {
    pub call: u32,
    pub test: Test,
    pub errno: u32,
}

/// When it fails.
#[derive(Debug, Clone, Copy)]
pub enum Test {
    Always,
    /// When any of `bits` is set in the low half of the argument.
    AnyBit {
        arg: u8,
        bits: u32,
    },
}

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ABOVE: u16 = 0x25;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
/// Arguments are 64 bits each; the low half stands first on both architectures.
const ARGUMENTS_AT: u32 = 16;
const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const FAIL: u32 = 0x0005_0000;
const KILL: u32 = 0x8000_0000;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

const fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// A call of another architecture ends the process; x32 calls (bit 30 set) and calls newer than the rules: ENOSYS;
/// then the rules in their order. Nothing if that is more than the jumps of such a program can span.
pub fn assemble(denies: &[Deny]) -> Option<BpfProgram> {
    let mut program = vec![
        step(LOAD_WORD, 0, 0, ARCH_AT),
        step(JUMP_IF_EQUAL, 1, 0, ARCH),
        step(RETURN, 0, 0, KILL),
        step(LOAD_WORD, 0, 0, NUMBER_AT),
    ];
    let mut ends = Ends::default();
    ends.jump(&mut program, JUMP_IF_ABOVE, NEWEST_CALL, Errno::ENOSYS as u32);
    for deny in denies {
        match deny.test {
            Test::Always => ends.jump(&mut program, JUMP_IF_EQUAL, deny.call, deny.errno),
            Test::AnyBit { arg, bits } => {
                program.push(step(JUMP_IF_EQUAL, 0, 3, deny.call));
                program.push(step(LOAD_WORD, 0, 0, ARGUMENTS_AT + 8 * u32::from(arg)));
                ends.jump(&mut program, JUMP_IF_ANY_BIT, bits, deny.errno);
                program.push(step(LOAD_WORD, 0, 0, NUMBER_AT));
            }
        }
    }
    program.push(step(RETURN, 0, 0, ALLOW));
    ends.write(program)
}

/// The errors at the end of a program, and the jumps to them.
#[derive(Default)]
struct Ends {
    errnos: Vec<u32>,
    /// Where a jump stands, and the index of its error.
    jumps: Vec<(usize, usize)>,
}

impl Ends {
    fn jump(&mut self, program: &mut BpfProgram, code: u16, k: u32, errno: u32) {
        let end = self.errnos.iter().position(|known| *known == errno);
        let end = end.unwrap_or_else(|| {
            self.errnos.push(errno);
            self.errnos.len() - 1
        });
        self.jumps.push((program.len(), end));
        program.push(step(code, 0, 0, k));
    }

    fn write(self, mut program: BpfProgram) -> Option<BpfProgram> {
        let first = program.len();
        for (at, end) in self.jumps {
            // A jump counts from the instruction after it.
            program.get_mut(at)?.jt = u8::try_from(first + end - at - 1).ok()?;
        }
        program.extend(self.errnos.into_iter().map(|errno| step(RETURN, 0, 0, FAIL | errno)));
        Some(program)
    }
}

/// When a call goes to the supervisor.
#[derive(Debug, Clone, Copy)]
pub enum Handed {
    Always,
    /// When this argument is a pointer, all of its 64 bits looked at.
    WithPointer(u8),
}

/// Hands these calls to the supervisor.
pub fn mediating(calls: &[(u32, Handed)]) -> BpfProgram {
    let mut program = vec![step(LOAD_WORD, 0, 0, NUMBER_AT)];
    for (call, handed) in calls {
        match handed {
            Handed::Always => {
                program.push(step(JUMP_IF_EQUAL, 0, 1, *call));
                program.push(step(RETURN, 0, 0, NOTIFY));
            }
            Handed::WithPointer(arg) => {
                let at = ARGUMENTS_AT + 8 * u32::from(*arg);
                program.push(step(JUMP_IF_EQUAL, 0, 6, *call));
                program.push(step(LOAD_WORD, 0, 0, at));
                program.push(step(JUMP_IF_EQUAL, 0, 2, 0));
                program.push(step(LOAD_WORD, 0, 0, at + 4));
                program.push(step(JUMP_IF_EQUAL, 1, 0, 0));
                program.push(step(RETURN, 0, 0, NOTIFY));
                program.push(step(RETURN, 0, 0, ALLOW));
            }
        }
    }
    program.push(step(RETURN, 0, 0, ALLOW));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would answer (only the instructions that are written here).
    fn answer(program: &[sock_filter], arch: u32, call: u32, args: [u64; 6]) -> u32 {
        let word = |at: u32| match at {
            NUMBER_AT => call,
            ARCH_AT => arch,
            at => {
                let half = 4 * ((at - ARGUMENTS_AT) % 8 / 4);
                (args[((at - ARGUMENTS_AT) / 8) as usize] >> (8 * half) & 0xffff_ffff) as u32
            }
        };
        let (mut pc, mut value) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[pc];
            let holds = match code {
                LOAD_WORD => {
                    value = word(k);
                    pc += 1;
                    continue;
                }
                RETURN => return k,
                JUMP_IF_EQUAL => value == k,
                JUMP_IF_ABOVE => value > k,
                JUMP_IF_ANY_BIT => value & k != 0,
                other => panic!("instruction {other:#x}"),
            };
            pc += 1 + usize::from(if holds { jt } else { jf });
        }
    }

    fn program() -> BpfProgram {
        let deny = |call, test, errno: Errno| Deny {
            call,
            test,
            errno: errno as u32,
        };
        let mut denies: Vec<Deny> = (100..160).map(|call| deny(call, Test::Always, Errno::EPERM)).collect();
        denies.push(deny(7, Test::AnyBit { arg: 2, bits: 0x9 }, Errno::EACCES));
        denies.push(deny(8, Test::Always, Errno::ENOSYS));
        denies.push(deny(7, Test::AnyBit { arg: 0, bits: 0x4 }, Errno::EPERM));
        assemble(&denies).unwrap()
    }

    #[test]
    fn denies_what_it_lists_and_nothing_else() {
        let fail = |errno: Errno| FAIL | errno as u32;
        let seen = |call, args| answer(&program(), ARCH, call, args);
        for call in 0..=NEWEST_CALL {
            let expected = match call {
                100..160 => fail(Errno::EPERM),
                8 => fail(Errno::ENOSYS),
                _ => ALLOW,
            };
            assert_eq!(seen(call, [0; 6]), expected, "{call}");
        }
        assert_eq!(seen(7, [0, 0, 1, 0, 0, 0]), fail(Errno::EACCES));
        assert_eq!(seen(7, [0, 0, 8 | 2, 0, 0, 0]), fail(Errno::EACCES));
        assert_eq!(seen(7, [4, 0, 0, 0, 0, 0]), fail(Errno::EPERM));
        assert_eq!(seen(7, [9, 9, 6, 9, 9, 9]), ALLOW);
        assert_eq!(seen(7, [0, 0, 1 << 32, 0, 0, 0]), ALLOW, "the kernel reads 32 bits");
    }

    #[test]
    fn refuses_newer_calls_and_ends_another_architecture() {
        let no_such_call = FAIL | Errno::ENOSYS as u32;
        for call in [NEWEST_CALL + 1, 100 | 1 << 30, u32::MAX] {
            assert_eq!(answer(&program(), ARCH, call, [0; 6]), no_such_call);
        }
        for call in [0, 100, u32::MAX] {
            assert_eq!(answer(&program(), 0x4000_0003, call, [0; 6]), KILL);
        }
    }

    #[test]
    fn hands_over_what_has_a_pointer_wherever_its_bits_are() {
        let program = mediating(&[(3, Handed::Always), (5, Handed::WithPointer(4)), (7, Handed::Always)]);
        let seen = |call, pointer| answer(&program, ARCH, call, [9, 9, 9, 9, pointer, 9]);
        for call in 0..20 {
            let always = if call == 3 || call == 7 { NOTIFY } else { ALLOW };
            assert_eq!(seen(call, 0), always, "{call}");
            let pointed = if call == 5 { NOTIFY } else { always };
            for pointer in [1, 1 << 31, 1 << 32, 1 << 63, u64::MAX] {
                assert_eq!(seen(call, pointer), pointed, "{call} {pointer:x}");
            }
        }
    }

    #[test]
    fn is_not_written_if_a_jump_would_be_too_long() {
        let many = [Deny {
            call: 1,
            test: Test::Always,
            errno: 1,
        }; 300];
        assert!(assemble(&many).is_none() && assemble(&many[..200]).is_some());
    }
}
