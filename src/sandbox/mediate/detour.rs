//! A port that stands for another one: in reduced mode the broker listens on a port of the machine's loopback that the
//! kernel chose, and everything inside asks for the one that it has in every sandbox.

use super::address::with_port;
use super::destination::Destination;
use crate::base::Port;
use crate::sandbox::egress::Admission;
use nix::errno::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// From the port that is asked for to the one that is connected to, announced to whoever listens there.
#[derive(Debug, Clone)]
pub struct Detour {
    pub asked: Port,
    pub at: Port,
    pub admission: Arc<Admission>,
}

impl Detour {
    /// The address to connect to instead, if this is the one that was asked for.
    pub fn address(&self, destination: &Destination, address: &[u8]) -> Option<Vec<u8>> {
        match destination {
            Destination::Internet { port, .. } if *port == self.asked.get() => Some(with_port(address, self.at.get())),
            _ => None,
        }
    }

    /// Connects from a port that the listener knows by then.
    pub fn connect(&self, socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
        if own_port(socket)? == 0 {
            // The same address, so that the family fits.
            crate::sys::socket::bind(socket, &with_port(address, 0))?;
        }
        self.admission.expect(own_port(socket)?);
        crate::sys::socket::connect(socket, address)
    }
}

fn own_port(socket: &OwnedFd) -> Result<u16, Errno> {
    match Destination::parse(&crate::sys::socket::own_address(socket)?)? {
        Destination::Internet { port, .. } => Ok(port),
        _ => Err(Errno::EAFNOSUPPORT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    #[test]
    fn leads_elsewhere_from_an_announced_port_by_both_families() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = Port::new(listener.local_addr().unwrap().port()).unwrap();
        let detour = Detour {
            asked: Port::new(3129).unwrap(),
            at,
            admission: Arc::default(),
        };
        let port = 3129_u16.to_be_bytes();
        let family = |family: i32| u16::try_from(family).unwrap().to_ne_bytes();
        let v4 = [&family(nix::libc::AF_INET)[..], &port, &[127, 0, 0, 1], &[0; 8]].concat();
        let mapped = [&[0; 10][..], &[255, 255, 127, 0, 0, 1]].concat();
        let v6 = [&family(nix::libc::AF_INET6)[..], &port, &[0; 4], &mapped, &[0; 4]].concat();
        for asked in [v4, v6] {
            let address = detour.address(&Destination::parse(&asked).unwrap(), &asked).unwrap();
            let kind = match i32::from(u16::from_ne_bytes([asked[0], asked[1]])) {
                nix::libc::AF_INET => nix::sys::socket::AddressFamily::Inet,
                _ => nix::sys::socket::AddressFamily::Inet6,
            };
            let none = nix::sys::socket::SockFlag::empty();
            let socket = nix::sys::socket::socket(kind, nix::sys::socket::SockType::Stream, none, None).unwrap();
            assert!(socket.as_raw_fd() > 2);
            detour.connect(&socket, &address).unwrap();
            let (_, from) = listener.accept().unwrap();
            assert!(detour.admission.admits(from.port()));
        }
        let stranger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!detour.admission.admits(stranger.local_addr().unwrap().port()));
        let other = Destination::Internet {
            ip: [127, 0, 0, 1].into(),
            port: 3128,
        };
        assert_eq!(detour.address(&other, &[2, 0, 0, 0]), None);
    }
}
