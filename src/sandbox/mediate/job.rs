//! From a trapped call to an allowed one that is ready to be made: everything is copied, decided on the copy, and made
//! with the copy.

use super::address::{unix_address, with_ip};
use super::caller::{Caller, Last};
use super::decision::{Act, Kind, Net, Verdict, decide, on_loopback};
use super::destination::Destination;
use super::detour::Detour;
use super::known::{Known, Target};
use super::refusals::{Refusals, What};
use super::request::{Area, HEADER, Parts, Request, SENT_AT, pieces, rights};
use super::view;
use super::writable::Writable;
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::Signal;
use nix::sys::socket::{SockType, getsockopt, sockopt};
use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

/// Bytes of one send that are copied. A stream then takes the rest in a next call, as it may always have to; no Unix
/// datagram can be longer, since a socket's buffer is smaller.
const MOST_DATA: usize = 1 << 20;

/// What decides.
#[derive(Debug)]
pub struct Judge {
    pub net: Net,
    pub detour: Option<Detour>,
    pub known: Known,
    /// Where refusals are told.
    pub refusals: Option<Arc<Refusals>>,
    /// Folders in which a socket file may be made, where the supervisor makes it.
    pub writable: Writable,
    /// The sandbox's root.
    pub root: std::sync::OnceLock<OwnedFd>,
}

/// An allowed call, ready to be made.
#[derive(Debug)]
pub struct Job {
    socket: OwnedFd,
    /// Empty where a message has none.
    address: Vec<u8>,
    /// Keeps a socket file what it is until the call has been made.
    _pinned: Option<OwnedFd>,
    call: Prepared,
}

#[derive(Debug)]
enum Prepared {
    Connect {
        detour: Option<Detour>,
    },
    Bind,
    Listen {
        backlog: i32,
    },
    Send {
        data: Vec<u8>,
        descriptors: Vec<OwnedFd>,
        flags: i32,
        caller: Caller,
        /// Where the caller wants the number of bytes; the call then returns the number of messages.
        sent_to: Option<u64>,
        /// Who gets the signal of a closed stream.
        signalled: Option<OwnedFd>,
    },
}

impl Job {
    /// Makes the call; it may block for as long as the other side likes. What it returned comes back.
    pub fn carry_out(&self) -> Result<i64, Errno> {
        match &self.call {
            Prepared::Connect { detour: None } => crate::sys::socket::connect(&self.socket, &self.address).map(|()| 0),
            Prepared::Connect { detour: Some(detour) } => detour.connect(&self.socket, &self.address).map(|()| 0),
            Prepared::Listen { backlog } => crate::sys::socket::listen(&self.socket, *backlog).map(|()| 0),
            Prepared::Bind => crate::sys::socket::bind(&self.socket, &self.address).map(|()| 0),
            Prepared::Send {
                data,
                descriptors,
                flags,
                caller,
                sent_to,
                signalled,
            } => {
                let numbers: Vec<RawFd> = descriptors.iter().map(|file| file.as_raw_fd()).collect();
                // The signal of a closed pipe would be this process's own.
                let flags = flags | libc::MSG_NOSIGNAL;
                let sent = crate::sys::socket::send_to(&self.socket, &self.address, data, &numbers, flags);
                if let (Err(Errno::EPIPE), Some(thread)) = (sent, signalled) {
                    // A caller that is gone needs no signal.
                    let _ = crate::sys::pidfd::signal(thread, Signal::SIGPIPE);
                }
                let sent = sent?;
                let sent = u32::try_from(sent).map_err(|_| Errno::EMSGSIZE)?;
                match sent_to {
                    Some(at) => caller.write(*at, &sent.to_ne_bytes()).map(|()| 1),
                    None => Ok(sent.into()),
                }
            }
        }
    }
}

impl Judge {
    /// Reads and decides one call. `waits` says whether the caller still does: only then was what was read the caller's.
    pub fn prepare(
        &self,
        request: Request,
        caller: Caller,
        last: &mut Last,
        waits: impl Fn() -> bool,
    ) -> Result<Job, Errno> {
        let raw = Raw::copy(request, &caller, last)?;
        if !waits() {
            return Err(Errno::ESRCH);
        }
        let (mut address, pinned) = match raw.address.as_slice() {
            // A message to the peer that the socket has.
            [] if raw.act == Act::Send => (Vec::new(), None),
            address => self.settle(raw.act, &raw.socket, address, &caller)?,
        };
        let call = match raw.act {
            Act::Connect => Prepared::Connect {
                detour: self.lead_elsewhere(&mut address)?,
            },
            Act::Bind => Prepared::Bind,
            Act::Listen => Prepared::Listen { backlog: raw.flags },
            Act::Send => Prepared::Send {
                data: raw.data,
                descriptors: raw.descriptors,
                flags: raw.flags,
                caller,
                sent_to: raw.sent_to,
                signalled: raw.signalled,
            },
        };
        Ok(Job {
            socket: raw.socket,
            address,
            _pinned: pinned,
            call,
        })
    }

