//! Plain HTTP: several requests on one connection, bodies with an end, and what is cut short.

use super::double::{Far, Rig, all, exactly, head};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn get(name: &str, far: &Far) -> String {
    format!(
        "GET http://{name}:{}/path HTTP/1.1\r\nProxy-Connection: keep-alive\r\n\r\n",
        far.port()
    )
}

/// The head and the body of a response with a length.
async fn response(stream: &mut TcpStream) -> (String, String) {
    let head = head(stream).await.unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .unwrap()
        .parse()
        .unwrap();
    (head, exactly(stream, length).await)
}

#[tokio::test]
async fn each_request_of_a_connection_is_decided_on_its_own_host() {
    let (rig, good, other) = (
        Rig::usual().await,
        Far::mirror("127.0.0.2").await,
        Far::mirror("127.0.0.2").await,
    );
    let mut stream = rig.dial().await;
    for (name, far) in [("ok.test", &good), ("also.test", &other), ("OK.test", &good)] {
        stream.write_all(get(name, far).as_bytes()).await.unwrap();
        let (head, body) = response(&mut stream).await;
        assert!(head.contains("Connection: keep-alive"), "{head}");
        let host = name.to_lowercase();
        let wanted = format!(
            "GET /path HTTP/1.1\r\nHost: {host}:{}\r\nConnection: close\r\n\r\n",
            far.port()
        );
        assert_eq!(body, wanted);
    }
    stream.write_all(get("evil.test", &other).as_bytes()).await.unwrap();
    assert!(all(&mut stream).await.starts_with("HTTP/1.1 403 "));
    assert_eq!((good.seen(), other.seen()), (2, 1));
}

#[tokio::test]
async fn what_is_pipelined_behind_a_refusal_is_never_sent_on() {
    let (rig, far) = (Rig::usual().await, Far::mirror("127.0.0.2").await);
    let good = get("ok.test", &far);
    let answer = rig.ask(format!("{good}{}{good}", get("evil.test", &far))).await;
    assert_eq!(
        (
            answer.matches("HTTP/1.1 200 ").count(),
            answer.matches("HTTP/1.1 403 ").count()
        ),
        (1, 1),
        "{answer}"
    );
    assert_eq!(far.seen(), 1);

    let tunnel = format!("CONNECT evil.test:{} HTTP/1.1\r\n\r\n{good}", far.port());
    let answer = rig.ask(tunnel).await;
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && !answer.contains(" 200 "),
        "{answer}"
    );
    assert_eq!(far.seen(), 1);

    let control = rig.ask(format!("{good}{}", good.replace("keep-alive", "close"))).await;
    assert_eq!(control.matches("HTTP/1.1 200 ").count(), 2, "{control}");
    assert_eq!(far.seen(), 3);
}

/// A server that answers with the body it got, whatever its framing, as bytes on the wire.
async fn wire() -> Far {
    Far::new("127.0.0.2", async |mut stream: TcpStream| {
        let text = head(&mut stream).await?;
        let mut body = Vec::new();
        match text.lines().find_map(|line| line.strip_prefix("Content-Length: ")) {
            Some(length) => body.resize(length.parse().unwrap(), 0),
            None => body.resize("3\r\nabc\r\n0\r\n\r\n".len(), 0),
        }
        stream.read_exact(&mut body).await?;
        let answer = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.write_all(b"\r\n0\r\n\r\n").await
    })
    .await
}

#[tokio::test]
async fn bodies_end_where_they_end_and_the_next_request_follows() {
    let (rig, far) = (Rig::usual().await, wire().await);
    let place = format!("POST http://ok.test:{}/ HTTP/1.1\r\n", far.port());
    let chunks = "3\r\nabc\r\n0\r\n\r\n";
    let mut stream = rig.dial().await;
    for _ in 0..3 {
        // The body comes with its head, and the next head comes with the body.
        let both = format!("{place}Transfer-Encoding: chunked\r\n\r\n{chunks}{place}Content-Length: 5\r\n\r\n");
        stream.write_all(both.as_bytes()).await.unwrap();
        assert!(
            head(&mut stream)
                .await
                .unwrap()
                .contains("Transfer-Encoding: chunked\r\n")
        );
        assert_eq!(
            exactly(&mut stream, 3 + 13 + 7).await,
            format!("d\r\n{chunks}\r\n0\r\n\r\n")
        );
        stream.write_all(b"hello").await.unwrap();
        head(&mut stream).await.unwrap();
        assert_eq!(exactly(&mut stream, 3 + 5 + 7).await, "5\r\nhello\r\n0\r\n\r\n");
    }
    assert_eq!(far.seen(), 6);
}

