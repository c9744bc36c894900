//! Many clients at once.

use super::double::{Far, Rig, Table, all, brisk, exactly, tunnel, usual_names};
use crate::sandbox::egress::Limits;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

#[tokio::test]
async fn three_hundred_tunnels_are_open_at_once_and_all_work() {
    let (rig, far) = (Rig::usual().await, Far::echo("127.0.0.2").await);
    let place = format!("ok.test:{}", far.port());
    let mut open = Vec::new();
    for _ in 0..300 {
        open.push(tunnel(&rig, &place).await);
    }
    for (number, stream) in open.iter_mut().enumerate() {
        stream.write_all(format!("{number:04}").as_bytes()).await.unwrap();
    }
    for (number, stream) in open.iter_mut().enumerate() {
        assert_eq!(exactly(stream, 4).await, format!("{number:04}"));
    }
}

#[tokio::test]
async fn two_hundred_requests_at_the_same_moment_are_each_answered() {
    let (rig, far) = (Rig::usual().await, Far::mirror("127.0.0.2").await);
    let mut clients = JoinSet::new();
    for number in 0..200 {
        let (at, port) = (rig.at, far.port());
        clients.spawn(async move {
            let mut stream = tokio::net::TcpStream::connect(at).await.unwrap();
            let name = if number % 2 == 0 { "ok.test" } else { "evil.test" };
            let request = format!("GET http://{name}:{port}/{number} HTTP/1.1\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            (number, all(&mut stream).await)
        });
    }
    while let Some(client) = clients.join_next().await {
        let (number, answer) = client.unwrap();
        let wanted = if number % 2 == 0 {
            "HTTP/1.1 200 "
        } else {
            "HTTP/1.1 403 "
        };
        assert!(answer.starts_with(wanted), "{answer}");
        assert!(number % 2 == 1 || answer.contains(&format!("GET /{number} ")));
    }
    assert_eq!(far.seen(), 100);
}

#[tokio::test]
async fn one_too_many_is_told_so_and_the_next_after_an_end_is_served() {
    let far = Far::echo("127.0.0.2").await;
    let table = Table {
        allow: vec!["ok.test"],
        ..Table::default()
    };
    let limits = Limits {
        connections: 2,
        ..brisk()
    };
    let rig = Rig::with_limits(table, usual_names(), limits).await;
    let place = format!("ok.test:{}", far.port());
    let (first, mut second) = (tunnel(&rig, &place).await, tunnel(&rig, &place).await);
    let request = format!("CONNECT {place} HTTP/1.1\r\n\r\n");
    assert!(rig.ask(&request).await.starts_with("HTTP/1.1 503 "));
    drop(first);
    tokio::time::sleep(Duration::from_millis(200)).await;
    tunnel(&rig, &place).await;
    second.write_all(b"still").await.unwrap();
    assert_eq!(exactly(&mut second, 5).await, "still");
}
