//! Who may speak to a broker that listens on the machine's own loopback: connections that the mediator made for the
//! sandbox, known by the port that they come from. Any other program on the machine is turned away.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a connection that was announced may take to arrive; a port is not kept for a later owner.
const LONGEST: Duration = Duration::from_secs(10);

/// The ports of connections that are on their way.
#[derive(Debug, Default)]
pub struct Admission {
    expected: Mutex<HashMap<u16, Instant>>,
}

impl Admission {
    /// A connection from this local port is about to be made.
    pub fn expect(&self, port: u16) {
        let now = Instant::now();
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.retain(|_, since| now.duration_since(*since) < LONGEST);
        expected.insert(port, now);
    }

    /// Whether a connection from this port was announced; it is then used up.
    pub fn admits(&self, port: u16) -> bool {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.remove(&port).is_some_and(|since| since.elapsed() < LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::Admission;

    #[test]
    fn a_port_is_admitted_once_and_only_if_it_was_announced() {
        let admission = Admission::default();
        admission.expect(40_001);
        assert!(!admission.admits(40_002));
        assert!(admission.admits(40_001));
        assert!(!admission.admits(40_001));
    }
}