#[tokio::test]
async fn chunks_with_two_readings_are_not_sent_on() {
    let (rig, far) = (Rig::usual().await, wire().await);
    let place = format!(
        "POST http://ok.test:{}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        far.port()
    );
    let answer = rig.ask(format!("{place}3\nabc\r\n0\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[tokio::test]
async fn a_body_of_a_megabyte_goes_both_ways_whole() {
    let (rig, far) = (Rig::usual().await, wire().await);
    let body: String = (0..1 << 20)
        .map(|n| char::from(b'a' + u8::try_from(n % 23).unwrap()))
        .collect();
    let head = format!(
        "POST http://ok.test:{}/ HTTP/1.1\r\nContent-Length: {}\r\n",
        far.port(),
        body.len()
    );
    let mut stream = rig.dial().await;
    stream
        .write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes())
        .await
        .unwrap();
    let answer = all(&mut stream).await;
    assert!(answer.contains(&body));
}

#[tokio::test]
async fn an_answer_that_ends_with_the_connection_ends_the_clients_too() {
    let rig = Rig::usual().await;
    let far = Far::answering("127.0.0.2", "HTTP/1.0 200 OK\r\n\r\nuntil the end").await;
    let answer = rig.ask(get("ok.test", &far)).await;
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end");
}

#[tokio::test]
async fn an_answer_that_is_cut_short_is_a_reset_and_none_at_all_is_502() {
    let rig = Rig::usual().await;
    let short = Far::answering("127.0.0.2", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
    let mut stream = rig.dial().await;
    stream.write_all(get("ok.test", &short).as_bytes()).await.unwrap();
    let mut text = Vec::new();
    assert!(stream.read_to_end(&mut text).await.is_err());
    let none = Far::answering("127.0.0.2", "").await;
    assert!(rig.ask(get("ok.test", &none)).await.starts_with("HTTP/1.1 502 "));
    for odd in [
        "HTTP/1.1 101 Switching\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ] {
        let far = Far::answering("127.0.0.2", odd).await;
        assert!(
            rig.ask(get("ok.test", &far)).await.starts_with("HTTP/1.1 502 "),
            "{odd}"
        );
    }
    let whole = Far::answering("127.0.0.2", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhalf").await;
    let answer = rig.ask(get("ok.test", &whole).replace("keep-alive", "close")).await;
    assert!(answer.ends_with("half"), "{answer}");
}

#[tokio::test]
async fn an_early_answer_reaches_a_client_that_is_still_sending() {
    let rig = Rig::usual().await;
    let far = Far::answering("127.0.0.2", "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await;
    let head = format!(
        "POST http://ok.test:{}/ HTTP/1.1\r\nContent-Length: 100000\r\n\r\nsome",
        far.port()
    );
    let mut stream = rig.dial().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    assert!(all(&mut stream).await.starts_with("HTTP/1.1 413 "));
}

#[tokio::test]
async fn interim_answers_and_answers_without_a_body_pass() {
    let rig = Rig::usual().await;
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
    let far = Far::answering("127.0.0.2", interim).await;
    let head_only = Far::answering("127.0.0.2", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").await;
    let mut stream = rig.dial().await;
    for _ in 0..2 {
        stream.write_all(get("ok.test", &far).as_bytes()).await.unwrap();
        assert_eq!(head(&mut stream).await.unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(
            head(&mut stream).await.unwrap(),
            "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n"
        );
        stream
            .write_all(get("ok.test", &head_only).replace("GET", "HEAD").as_bytes())
            .await
            .unwrap();
        assert!(head(&mut stream).await.unwrap().contains("Content-Length: 7\r\n"));
    }
}

#[tokio::test]
async fn an_old_client_is_answered_in_its_version_and_closed() {
    let (rig, far) = (Rig::usual().await, Far::mirror("127.0.0.2").await);
    let answer = rig.ask(get("ok.test", &far).replace("HTTP/1.1", "HTTP/1.0")).await;
    assert!(
        answer.contains("Connection: close\r\n\r\nGET /path HTTP/1.0\r\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_client_that_gives_up_is_noticed_by_the_far_side() {
    let rig = Rig::usual().await;
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let far = Far::new("127.0.0.2", move |mut stream| {
        let tell = tell.lock().unwrap().take();
        async move {
            head(&mut stream).await?;
            // As a model server waits: it answers nothing yet, and watches.
            let end = stream.read(&mut [0; 1]).await;
            tell.unwrap().send(end.is_ok_and(|n| n == 0)).unwrap();
            Ok(())
        }
    })
    .await;
    let mut stream = rig.dial().await;
    stream.write_all(get("ok.test", &far).as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(stream);
    let ended = tokio::time::timeout(Duration::from_secs(5), told)
        .await
        .unwrap()
        .unwrap();
    assert!(ended);
}

#[tokio::test]
async fn a_client_that_only_ends_its_side_still_gets_its_answer() {
    let (rig, far) = (Rig::usual().await, Far::mirror("127.0.0.2").await);
    let mut stream = rig.dial().await;
    stream.write_all(get("ok.test", &far).as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(all(&mut stream).await.starts_with("HTTP/1.1 200 "));
}
