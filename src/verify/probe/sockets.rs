//! Attempts to reach something through a socket.

use super::{Met, Tried};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, UnixAddr, connect, getsockname, socket,
};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);

type Found = (Tried, String);

fn io(error: &std::io::Error) -> Found {
    (Tried::from_io(error), error.to_string())
}

fn connect_any(address: &UnixAddr) -> Met {
    let mut last = Errno::EPROTOTYPE;
    for kind in [SockType::Stream, SockType::SeqPacket, SockType::Datagram] {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let end = socket(AddressFamily::Unix, kind, flags, None)?;
        match connect(end.as_raw_fd(), address) {
            Ok(()) => return Ok(Tried::Done),
            Err(Errno::EPROTOTYPE) => {}
            Err(errno) => last = errno,
        }
        if last != Errno::EPROTOTYPE {
            break;
        }
    }
    Err(last)
}

/// Connects to a socket with a path, of whichever type it is.
pub fn connect_unix(path: &OsStr) -> Found {
    super::plain(UnixAddr::new(path).and_then(|address| connect_any(&address)))
}

/// Sends an empty datagram to a socket with a path, without a connect.
pub fn unix_datagram(path: &OsStr) -> Found {
    let sent = std::os::unix::net::UnixDatagram::unbound().and_then(|end| end.send_to(&[], path));
    match sent {
        Ok(_) => (Tried::Done, String::new()),
        Err(error) => io(&error),
    }
}

/// The same from one end of a pair, whose peer an address overrides.
pub fn unix_datagram_pair(path: &OsStr) -> Found {
    let sent = std::os::unix::net::UnixDatagram::pair().and_then(|(end, _peer)| end.send_to(&[], path));
    match sent {
        Ok(_) => (Tried::Done, String::new()),
        Err(error) => io(&error),
    }
}

/// Connects to a socket in the abstract namespace.
pub fn connect_abstract(name: &OsStr) -> Found {
    super::plain(UnixAddr::new_abstract(name.as_bytes()).and_then(|address| connect_any(&address)))
}

/// An address as written; names are not looked up.
fn address(text: &OsStr) -> Result<SocketAddr, Found> {
    let parsed = text.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| (Tried::Error(Errno::EINVAL as i32), "not an address and port".into()))
}

/// Connects over TCP.
pub fn connect_tcp(text: &OsStr) -> Found {
    match address(text).map(|address| TcpStream::connect_timeout(&address, PATIENCE)) {
        Ok(Ok(_)) => (Tried::Done, String::new()),
        Ok(Err(error)) => io(&error),
        Err(found) => found,
    }
}

/// Connects by a first send (tcp(7), MSG_FASTOPEN): no connect(2) is called.
pub fn fast_open(text: &OsStr) -> Found {
    let send = |address: SocketAddr| -> Met {
        let family = if address.is_ipv4() {
            AddressFamily::Inet
        } else {
            AddressFamily::Inet6
        };
        let end = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        let patience = nix::sys::time::TimeVal::new(2, 0);
        nix::sys::socket::setsockopt(&end, nix::sys::socket::sockopt::SendTimeout, &patience)?;
        let address = nix::sys::socket::SockaddrStorage::from(address);
        let flags = crate::sys::probe::FAST_OPEN | MsgFlags::MSG_NOSIGNAL;
        nix::sys::socket::sendto(end.as_raw_fd(), b"pinfold", &address, flags).map(|_| Tried::Done)
    };
    match address(text).map(send) {
        Ok(met) => super::plain(met),
        Err(found) => found,
    }
}

/// Sends a datagram and waits for the answer: what leaves and is never answered is `TimedOut`.
pub fn udp(text: &OsStr) -> Found {
    let exchange = |address: SocketAddr| {
        let any: SocketAddr = if address.is_ipv4() {
            ([0; 4], 0).into()
        } else {
            ([0_u16; 8], 0).into()
        };
        let end = UdpSocket::bind(any)?;
        end.set_read_timeout(Some(PATIENCE))?;
        end.connect(address)?;
        end.send(b"pinfold")?;
        end.recv(&mut [0; 64])
    };
    match address(text).map(exchange) {
        Ok(Ok(_)) => (Tried::Done, String::new()),
        Ok(Err(error)) => io(&error),
        Err(found) => found,
    }
}

