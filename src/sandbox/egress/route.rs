//! From a host and a port to the addresses that may be dialled for them: decided, resolved once, each address checked.

use super::account::Account;
use super::answer::Answer;
use super::broker::Broker;
use super::dial::{dial, interleaved, is_own};
use super::judge::Verdict;
use super::log::Line;
use crate::base::Port;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The most addresses of one name that are tried.
const MOST_ADDRESSES: usize = 16;

/// An open connection to a place that was granted.
pub struct Far<'a> {
    pub stream: TcpStream,
    /// The normalised name that was decided.
    pub name: String,
    pub account: Account<'a>,
}

/// Decides and connects; the answer says why not. Every decision is in the log before a byte leaves.
pub async fn open<'a>(broker: &'a Broker, host: &str, port: Port) -> Result<Far<'a>, Answer> {
    let mut line = broker.line();
    line.port = Some(port.get());
    line.name = Some(host.to_owned());
    let (addresses, name) = match broker.judge.judge(host, port) {
        Verdict::Refuse { reason } => {
            broker.refuse(line, &reason);
            return Err(Answer::refused(host, port, &reason));
        }
        Verdict::Service { address, name } => {
            line.rule = Some(format!("service {name}"));
            (vec![address], name)
        }
        Verdict::Allow { rule, name } => {
            line.rule = Some(rule);
            (checked(broker, &name, host, port, &line).await?, name)
        }
    };
    line.verdict = "allowed";
    line.name = Some(name.clone());
    line.address = addresses.first().map(ToString::to_string);
    let mut account = Account::open(&broker.log, line);
    match dial(&addresses, broker.limits.stagger, broker.limits.dial).await {
        Ok(stream) => {
            account.reached(stream.peer_addr().ok());
            Ok(Far { stream, name, account })
        }
        Err(error) => {
            account.failed(&error);
            Err(match error.kind() {
                ErrorKind::TimedOut => Answer::late(host, port, "it did not answer in time"),
                _ => Answer::unreachable(host, port, &error.to_string()),
            })
        }
    }
}

/// The addresses of an allowed name that may be dialled; at least one.
async fn checked(broker: &Broker, name: &str, host: &str, port: Port, line: &Line) -> Result<Vec<SocketAddr>, Answer> {
    let fail = |why: &str| {
        broker.log.record(Line {
            verdict: "allowed",
            error: Some(why.to_owned()),
            ..line.clone()
        });
    };
    let found = match timeout(broker.limits.resolve, look_up(broker, name)).await {
        Ok(Ok(found)) if !found.is_empty() => found,
        Ok(result) => {
            let why = result.map_or_else(|error| error.to_string(), |_| "it has no address".to_owned());
            fail(&why);
            return Err(Answer::unreachable(
                host,
                port,
                &format!("its name does not resolve: {why}"),
            ));
        }
        Err(_) => {
            let why = "its name did not resolve in time";
            fail(why);
            return Err(Answer::late(host, port, why));
        }
    };
    let (mut good, mut bad) = (Vec::new(), None);
    for ip in interleaved(&found) {
        match broker.judge.address(ip) {
            // A public address of this host leads to its services as much as the loopback does.
            Ok(()) if is_own(ip) => bad = bad.or(Some((ip, "this host's own"))),
            Ok(()) => good.push(SocketAddr::new(ip, port.get())),
            Err(kind) => bad = bad.or(Some((ip, kind))),
        }
    }
    good.truncate(MOST_ADDRESSES);
    if let (true, Some((ip, kind))) = (good.is_empty(), bad) {
        let reason = format!("its address {ip} is {kind}");
        broker.refuse(
            Line {
                address: Some(ip.to_string()),
                ..line.clone()
            },
            &reason,
        );
        return Err(Answer::refused_address(host, port, &reason));
    }
    Ok(good)
}

/// An address is itself; a name is asked for once.
async fn look_up(broker: &Broker, name: &str) -> io::Result<Vec<IpAddr>> {
    match name.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(ip) => Ok(vec![ip]),
        Err(_) => broker.resolver.resolve(name).await,
    }
}
