use super::{Act, Judge, Kind, Known, Net, Verdict, decide};
use crate::base::Port;
use crate::sandbox::mediate::caller::{Caller, Last};
use crate::sandbox::mediate::destination::Destination;
use crate::sandbox::mediate::known::Inside;
use crate::sandbox::mediate::request::{Area, Request};
use nix::errno::Errno;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

const CLOSED: u16 = 20_000;
const OPEN: u16 = 20_001;
const TRIES: u32 = 100_000;

fn judge() -> Judge {
    let diag = crate::sandbox::layers::network::diag().unwrap();
    Judge {
        detour: None,
        refusals: None,
        writable: Default::default(),
        net: Net::Private {
            closed: vec![Port::new(CLOSED).unwrap()],
        },
        known: Known::new(&[], Inside::Namespace, diag).unwrap(),
        root: OnceLock::new(),
    }
}

/// The first eight bytes of a sockaddr_in of loopback.
fn loopback(port: u16) -> u64 {
    let [high, low] = port.to_be_bytes();
    let [a, b] = 2_u16.to_ne_bytes();
    u64::from_ne_bytes([a, b, high, low, 127, 0, 0, 1])
}

/// Another thread changes the port between the open and the closed one all the time; what is made has the port that was
/// decided on. `copy` says what is taken for the call: the copy, or, as the control, what stands there by then.
fn raced(copy: impl Fn(&[u8], &[AtomicU64; 2]) -> Vec<u8>) -> (u32, u32, u32) {
    let shared = [AtomicU64::new(loopback(OPEN)), AtomicU64::new(0)];
    let (judge, socket, over) = (
        judge(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
        AtomicBool::new(false),
    );
    let pointer = shared.as_ptr().expose_provenance() as u64;
    let request = Request::Connect {
        socket: socket.as_raw_fd(),
        address: Area { pointer, length: 16 },
    };
    let tid = nix::unistd::gettid().as_raw();
    let (mut made, mut refused, mut wrong) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                shared[0].store(loopback(CLOSED), SeqCst);
                shared[0].store(loopback(OPEN), SeqCst);
            }
        });
        let mut last = Last::default();
        for _ in 0..TRIES {
            match judge.prepare(request, Caller::new(tid), &mut last, || true) {
                Ok(job) => {
                    made += 1;
                    let used = Destination::parse(&copy(&job.address, &shared)).unwrap();
                    let verdict = decide(&judge.net, Act::Connect, Kind::Stream, &used);
                    wrong += u32::from(verdict != Verdict::CarryOut);
                }
                Err(Errno::EACCES) => refused += 1,
                Err(errno) => panic!("{errno}"),
            }
        }
        over.store(true, SeqCst);
    });
    (made, refused, wrong)
}

#[test]
fn a_port_that_another_thread_changes_is_the_one_that_was_decided_on() {
    let (made, refused, wrong) = raced(|copied, _| copied.to_vec());
    assert_eq!(wrong, 0, "of {made}");
    assert!(made > 100 && refused > 100, "no race: {made} made, {refused} refused");
    let read_again = |_: &[u8], shared: &[AtomicU64; 2]| {
        [
            shared[0].load(SeqCst).to_ne_bytes(),
            shared[1].load(SeqCst).to_ne_bytes(),
        ]
        .concat()
    };
    let (made, _, wrong) = raced(read_again);
    assert!(wrong > 0, "the control lost no race in {made}");
}

#[test]
fn a_caller_that_no_longer_waits_gets_nothing_made() {
    let address = [loopback(OPEN), 0];
    let request = Request::Connect {
        socket: 0,
        address: Area {
            pointer: address.as_ptr().expose_provenance() as u64,
            length: 16,
        },
    };
    let caller = || Caller::new(nix::unistd::gettid().as_raw());
    let prepare = |waits: fn() -> bool| judge().prepare(request, caller(), &mut Last::default(), waits);
    assert_eq!(prepare(|| false).unwrap_err(), Errno::ESRCH);
    assert!(prepare(|| true).is_ok());
}
