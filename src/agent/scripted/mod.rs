//! A model server that follows a script: what the demo and the tests use instead of an account.
//!
//! It speaks the part of the OpenAI chat completions API that agents use, streamed or not, on a listener of the
//! caller, in a thread of its own. A sandboxed agent reaches it through the broker like any provider.

mod configuration;
mod encode;
mod http;
mod script;

pub use configuration::{BASE_URL, MODEL, PROVIDER, configuration};
pub use script::{Call, Script, Step, ToolResult, Transcript};

use http::{Refusal, Request};
use script::Play;
use serde_json::{Value, json};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

/// More connections than this wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// A connection that takes longer than this is dropped.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running model server; it ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    play: Arc<Mutex<Play>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the script on a listener that the caller bound, usually to 127.0.0.1 and port 0.
    pub fn start(listener: TcpListener, script: Script) -> io::Result<Server> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let reactor = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = reactor.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let play = Arc::new(Mutex::new(Play::new(script)));
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&play);
        let thread = std::thread::Builder::new()
            .name("scripted model".to_owned())
            .spawn(move || {
                reactor.block_on(async {
                    tokio::select! {
                        () = accept(listener, shared) => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Server {
            address,
            play,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has happened so far.
    pub fn transcript(&self) -> Transcript {
        lock(&self.play).transcript().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A thread that has ended by itself has nobody to tell, and its own end is no news here.
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A panic of one connection must not take the record away from the others.
fn lock(play: &Mutex<Play>) -> std::sync::MutexGuard<'_, Play> {
    play.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: tokio::net::TcpListener, play: Arc<Mutex<Play>>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let play = Arc::clone(&play);
                tokio::spawn(async move {
                    // An agent that hangs up in the middle is its own business.
                    let _ = tokio::time::timeout(PATIENCE, serve(stream, &play)).await;
                    drop(place);
                });
            }
            // Out of descriptors, for example: the next connection may do better.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// One connection carries one request.
async fn serve(mut stream: TcpStream, play: &Mutex<Play>) -> io::Result<()> {
    match http::read_request(&mut stream).await? {
        Ok(request) => match answer(&request, play) {
            Ok(Body::Json(json)) => http::respond(&mut stream, 200, &json).await,
            Ok(Body::Events(events)) => http::respond_with_events(&mut stream, &events).await,
            Err(refusal) => http::refuse(&mut stream, &refusal).await,
        },
        Err(refusal) => http::refuse(&mut stream, &refusal).await,
    }
}

enum Body {
    Json(Value),
    Events(Vec<Value>),
}

fn answer(request: &Request, play: &Mutex<Play>) -> Result<Body, Refusal> {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/models") => {
            let model = json!({"id": MODEL, "object": "model", "created": 0, "owned_by": "pinfold"});
            Ok(Body::Json(json!({"object": "list", "data": [model]})))
        }
        ("POST", "/v1/chat/completions") => {
            let asked: Value = serde_json::from_slice(&request.body).map_err(|error| Refusal {
                status: 400,
                reason: format!("the body is not JSON: {error}"),
            })?;
            if !asked["messages"].is_array() {
                return Err(Refusal {
                    status: 400,
                    reason: "the body has no list of messages".to_owned(),
                });
            }
            let reply = lock(play).reply(&asked);
            Ok(if asked["stream"] == true {
                Body::Events(encode::events(&reply))
            } else {
                Body::Json(encode::whole(&reply))
            })
        }
        (_, "/v1/models" | "/v1/chat/completions") => Err(Refusal {
            status: 405,
            reason: "this path takes another method".to_owned(),
        }),
        _ => Err(Refusal {
            status: 404,
            reason: "the scripted model has no such path".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests;
