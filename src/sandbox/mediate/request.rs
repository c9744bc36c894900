//! What a trapped call asks for, from its arguments and from structures in the caller's memory: pure.

use super::caller::low_int;
use crate::sys::names::{Call, call};
use nix::errno::Errno;
use nix::libc::{self, AT_FDCWD};
use std::os::fd::RawFd;
use std::sync::LazyLock;

/// Bytes of struct msghdr, and of struct mmsghdr around it (sendmsg(2), 64-bit).
pub const HEADER: usize = 56;
/// Where the number of bytes that were sent goes in a struct mmsghdr.
pub const SENT_AT: u64 = 56;
/// Pieces that one message may have (`UIO_MAXIOV`).
const MOST_PIECES: u64 = 1024;
/// Control data that is looked at: more than the most descriptors need.
const MOST_CONTROL: u64 = 4096;
/// Descriptors that one message may carry (`SCM_MAX_FD`).
const MOST_RIGHTS: usize = 253;

/// Memory of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    pub pointer: u64,
    pub length: u64,
}

/// One trapped call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    Connect {
        socket: RawFd,
        address: Area,
    },
    Bind {
        socket: RawFd,
        address: Area,
    },
    Listen {
        socket: RawFd,
        backlog: i32,
    },
    /// chmod and its kin.
    Permissions(Change),
    /// sendto with an address.
    Send {
        socket: RawFd,
        data: Area,
        flags: i32,
        address: Area,
    },
    /// sendmsg, or the first message of sendmmsg.
    Message {
        socket: RawFd,
        header: u64,
        flags: i32,
        first_of: Option<u32>,
    },
}

/// A change of a file's permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub of: Named,
    pub mode: u32,
}

/// How a call names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Open(RawFd),
    /// A path, from an open folder on.
    Path {
        folder: RawFd,
        pointer: u64,
    },
}

/// The numbers of the calls that a filter may trap.
struct Numbers {
    connect: i64,
    bind: i64,
    listen: i64,
    sendto: i64,
    sendmsg: i64,
    sendmmsg: i64,
    chmod: i64,
    fchmod: i64,
    fchmodat: i64,
}

static NUMBERS: LazyLock<Numbers> = LazyLock::new(|| {
    let number = |name| match call(name) {
        Some(Call::Number(number)) => number,
        _ => i64::MAX,
    };
    Numbers {
        connect: number("connect"),
        bind: number("bind"),
        listen: number("listen"),
        sendto: number("sendto"),
        sendmsg: number("sendmsg"),
        sendmmsg: number("sendmmsg"),
        chmod: number("chmod"),
        fchmod: number("fchmod"),
        fchmodat: number("fchmodat"),
    }
});

impl Request {
    /// From a call's number and arguments. `ENOSYS`: no call that is mediated.
    pub fn read(number: i32, args: [u64; 6]) -> Result<Request, Errno> {
        let (number, socket) = (i64::from(number), low_int(args[0]));
        let address = |pointer, length| Area {
            pointer,
            // An int that is negative is longer than any address.
            length: u64::from(u32::from_ne_bytes(low_int(length).to_ne_bytes())),
        };
        let numbers = &*NUMBERS;
        Ok(if number == numbers.connect {
            let address = address(args[1], args[2]);
            Request::Connect { socket, address }
        } else if number == numbers.bind {
            let address = address(args[1], args[2]);
            Request::Bind { socket, address }
        } else if number == numbers.listen {
            let backlog = low_int(args[1]);
            Request::Listen { socket, backlog }
        } else if number == numbers.sendto {
            Request::Send {
                socket,
                data: Area {
                    pointer: args[1],
                    length: args[2],
                },
                flags: low_int(args[3]),
                address: address(args[4], args[5]),
            }
        } else if number == numbers.sendmsg {
            let (header, flags) = (args[1], low_int(args[2]));
            Request::Message {
                socket,
                header,
                flags,
                first_of: None,
            }
        } else if number == numbers.sendmmsg {
            let (header, flags) = (args[1], low_int(args[3]));
            let count = u32::from_ne_bytes(low_int(args[2]).to_ne_bytes());
            Request::Message {
                socket,
                header,
                flags,
                first_of: Some(count),
            }
        } else {
            Request::Permissions(Change::read(number, args).ok_or(Errno::ENOSYS)?)
        })
    }
}

