//! Connecting to one of the checked addresses, and to nothing else.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Tries the addresses in order, the next one when one fails or is silent for `stagger`, and keeps the first that
/// answers (RFC 8305). `TimedOut` after `limit`; else the last address's error.
pub async fn dial(addresses: &[SocketAddr], stagger: Duration, limit: Duration) -> io::Result<TcpStream> {
    timeout(limit, race(addresses, stagger))
        .await
        .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

async fn race(addresses: &[SocketAddr], stagger: Duration) -> io::Result<TcpStream> {
    // Dropped with the race, and every try that lost with it.
    let mut tries = JoinSet::new();
    let mut waiting = addresses.iter().copied();
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    loop {
        if let Some(address) = waiting.next() {
            tries.spawn(reach(address));
        } else if tries.is_empty() {
            return Err(last);
        }
        tokio::select! {
            Some(tried) = tries.join_next() => match tried {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                // A try that panicked counts as one that failed.
                Err(_) => {}
            },
            () = sleep(stagger), if waiting.len() > 0 => {}
        }
    }
}

async fn reach(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // There is no idle timeout; a far side that vanished is noticed this way.
    socket.set_keepalive(true)?;
    socket.set_nodelay(true)?;
    socket.connect(address).await
}

/// Whether this address is the host itself, under whatever address an interface has: the source that the kernel picks for
/// it is then the address itself. Asked of an unsent datagram socket, so nothing leaves.
pub fn is_own(ip: IpAddr) -> bool {
    let any: IpAddr = if ip.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let source = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((ip, 9))?;
        socket.local_addr()
    };
    source().is_ok_and(|source: SocketAddr| source.ip() == ip)
}

/// The same addresses, each once, the two families taking turns: one that is dead costs one `stagger`, not many.
pub fn interleaved(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let Some(first) = addresses.first() else {
        return Vec::new();
    };
    let (mut ahead, mut behind): (Vec<_>, Vec<_>) = addresses.iter().partition(|ip| ip.is_ipv4() == first.is_ipv4());
    ahead.reverse();
    behind.reverse();
    let mut order: Vec<IpAddr> = Vec::new();
    while !ahead.is_empty() || !behind.is_empty() {
        for ip in [ahead.pop(), behind.pop()].into_iter().flatten() {
            if !order.contains(&ip) {
                order.push(ip);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::{interleaved, is_own};
    use std::net::IpAddr;

    #[test]
    fn knows_the_hosts_own_address_from_another() {
        assert!(is_own([127, 0, 0, 1].into()));
        assert!(!is_own([127, 0, 0, 2].into()));
        assert!(!is_own([192, 0, 2, 1].into()));
    }

    #[test]
    fn families_take_turns_and_none_is_lost() {
        let ips = |text: &str| {
            text.split(' ')
                .filter(|t| !t.is_empty())
                .map(|t| t.parse().unwrap())
                .collect::<Vec<IpAddr>>()
        };
        for (given, wanted) in [
            ("", ""),
            ("::1 ::2 1.1.1.1 ::1 1.1.1.2 1.1.1.3", "::1 1.1.1.1 ::2 1.1.1.2 1.1.1.3"),
            ("1.1.1.1 1.1.1.2", "1.1.1.1 1.1.1.2"),
        ] {
            assert_eq!(interleaved(&ips(given)), ips(wanted));
        }
    }
}