/// Asks the proxy that the environment names for a tunnel. Only 403 is a denial; 502 and the like are errors.
pub fn http_proxy(target: &OsStr) -> Found {
    match proxy() {
        Some(proxy) => tunnel(&proxy, target),
        None => (Tried::Absent, "no proxy in the environment".into()),
    }
}

/// Connects to a name as programs do: by the proxy that the environment names, or else directly.
pub fn reach(target: &OsStr) -> Found {
    reach_by(proxy().as_deref(), target)
}

pub(super) fn reach_by(proxy: Option<&OsStr>, target: &OsStr) -> Found {
    if let Some(proxy) = proxy {
        return tunnel(proxy, target);
    }
    let direct = |target: &str| {
        let mut last = std::io::ErrorKind::NotFound.into();
        for address in target.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(last)
    };
    match direct(&target.to_string_lossy()) {
        Ok(()) => (Tried::Done, String::new()),
        Err(error) => io(&error),
    }
}

fn proxy() -> Option<std::ffi::OsString> {
    ["HTTPS_PROXY", "https_proxy"].iter().find_map(std::env::var_os)
}

fn tunnel(proxy: &OsStr, target: &OsStr) -> Found {
    let proxy = proxy.to_string_lossy();
    let place = proxy.trim_start_matches("http://").trim_end_matches('/');
    match ask(place, &target.to_string_lossy()) {
        Ok(line) => (sort(&line), line),
        Err(error) => io(&error),
    }
}

fn ask(place: &str, target: &str) -> std::io::Result<String> {
    let address = place.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

/// What the first line of the answer says.
pub(super) fn sort(line: &str) -> Tried {
    match line.split(' ').nth(1) {
        Some("200") => Tried::Done,
        Some("403") => Tried::Denied(Errno::EACCES as i32),
        _ => Tried::Error(Errno::EPROTO as i32),
    }
}

fn opens(family: AddressFamily, kind: SockType, protocol: Option<SockProtocol>) -> Met {
    socket(family, kind, SockFlag::SOCK_CLOEXEC, protocol).map(|_| Tried::Done)
}

pub fn raw() -> Met {
    opens(AddressFamily::Inet, SockType::Raw, Some(SockProtocol::Icmp))
}

pub fn vsock() -> Met {
    opens(AddressFamily::Vsock, SockType::Stream, None)
}

/// A family of netlink other than routes.
pub fn netlink() -> Met {
    opens(
        AddressFamily::Netlink,
        SockType::Raw,
        Some(SockProtocol::NetlinkKObjectUEvent),
    )
}

pub fn packet() -> Met {
    opens(AddressFamily::Packet, SockType::Raw, None)
}

/// Listens on an abstract name of one's own and connects to it, as programs that run once do: must work inside.
pub fn own_abstract() -> Met {
    let flags = SockFlag::SOCK_CLOEXEC;
    let listener = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    nix::sys::socket::bind(listener.as_raw_fd(), &UnixAddr::new_unnamed())?;
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(1)?)?;
    let address: UnixAddr = getsockname(listener.as_raw_fd())?;
    connect_any(&address)
}

/// Listens on one's own loopback and connects to it: must work inside.
pub fn own_tcp() -> Met {
    listen_and_connect(0)
}

/// The same on a certain port: the one that is joined to another sandbox answers to the supervisor alone.
pub fn own_port(text: &OsStr) -> Met {
    let port = text.to_str().and_then(|text| text.parse().ok());
    listen_and_connect(port.ok_or(Errno::EINVAL)?)
}

fn listen_and_connect(port: u16) -> Met {
    let errno = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or_default());
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(errno)?;
    let address = listener.local_addr().map_err(errno)?;
    TcpStream::connect_timeout(&address, PATIENCE)
        .map(|_| Tried::Done)
        .map_err(errno)
}