impl Change {
    fn read(number: i64, args: [u64; 6]) -> Option<Change> {
        let bits = |argument| u32::from_ne_bytes(low_int(argument).to_ne_bytes());
        let by_path = |folder, pointer| Named::Path { folder, pointer };
        let (of, mode) = match number {
            number if number == NUMBERS.chmod => (by_path(AT_FDCWD, args[0]), args[1]),
            number if number == NUMBERS.fchmod => (Named::Open(low_int(args[0])), args[1]),
            number if number == NUMBERS.fchmodat => (by_path(low_int(args[0]), args[1]), args[2]),
            _ => return None,
        };
        Some(Change { of, mode: bits(mode) })
    }
}

/// Where the parts of a message are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    pub address: Area,
    pub pieces: Area,
    pub control: Area,
}

impl Parts {
    /// Reads a struct msghdr; `pieces` and `control` come in bytes.
    pub fn parse(header: &[u8]) -> Result<Parts, Errno> {
        let word = |at: usize| long(header, at);
        let count = word(24)?;
        if count > MOST_PIECES {
            return Err(Errno::EMSGSIZE);
        }
        let control = word(40)?;
        if control > MOST_CONTROL {
            return Err(Errno::ENOBUFS);
        }
        let named = word(0)?;
        Ok(Parts {
            address: Area {
                pointer: named,
                length: if named == 0 { 0 } else { word(8)? & 0xffff_ffff },
            },
            pieces: Area {
                pointer: word(16)?,
                length: count * 16,
            },
            control: Area {
                pointer: word(32)?,
                length: control,
            },
        })
    }
}

/// Reads an array of struct iovec.
pub fn pieces(bytes: &[u8]) -> Result<Vec<Area>, Errno> {
    let piece = |piece: &[u8]| {
        Ok(Area {
            pointer: long(piece, 0)?,
            length: long(piece, 8)?,
        })
    };
    bytes.chunks(16).map(piece).collect()
}

/// Reads control data (cmsg(3)): the caller's descriptors that go with a message. Anything else is refused: credentials
/// would be the supervisor's, and the rest is for sockets that no profile opens.
pub fn rights(mut control: &[u8]) -> Result<Vec<RawFd>, Errno> {
    const HEADER: usize = 16;
    let mut found = Vec::new();
    while control.len() >= HEADER {
        let length = usize::try_from(long(control, 0)?).map_err(|_| Errno::EINVAL)?;
        let (level, kind) = (int(control, 8)?, int(control, 12)?);
        let data = control.get(HEADER..length).ok_or(Errno::EINVAL)?;
        if (level, kind) != (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            return Err(Errno::EOPNOTSUPP);
        }
        let numbers = data.chunks_exact(4).map(|number| int(number, 0));
        found.extend(numbers.collect::<Result<Vec<_>, _>>()?);
        if found.len() > MOST_RIGHTS {
            return Err(Errno::EINVAL);
        }
        control = control.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
    Ok(found)
}

fn long(bytes: &[u8], at: usize) -> Result<u64, Errno> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|bytes| u64::from_ne_bytes(*bytes)).ok_or(Errno::EINVAL)
}

