//! Getting one thread of this process out of a call that waits (tgkill(2)).

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Nothing else of ours uses it, and a process that does not care ignores it (signal(7)).
const SIGNAL: Signal = Signal::SIGURG;

extern "C" fn nothing(_: libc::c_int) {}

/// Makes [`thread`] work in this process: the signal interrupts a call and does nothing else.
pub fn prepare() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, so it may run at any moment on any thread.
    unsafe { sigaction(SIGNAL, &action) }.map(drop)
}

/// A call that this thread waits in fails with `EINTR`; one that it makes later is not touched.
pub fn thread(tid: i32) -> nix::Result<()> {
    let own = nix::unistd::getpid().as_raw();
    // SAFETY: plain integers; the id is looked for among this process's own threads only.
    Errno::result(unsafe { libc::syscall(libc::SYS_tgkill, own, tid, SIGNAL as libc::c_int) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{prepare, thread};
    use std::os::fd::AsRawFd as _;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_waiting_thread_is_interrupted_and_goes_on() {
        prepare().unwrap();
        let (told, heard) = channel();
        let waiting = std::thread::spawn(move || {
            let (reader, _writer) = nix::unistd::pipe().unwrap();
            told.send(nix::unistd::gettid().as_raw()).unwrap();
            nix::unistd::read(&reader, &mut [0]).map(|_| reader.as_raw_fd())
        });
        let tid = heard.recv().unwrap();
        while !waiting.is_finished() {
            let _ = thread(tid);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(waiting.join().unwrap(), Err(nix::errno::Errno::EINTR));
    }
}
