//! Names to addresses, on the host.

use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The addresses to come, in the order of preference.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Whatever turns a name into addresses; asked once for each request, and never again for the same one.
pub trait Resolve: Send + Sync {
    /// All addresses of a normalised name.
    fn resolve<'a>(&'a self, name: &'a str) -> Addresses<'a>;
}

/// How many look-ups run at once; each holds a thread until the system's resolver gives up, so that a name server that
/// does not answer costs no more threads than these.
const LOOKUPS: usize = 64;

/// The host's own resolver: getaddrinfo, on threads of the runtime's blocking pool.
#[derive(Debug)]
pub struct System(Arc<Semaphore>);

impl Default for System {
    fn default() -> System {
        System(Arc::new(Semaphore::new(LOOKUPS)))
    }
}

impl Resolve for System {
    fn resolve<'a>(&'a self, name: &'a str) -> Addresses<'a> {
        Box::pin(async move {
            let permit = Arc::clone(&self.0).acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let lookup = tokio::task::spawn_blocking(move || {
                // Held by the thread, not by who waits: a caller that gave up has not ended it.
                let _permit = permit;
                Ok((name.as_str(), 0).to_socket_addrs()?.map(|found| found.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}
