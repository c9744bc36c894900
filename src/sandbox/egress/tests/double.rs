//! Stand-ins for the policy, the resolver and the far side, and a client that speaks bytes.

use crate::base::{LaunchId, Port};
use crate::sandbox::egress::{Addresses, Broker, Judge, Limits, Log, Resolve, Verdict};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Grants exactly the names it lists, whatever the port, and the services with their port.
#[derive(Default)]
pub struct Table {
    pub allow: Vec<&'static str>,
    pub services: Vec<(&'static str, SocketAddr)>,
}

impl Judge for Table {
    fn judge(&self, host: &str, port: Port) -> Verdict {
        let name = host.to_ascii_lowercase();
        let service = self
            .services
            .iter()
            .find(|(n, at)| *n == name && at.port() == port.get());
        if let Some((_, address)) = service {
            return Verdict::Service {
                address: *address,
                name,
            };
        }
        if self.allow.contains(&name.as_str()) {
            return Verdict::Allow {
                rule: name.clone(),
                name,
            };
        }
        Verdict::Refuse {
            reason: "no rule names it".into(),
        }
    }
    fn address(&self, ip: IpAddr) -> Result<(), &'static str> {
        let loopback = ip == IpAddr::from([127, 0, 0, 1]) || ip.is_ipv6();
        if loopback { Err("a loopback address") } else { Ok(()) }
    }
}

/// Knows these names and counts the questions; `slow.test` never resolves.
#[derive(Clone, Default)]
pub struct Names {
    pub known: Vec<(&'static str, Vec<IpAddr>)>,
    pub asked: Arc<AtomicUsize>,
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> Addresses<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if name == "slow.test" {
                return std::future::pending().await;
            }
            let found = self.known.iter().find(|(n, _)| *n == name);
            found.map(|(_, ips)| ips.clone()).ok_or(ErrorKind::NotFound.into())
        })
    }
}

/// Short enough for tests, long enough for a busy machine.
pub fn brisk() -> Limits {
    Limits {
        head: Duration::from_millis(1500),
        resolve: Duration::from_millis(500),
        dial: Duration::from_millis(1500),
        stagger: Duration::from_millis(100),
        ..Limits::default()
    }
}

/// A running broker.
pub struct Rig {
    pub at: SocketAddr,
    pub broker: JoinHandle<()>,
    dir: TempDir,
}

impl Rig {
    pub async fn new(table: impl Judge + 'static, names: Names) -> Rig {
        Rig::with_limits(table, names, brisk()).await
    }
    pub async fn with_limits(table: impl Judge + 'static, names: Names, limits: Limits) -> Rig {
        raise_open_files();
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path().join("egress.log")).unwrap();
        let broker = Broker::new(LaunchId::fresh(), table, log)
            .with_resolver(names)
            .with_limits(limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let broker = tokio::spawn(async move { _ = Arc::new(broker).serve(listener).await });
        Rig { at, broker, dir }
    }
    /// `ok.test` and `also.test` at 127.0.0.2, `evil.test` there too but not granted.
    pub async fn usual() -> Rig {
        Rig::new(
            Table {
                allow: vec!["ok.test", "also.test"],
                ..Table::default()
            },
            usual_names(),
        )
        .await
    }
    pub async fn dial(&self) -> TcpStream {
        TcpStream::connect(self.at).await.unwrap()
    }
    /// Sends this and returns everything until the broker closes.
    pub async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.dial().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        all(&mut stream).await
    }
    pub fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("egress.log")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// As the process that runs a broker does: the usual soft limit of 1024 is five hundred connections of two descriptors,
/// and tests run side by side.
fn raise_open_files() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(16_384), hard).unwrap();
}

pub fn usual_names() -> Names {
    let public: IpAddr = [127, 0, 0, 2].into();
    let names = ["ok.test", "also.test", "evil.test"];
    Names {
        known: names.map(|name| (name, vec![public])).to_vec(),
        ..Names::default()
    }
}

/// Everything until the end.
pub async fn all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut text));
    read.await.expect("the connection stays open").unwrap();
    String::from_utf8(text).unwrap()
}

/// A head, its empty line included.
pub async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(text).unwrap())
}

/// Exactly this many bytes.
pub async fn exactly(stream: &mut TcpStream, count: usize) -> String {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Opens a tunnel and checks that it is open.
pub async fn tunnel(rig: &Rig, place: &str) -> TcpStream {
    let mut stream = rig.dial().await;
    stream.set_nodelay(true).unwrap();
    stream
        .write_all(format!("CONNECT {place} HTTP/1.1\r\n\r\n").as_bytes())
        .await
        .unwrap();
    assert!(head(&mut stream).await.unwrap().starts_with("HTTP/1.1 200 "));
    stream
}

/// A far side that counts its connections.
pub struct Far {
    pub at: SocketAddr,
    pub count: Arc<AtomicUsize>,
}

impl Far {
    /// Listens on this address and gives each connection to `serve`.
    pub async fn new<F>(ip: &str, serve: impl Fn(TcpStream) -> F + Send + 'static) -> Far
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream));
            }
        });
        Far { at, count }
    }
    /// Sends everything back until the end.
    pub async fn echo(ip: &str) -> Far {
        Far::new(ip, async |mut stream: TcpStream| {
            let (mut from, mut to) = stream.split();
            tokio::io::copy(&mut from, &mut to).await?;
            to.shutdown().await
        })
        .await
    }
    /// Answers one request with this and closes.
    pub async fn answering(ip: &str, answer: &'static str) -> Far {
        Far::new(ip, move |mut stream| async move {
            head(&mut stream).await?;
            stream.write_all(answer.as_bytes()).await
        })
        .await
    }
    /// Answers one request with its head as the body.
    pub async fn mirror(ip: &str) -> Far {
        Far::new(ip, async |mut stream: TcpStream| {
            let text = head(&mut stream).await?;
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
            stream.write_all(answer.as_bytes()).await
        })
        .await
    }
    pub fn port(&self) -> u16 {
        self.at.port()
    }
    pub fn seen(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
