//! A process of the host that steps into a sandbox's namespaces: it brings none of the other layers along.

use std::process::{Child, Command};
use std::time::Duration;

pub struct Intruder(Child);

impl Intruder {
    /// Into the sandbox of that first process; why it cannot be, where this user or machine does not let it in.
    pub fn enter(mut nsenter: Command, first: &str) -> Result<Intruder, &'static str> {
        nsenter.args(["-t", first, "-U", "--preserve-credentials", "-p", "-m"]);
        nsenter.args(["--", "/usr/bin/sleep", "20"]);
        let mut intruder = nsenter.spawn().map_err(|_| "nsenter is not here")?;
        std::thread::sleep(Duration::from_millis(200));
        // Its own failure is a status; by a signal it ended with the sandbox, which is what is wanted.
        let ended = intruder.try_wait().unwrap();
        if ended.is_some_and(|status| status.code().is_some()) {
            return Err("this user may not step into the sandbox");
        }
        Ok(Intruder(intruder))
    }
}

impl Drop for Intruder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
