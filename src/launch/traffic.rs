//! Traffic of running sandboxes: the broker, and ports joined between a sandbox and another place, all on one thread.

use crate::base::Port;
use crate::sandbox::door::Door;
use crate::sandbox::egress::{Broker, join};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockaddrIn, connect, getsockopt, sockopt};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

/// Where connections to a listener go.
pub enum Target {
    /// Decided by name.
    Broker(Arc<Broker>),
    /// A port of the host's loopback.
    Host(Port),
    /// A port inside a sandbox.
    Inside(Arc<Door>, Port),
}

/// One listener and its target.
pub struct Route {
    pub listener: OwnedFd,
    pub target: Target,
}

/// The thread; dropped, it stops accepting and drops every connection.
pub struct Traffic {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Traffic {
    /// Serves every route until dropped. The forks of the launch are done by now.
    pub fn start(routes: Vec<Route>) -> io::Result<Traffic> {
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let entered = runtime.enter();
        let routes = routes.into_iter().map(Route::listen).collect::<io::Result<Vec<_>>>()?;
        drop(entered);
        let work = move || {
            let local = LocalSet::new();
            for (listener, target) in routes {
                local.spawn_local(serve(listener, target));
            }
            local.block_on(&runtime, async {
                let _ = stopped.await;
            });
            // Look-ups that still hang in the resolver must not hold up the end.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("traffic".into()).spawn(work)?;
        Ok(Traffic {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Route {
    fn listen(self) -> io::Result<(TcpListener, Target)> {
        let listener = StdListener::from(self.listener);
        listener.set_nonblocking(true)?;
        Ok((TcpListener::from_std(listener)?, self.target))
    }
}

async fn serve(listener: TcpListener, target: Target) -> Infallible {
    let target = match target {
        Target::Broker(broker) => match broker.serve(listener).await {},
        target => Arc::new(target),
    };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: give others the time to end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let target = Arc::clone(&target);
        tokio::task::spawn_local(async move {
            if let Ok(other) = reach(&target).await {
                let _ = join(stream, other).await;
            }
        });
    }
}

async fn reach(target: &Target) -> io::Result<TcpStream> {
    match target {
        Target::Broker(_) => Err(io::ErrorKind::Unsupported.into()),
        Target::Host(port) => TcpStream::connect((Ipv4Addr::LOCALHOST, port.get())).await,
        Target::Inside(door, port) => {
            let socket = TcpSocket::from_std_stream(StdStream::from(door.socket()?));
            socket
                .connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port.get())))
                .await
        }
    }
}

/// A blocking connection to a port inside, for asking a server whether it is ready; made within `limit`, since a
/// server that does not accept leaves a connect hanging for minutes.
pub fn connect_inside(door: &Door, port: Port, limit: Duration) -> io::Result<StdStream> {
    let socket = door.socket()?;
    let address = SockaddrIn::new(127, 0, 0, 1, port.get());
    match connect(socket.as_raw_fd(), &address) {
        Ok(()) => {}
        Err(Errno::EINPROGRESS) => finish_connect(&socket, limit)?,
        Err(errno) => return Err(errno.into()),
    }
    let stream = StdStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn finish_connect(socket: &OwnedFd, limit: Duration) -> io::Result<()> {
    let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut polled, limit)? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    match getsockopt(socket, sockopt::SocketError)? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// A listener on a port of the host's loopback, for a port that a sandbox may publish.
pub fn publish(port: Port) -> io::Result<OwnedFd> {
    StdListener::bind((Ipv4Addr::LOCALHOST, port.get())).map(OwnedFd::from)
}
