//! The policy as the broker's judge.

use super::judge::{Judge, Verdict};
use crate::base::Port;
use crate::policy::NetPolicy;
use crate::policy::net::{Decision, address_allowed, decide};
use std::net::IpAddr;

/// Judges by a frozen policy.
#[derive(Debug)]
pub struct PolicyJudge(NetPolicy);

impl PolicyJudge {
    /// For this policy.
    pub fn new(policy: NetPolicy) -> PolicyJudge {
        PolicyJudge(policy)
    }
}

impl Judge for PolicyJudge {
    fn judge(&self, host: &str, port: Port) -> Verdict {
        match decide(&self.0, host, port) {
            Decision::Allowed { name, rule } => Verdict::Allow { rule, name },
            Decision::Service { name, address } => Verdict::Service { address, name },
            Decision::Refused(refusal) => Verdict::Refuse {
                reason: refusal.to_string(),
            },
        }
    }
    fn address(&self, ip: IpAddr) -> Result<(), &'static str> {
        address_allowed(ip)
    }
}