    /// Changes the address to that of the detour, if it is the one that leads there.
    fn lead_elsewhere(&self, address: &mut Vec<u8>) -> Result<Option<Detour>, Errno> {
        let Some(detour) = &self.detour else { return Ok(None) };
        let Some(instead) = detour.address(&Destination::parse(address)?, address) else {
            return Ok(None);
        };
        *address = instead;
        Ok(Some(detour.clone()))
    }

    /// The address to make the call with, and what must stay open until then.
    fn settle(
        &self,
        act: Act,
        socket: &OwnedFd,
        address: &[u8],
        caller: &Caller,
    ) -> Result<(Vec<u8>, Option<OwnedFd>), Errno> {
        let loopback = match act {
            Act::Bind => self.on_loopback(socket, address)?,
            _ => None,
        };
        let address = loopback.as_deref().unwrap_or(address);
        let destination = Destination::parse(address)?;
        let kind = match self.net {
            // Decides nothing there.
            Net::Private { .. } => Kind::Stream,
            Net::Host { .. } => kind_of(socket)?,
        };
        let verdict = decide(&self.net, act, kind, &destination);
        match (verdict, &destination) {
            (Verdict::Refuse(errno), Destination::Internet { ip, port }) => {
                self.note(|| Some(self.refused_port(act, *ip, *port)));
                Err(errno)
            }
            (Verdict::Refuse(errno), _) => Err(errno),
            (Verdict::CarryOut, _) => Ok((address.to_vec(), None)),
            (Verdict::IfWritable, Destination::Path(path)) => {
                let (address, folder) = self.place(path, caller)?;
                Ok((address, Some(folder)))
            }
            (Verdict::IfKnown, Destination::Abstract(name)) => {
                self.known.permit(&Target::Name(name))?;
                Ok((address.to_vec(), None))
            }
            (Verdict::IfKnown, Destination::Path(path)) => {
                let (address, pinned) = self.pin(path, caller).inspect_err(|errno| {
                    self.note(|| refused(*errno, Path::new(OsStr::from_bytes(path)), caller));
                })?;
                Ok((address, Some(pinned)))
            }
            (Verdict::IfKnown | Verdict::IfWritable, _) => Err(Errno::EACCES),
        }
    }

    /// The address of loopback, for a server that asked for all and may have the port.
    fn on_loopback(&self, socket: &OwnedFd, address: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
        let destination = Destination::parse(address)?;
        let only_six = || getsockopt(socket, sockopt::Ipv6V6Only).unwrap_or(false);
        let instead = on_loopback(&self.net, &destination, only_six());
        Ok(instead.map(|ip| with_ip(address, ip)))
    }

    /// The folder in which the caller wants to make a socket file, pinned, and an address that names the file there. The
    /// supervisor makes it, so the grants are looked at here, and not by Landlock.
    fn place(&self, path: &[u8], caller: &Caller) -> Result<(Vec<u8>, OwnedFd), Errno> {
        let at = Path::new(OsStr::from_bytes(path));
        let name = at.file_name().ok_or(Errno::EADDRINUSE)?;
        let folder = match at.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.as_os_str().as_bytes(),
            _ => b".",
        };
        let (folder, object) = view::find(caller, self.root(caller)?, folder)?;
        if object.mode & libc::S_IFMT != libc::S_IFDIR {
            return Err(Errno::ENOTDIR);
        }
        self.writable.permit(&folder)?;
        let by_folder = [
            format!("/proc/self/fd/{}/", folder.as_raw_fd()).as_bytes(),
            name.as_bytes(),
        ]
        .concat();
        Ok((unix_address(&by_folder)?, folder))
    }

    /// Nothing inside can change its root, so that the first caller's is everybody's.
    pub fn root(&self, caller: &Caller) -> Result<&OwnedFd, Errno> {
        if let Some(root) = self.root.get() {
            return Ok(root);
        }
        let root = caller.open("root")?;
        Ok(self.root.get_or_init(|| root))
    }

    /// A refused port, in the words of the log.
    fn refused_port(&self, act: Act, ip: IpAddr, port: u16) -> What {
        match (&self.net, act) {
            (Net::Private { .. }, _) => What::Port(port),
            (Net::Host { .. }, Act::Bind | Act::Listen) => What::Listen(port),
            (Net::Host { .. }, _) if ip.is_loopback() || ip.is_unspecified() => What::Loopback(port),
            (Net::Host { .. }, _) => What::Elsewhere((ip, port).into()),
        }
    }

    fn note(&self, what: impl FnOnce() -> Option<What>) {
        if let (Some(refusals), Some(what)) = (&self.refusals, self.refusals.as_ref().and_then(|_| what())) {
            refusals.note(what);
        }
    }

    /// A socket file as the caller would find it, pinned, and an address that names exactly it.
    fn pin(&self, path: &[u8], caller: &Caller) -> Result<(Vec<u8>, OwnedFd), Errno> {
        let (pinned, object) = view::find(caller, self.root(caller)?, path)?;
        if object.mode & libc::S_IFMT != libc::S_IFSOCK {
            return Err(Errno::ECONNREFUSED);
        }
        let file = self.known.file(caller, &pinned, &object)?;
        self.known.permit(&Target::File(file))?;
        let name = format!("/proc/self/fd/{}", pinned.as_raw_fd());
        Ok((unix_address(name.as_bytes())?, pinned))
    }
}