fn int(bytes: &[u8], at: usize) -> Result<i32, Errno> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::{Area, Change, HEADER, Named, Parts, Request, pieces, rights};
    use nix::errno::Errno;
    use nix::libc;

    fn number(call: libc::c_long) -> i32 {
        i32::try_from(call).unwrap()
    }

    fn control(level: i32, kind: i32, numbers: &[i32]) -> Vec<u8> {
        let length = 16 + 4 * numbers.len() as u64;
        let mut bytes = [&length.to_ne_bytes()[..], &level.to_ne_bytes(), &kind.to_ne_bytes()].concat();
        numbers.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn arguments_are_read_as_the_kernel_reads_them() {
        let high = 1 << 40;
        let address = Area {
            pointer: 0x1000,
            length: 16,
        };
        let seen = Request::read(number(libc::SYS_connect), [5 | high, 0x1000, 16 | high, 0, 0, 0]);
        assert_eq!(seen, Ok(Request::Connect { socket: 5, address }));
        let data = Area {
            pointer: 7,
            length: 9 | high,
        };
        let seen = Request::read(number(libc::SYS_sendto), [5, 7, 9 | high, 1 | high, 0x1000, 16 | high]);
        assert_eq!(
            seen,
            Ok(Request::Send {
                socket: 5,
                data,
                flags: 1,
                address
            })
        );
        assert_eq!(Request::read(number(libc::SYS_read), [0; 6]), Err(Errno::ENOSYS));
        let (folder, pointer, mode) = (3, 0x1000, 0o755);
        let of = Named::Path { folder, pointer };
        let seen = Request::read(number(libc::SYS_fchmodat), [3 | high, 0x1000, 0o755 | high, 0, 0, 0]);
        assert_eq!(seen, Ok(Request::Permissions(Change { of, mode })));
        let seen = Request::read(number(libc::SYS_fchmod), [3 | high, 0o755 | high, 0, 0, 0, 0]);
        let of = Named::Open(3);
        assert_eq!(seen, Ok(Request::Permissions(Change { of, mode })));
        let minus = Request::read(number(libc::SYS_connect), [5, 0, u64::MAX, 0, 0, 0]);
        assert!(matches!(minus, Ok(Request::Connect { address, .. }) if address.length > 128));
    }

    #[test]
    fn a_message_without_a_name_has_no_address() {
        let mut header = [0_u8; HEADER];
        header[8] = 110;
        header[16] = 1;
        header[24] = 2;
        let parts = Parts::parse(&header).unwrap();
        assert_eq!(
            (parts.address.length, parts.pieces),
            (0, Area { pointer: 1, length: 32 })
        );
        header[0] = 1;
        assert_eq!(
            Parts::parse(&header).unwrap().address,
            Area {
                pointer: 1,
                length: 110
            }
        );
        header[25] = 5;
        assert_eq!(Parts::parse(&header), Err(Errno::EMSGSIZE));
        assert_eq!(Parts::parse(&header[..40]), Err(Errno::EMSGSIZE));
        assert_eq!(Parts::parse(&header[..20]), Err(Errno::EINVAL));
        assert_eq!(pieces(&[0; 31]), Err(Errno::EINVAL));
    }

    #[test]
    fn descriptors_are_taken_along_and_other_control_data_is_refused() {
        let rights_of = |numbers: &[i32]| control(libc::SOL_SOCKET, libc::SCM_RIGHTS, numbers);
        let both = [rights_of(&[4, 5, 6]), rights_of(&[7])].concat();
        assert_eq!(rights(&both), Ok(vec![4, 5, 6, 7]));
        assert_eq!(rights(&[]), Ok(vec![]));
        let credentials = control(libc::SOL_SOCKET, libc::SCM_CREDENTIALS, &[1, 2, 3]);
        assert_eq!(rights(&credentials), Err(Errno::EOPNOTSUPP));
        assert_eq!(rights(&rights_of(&[1; 254])), Err(Errno::EINVAL));
        assert_eq!(
            rights(&[0; 16]),
            Err(Errno::EINVAL),
            "a length of nothing would never end"
        );
        assert_eq!(rights(&both[..17]), Err(Errno::EINVAL));
    }
}
