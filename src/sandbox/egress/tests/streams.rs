//! Tunnels and joins: whole, prompt, and ended as the two sides end them.

use super::double::{Far, Rig, Table, all, exactly, head, tunnel, usual_names};
use crate::sandbox::egress::join;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn what_a_client_sends_with_its_connect_arrives() {
    let (rig, far) = (Rig::usual().await, Far::echo("127.0.0.2").await);
    let mut stream = rig.dial().await;
    let early = format!("CONNECT ok.test:{} HTTP/1.1\r\nHost: ok.test\r\n\r\nhello", far.port());
    stream.write_all(early.as_bytes()).await.unwrap();
    assert_eq!(
        head(&mut stream).await.unwrap(),
        "HTTP/1.1 200 Connection established\r\n\r\n"
    );
    assert_eq!(exactly(&mut stream, 5).await, "hello");
}

#[tokio::test]
async fn a_half_close_stays_a_half_close() {
    let rig = Rig::usual().await;
    let far = Far::new("127.0.0.2", async |mut stream: TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        stream.write_all(format!("after the end: {text}").as_bytes()).await
    })
    .await;
    let mut stream = tunnel(&rig, &format!("ok.test:{}", far.port())).await;
    stream.write_all(b"hello").await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(all(&mut stream).await, "after the end: hello");
}

#[tokio::test]
async fn a_reset_is_passed_on_as_one() {
    let rig = Rig::usual().await;
    let far = Far::new("127.0.0.2", async |mut stream: TcpStream| {
        stream.write_all(b"half").await?;
        stream.read_exact(&mut [0; 1]).await?;
        stream.set_zero_linger()
    })
    .await;
    let mut stream = tunnel(&rig, &format!("ok.test:{}", far.port())).await;
    assert_eq!(exactly(&mut stream, 4).await, "half");
    stream.write_all(b"x").await.unwrap();
    assert!(stream.read(&mut [0; 1]).await.is_err());
}

#[tokio::test]
async fn an_answer_in_two_segments_is_not_delayed() {
    const ROUNDS: u32 = 40;
    let rig = Rig::usual().await;
    let far = Far::new("127.0.0.2", async |mut stream: TcpStream| {
        loop {
            stream.read_exact(&mut [0; 1]).await?;
            stream.write_all(b"one").await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
            stream.write_all(b"two").await?;
        }
    })
    .await;
    let mut stream = tunnel(&rig, &format!("ok.test:{}", far.port())).await;
    let began = Instant::now();
    for _ in 0..ROUNDS {
        stream.write_all(b"?").await.unwrap();
        assert_eq!(exactly(&mut stream, 6).await, "onetwo");
    }
    // With Nagle's algorithm each round waits 40 ms for an acknowledgement.
    let round = began.elapsed() / ROUNDS;
    assert!(round < Duration::from_millis(20), "{round:?}");
}

#[tokio::test]
async fn megabytes_pass_both_ways_at_once_past_a_slow_reader() {
    const SIZE: usize = 8 << 20;
    let (rig, far) = (Rig::usual().await, Far::echo("127.0.0.2").await);
    let stream = tunnel(&rig, &format!("ok.test:{}", far.port())).await;
    let (mut from, mut to) = stream.into_split();
    let sent: Vec<u8> = (0..SIZE).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let copy = sent.clone();
    tokio::spawn(async move {
        to.write_all(&copy).await.unwrap();
        to.shutdown().await.unwrap();
    });
    // Long enough for every buffer on the way to fill.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut got = Vec::with_capacity(SIZE);
    from.read_to_end(&mut got).await.unwrap();
    assert!(got == sent);
}

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (near, listener.accept().await.unwrap().0)
}

#[tokio::test]
async fn a_join_counts_both_ways() {
    let ((mut left, a), (b, mut right)) = (pair().await, pair().await);
    let joined = tokio::spawn(join(a, b));
    left.write_all(b"hello").await.unwrap();
    left.shutdown().await.unwrap();
    assert_eq!(all(&mut right).await, "hello");
    right.write_all(b"hi").await.unwrap();
    drop(right);
    assert_eq!(all(&mut left).await, "hi");
    assert_eq!(joined.await.unwrap().unwrap(), (5, 2));
}

#[tokio::test]
async fn a_join_that_breaks_breaks_both_sides() {
    let ((mut left, a), (b, right)) = (pair().await, pair().await);
    let joined = tokio::spawn(join(a, b));
    right.set_zero_linger().unwrap();
    drop(right);
    assert!(joined.await.unwrap().is_err());
    assert!(left.read(&mut [0; 1]).await.is_err());
}

#[tokio::test]
async fn the_brokers_end_is_the_end_of_its_connections() {
    let far = Far::echo("127.0.0.2").await;
    let rig = Rig::new(
        Table {
            allow: vec!["ok.test"],
            ..Table::default()
        },
        usual_names(),
    )
    .await;
    let mut stream = tunnel(&rig, &format!("ok.test:{}", far.port())).await;
    rig.broker.abort();
    let end = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut [0; 1]))
        .await
        .unwrap();
    assert!(end.map_or(true, |n| n == 0));
    assert!(rig.log().iter().any(|line| line.get("ms").is_some()));
}
