//! Traffic of running sandboxes: the broker, and ports joined between a sandbox and another place, all on one thread.

use crate::base::Port;
use crate::sandbox::door::Door;
use crate::sandbox::egress::{Broker, join};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
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
        let work = move || {
            let local = LocalSet::new();
            for route in routes {
                local.spawn_local(serve(route));
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

async fn serve(route: Route) -> io::Result<Infallible> {
    let listener = StdListener::from(route.listener);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let target = match route.target {
        Target::Broker(broker) => match broker.serve(listener).await {},
        target => Arc::new(target),
    };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: give others the time to end.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
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

/// A blocking connection to a port inside, for asking a server whether it is ready.
pub fn connect_inside(door: &Door, port: Port) -> io::Result<StdStream> {
    let socket = door.socket()?;
    let address = nix::sys::socket::SockaddrIn::new(127, 0, 0, 1, port.get());
    let stream = StdStream::from(socket);
    stream.set_nonblocking(false)?;
    nix::sys::socket::connect(std::os::fd::AsRawFd::as_raw_fd(&stream), &address)?;
    Ok(stream)
}

/// A listener on a port of the host's loopback, for a port that a sandbox may publish.
pub fn publish(port: Port) -> io::Result<OwnedFd> {
    StdListener::bind((Ipv4Addr::LOCALHOST, port.get())).map(OwnedFd::from)
}
