//! POSIX message queues (mq_overview(7)).

use super::{View, inside};
use crate::sys::mount::{self, Attributes};
use nix::errno::Errno;

impl View {
    /// The message queues of the own IPC namespace (mq_overview(7)); a kernel may have none. Landlock knows them by this
    /// mount only.
    pub(super) fn queues(&mut self) -> nix::Result<()> {
        let attributes = Attributes {
            read_only: false,
            no_devices: true,
        };
        let queues = match mount::new_filesystem(c"mqueue", &[], attributes) {
            Err(Errno::ENODEV) => return Ok(()),
            other => other?,
        };
        let at = inside("/dev/mqueue")?;
        let place = self.place(&at, true)?;
        self.attach(queues, place, &at)
    }
}