/// What was not reached, in the words of the log: a socket that is there and is nobody's to use, or one that is not visible.
fn refused(errno: Errno, path: &Path, caller: &Caller) -> Option<What> {
    match errno {
        Errno::EACCES => caller.absolute(path).ok().map(What::Socket),
        Errno::ENOENT if path.is_absolute() => Some(What::Invisible(path.to_owned())),
        _ => None,
    }
}

fn kind_of(socket: &OwnedFd) -> Result<Kind, Errno> {
    Ok(match getsockopt(socket, sockopt::SockType)? {
        SockType::Stream | SockType::SeqPacket => Kind::Stream,
        _ => Kind::Datagram,
    })
}

/// One copy of everything that a call names.
struct Raw {
    act: Act,
    socket: OwnedFd,
    address: Vec<u8>,
    data: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    /// The flags of a send, the backlog of a listen.
    flags: i32,
    sent_to: Option<u64>,
    signalled: Option<OwnedFd>,
}

impl Raw {
    fn copy(request: Request, caller: &Caller, last: &mut Last) -> Result<Raw, Errno> {
        match request {
            Request::Connect { socket, address } => Raw::plain(Act::Connect, socket, address, caller, last),
            Request::Bind { socket, address } => Raw::plain(Act::Bind, socket, address, caller, last),
            Request::Listen { socket, backlog } => {
                let nothing = Area { pointer: 0, length: 0 };
                let mut raw = Raw::plain(Act::Listen, socket, nothing, caller, last)?;
                raw.address = crate::sys::socket::own_address(&raw.socket)?;
                raw.flags = backlog;
                Ok(raw)
            }
            Request::Permissions(_) => Err(Errno::ENOSYS),
            Request::Send {
                socket,
                data,
                flags,
                address,
            } => {
                let mut raw = Raw::plain(Act::Send, socket, address, caller, last)?;
                raw.data = collect(&raw.socket, &[data], caller)?;
                raw.with_flags(flags, caller)
            }
            Request::Message {
                header,
                flags,
                first_of,
                socket,
            } => {
                let parts = Parts::parse(&caller.memory(header, HEADER)?)?;
                let mut raw = Raw::plain(Act::Send, socket, parts.address, caller, last)?;
                let list = pieces(&caller.area(parts.pieces)?)?;
                raw.data = collect(&raw.socket, &list, caller)?;
                let numbers = rights(&caller.area(parts.control)?)?;
                let descriptors = numbers.into_iter().map(|number| caller.descriptor(number, last));
                raw.descriptors = descriptors.collect::<Result<_, _>>()?;
                let sent_to = header.checked_add(SENT_AT).ok_or(Errno::EFAULT)?;
                raw.sent_to = first_of.map(|_| sent_to);
                raw.with_flags(flags, caller)
            }
        }
    }

    fn with_flags(mut self, flags: i32, caller: &Caller) -> Result<Raw, Errno> {
        self.flags = flags;
        if flags & libc::MSG_NOSIGNAL == 0 && getsockopt(&self.socket, sockopt::SockType)? == SockType::Stream {
            self.signalled = Some(caller.thread()?);
        }
        Ok(self)
    }

    fn plain(act: Act, socket: RawFd, address: Area, caller: &Caller, last: &mut Last) -> Result<Raw, Errno> {
        Ok(Raw {
            act,
            address: caller.address(address)?,
            socket: caller.descriptor(socket, last)?,
            data: Vec::new(),
            descriptors: Vec::new(),
            flags: 0,
            sent_to: None,
            signalled: None,
        })
    }
}

/// The bytes of a message from where they lie. What is longer than can be copied is cut for a stream, which may always
/// take less than all, and refused for a datagram.
fn collect(socket: &OwnedFd, pieces: &[Area], caller: &Caller) -> Result<Vec<u8>, Errno> {
    let mut data = Vec::new();
    for piece in pieces {
        let wanted = usize::try_from(piece.length).map_err(|_| Errno::EINVAL)?;
        let room = MOST_DATA - data.len();
        if wanted > room && getsockopt(socket, sockopt::SockType)? != SockType::Stream {
            return Err(Errno::EMSGSIZE);
        }
        data.extend(caller.memory(piece.pointer, wanted.min(room))?);
        if wanted > room {
            break;
        }
    }
    Ok(data)
}

#[cfg(test)]
mod tests;
