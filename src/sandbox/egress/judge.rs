//! What the broker asks the policy.

use crate::base::Port;
use std::net::{IpAddr, SocketAddr};

/// The policy's answer about one name and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A rule grants it: the name is resolved, its addresses are checked, and one of them is dialled.
    Allow {
        /// The rule as written, for the log.
        rule: String,
        /// The normalised name: what is resolved and what the far side is told as `Host`.
        name: String,
    },
    /// A host service granted by name: exactly this address is dialled, loopback or not.
    Service { address: SocketAddr, name: String },
    /// Nothing grants it, or something denies it.
    Refuse { reason: String },
}

/// The decisions of one policy: pure and the same every time, with no state and no rate limit in front.
pub trait Judge: Send + Sync {
    /// Decides a host as the client wrote it (IPv6 literals without brackets) and a port.
    fn judge(&self, host: &str, port: Port) -> Verdict;
    /// Whether an address that an allowed name resolves to may be dialled; the error says what kind of address it is.
    fn address(&self, ip: IpAddr) -> Result<(), &'static str>;
}
