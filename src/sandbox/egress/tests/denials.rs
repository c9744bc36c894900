//! Each denial beside a control that succeeds.

use super::double::{Far, Names, Rig, Table, brisk, tunnel, usual_names};
use crate::base::Port;
use crate::sandbox::egress::{Judge, Limits, Verdict};
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

fn ips(text: &str) -> Vec<IpAddr> {
    text.split(' ').map(|ip| ip.parse().unwrap()).collect()
}

#[tokio::test]
async fn refuses_a_name_that_nothing_grants_and_says_how_to_grant_it() {
    let (rig, far) = (Rig::usual().await, Far::mirror("127.0.0.2").await);
    let port = far.port();
    for request in [
        format!("CONNECT evil.test:{port} HTTP/1.1"),
        format!("GET http://evil.test:{port}/ HTTP/1.1"),
    ] {
        let answer = rig.ask(format!("{request}\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        let body = format!(
            "\r\n\r\npinfold: evil.test:{port} is refused: no rule names it; to grant it: --allow-domain \
             evil.test:{port}, or network.allow_domain in the profile\n"
        );
        assert!(answer.ends_with(&body), "{answer}");
    }
    assert_eq!(far.seen(), 0);
    let control = rig
        .ask(format!(
            "GET http://ok.test:{port}/ HTTP/1.1\r\nConnection: close\r\n\r\n"
        ))
        .await;
    assert!(control.starts_with("HTTP/1.1 200 "), "{control}");
    assert_eq!(far.seen(), 1);
}

#[tokio::test]
async fn reaches_a_loopback_service_by_its_name_and_by_nothing_else() {
    let far = Far::echo("127.0.0.1").await;
    let table = Table {
        services: vec![("model.pinfold", far.at)],
        allow: vec!["127.0.0.1", "sly.test"],
    };
    let names = Names {
        known: vec![("sly.test", ips("127.0.0.1"))],
        ..Names::default()
    };
    let (rig, port) = (Rig::new(table, names).await, far.port());
    for place in [
        format!("127.0.0.1:{port}"),
        format!("sly.test:{port}"),
        format!("[::1]:{port}"),
    ] {
        let answer = rig.ask(format!("CONNECT {place} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    let other = rig.ask("CONNECT model.pinfold:9 HTTP/1.1\r\n\r\n").await;
    assert!(other.starts_with("HTTP/1.1 403 "), "{other}");
    assert_eq!(far.seen(), 0);

    let mut stream = tunnel(&rig, &format!("model.pinfold:{port}")).await;
    stream.write_all(b"hello").await.unwrap();
    assert_eq!(super::double::exactly(&mut stream, 5).await, "hello");
}

#[tokio::test]
async fn an_allowed_name_at_loopback_is_refused_with_the_address_and_the_way() {
    let names = Names {
        known: vec![("sly.test", ips("::1 127.0.0.1"))],
        ..Names::default()
    };
    let rig = Rig::new(
        Table {
            allow: vec!["sly.test"],
            ..Table::default()
        },
        names,
    )
    .await;
    let answer = rig.ask("CONNECT sly.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(
        answer.contains("sly.test:443 is refused: its address ::1 is a loopback address"),
        "{answer}"
    );
    assert!(answer.contains("--service NAME=ADDRESS:443"), "{answer}");
}

/// Takes every address, as the policy takes every public one.
struct Unchecked(Table);

impl Judge for Unchecked {
    fn judge(&self, host: &str, port: Port) -> Verdict {
        self.0.judge(host, port)
    }
    fn address(&self, _: IpAddr) -> Result<(), &'static str> {
        Ok(())
    }
}

#[tokio::test]
async fn the_hosts_own_address_is_refused_even_where_its_kind_is_not() {
    let far = Far::mirror("127.0.0.1").await;
    let other = Far::mirror("127.0.0.2").await;
    let known = vec![("own.test", ips("127.0.0.1")), ("ok.test", ips("127.0.0.2"))];
    let table = Table {
        allow: vec!["own.test", "ok.test"],
        ..Table::default()
    };
    let rig = Rig::new(
        Unchecked(table),
        Names {
            known,
            ..Names::default()
        },
    )
    .await;
    let ask = |name, port| {
        rig.ask(format!(
            "GET http://{name}:{port}/ HTTP/1.1\r\nConnection: close\r\n\r\n"
        ))
    };
    let answer = ask("own.test", far.port()).await;
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("is this host's own"),
        "{answer}"
    );
    assert!(ask("ok.test", other.port()).await.starts_with("HTTP/1.1 200 "));
    assert_eq!((far.seen(), other.seen()), (0, 1));
}

#[tokio::test]
async fn of_mixed_addresses_only_the_checked_one_is_dialled_after_one_look_up() {
    let good = Far::mirror("127.0.0.2").await;
    // The same port on the refused address: were it dialled, this one would see it.
    let trap = tokio::net::TcpListener::bind(("127.0.0.1", good.port())).await.unwrap();
    let names = Names {
        known: vec![("ok.test", ips("127.0.0.1 127.0.0.2 127.0.0.1"))],
        ..Names::default()
    };
    let rig = Rig::new(
        Table {
            allow: vec!["ok.test"],
            ..Table::default()
        },
        names.clone(),
    )
    .await;
    let request = format!(
        "GET http://ok.test:{}/ HTTP/1.1\r\nConnection: close\r\n\r\n",
        good.port()
    );
    assert!(rig.ask(request).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(names.asked.load(Ordering::Relaxed), 1);
    let untouched = tokio::time::timeout(Duration::from_millis(200), trap.accept()).await;
    assert!(untouched.is_err());
    assert_eq!(good.seen(), 1);
}

#[tokio::test]
async fn tells_unresolvable_unreachable_and_late_apart() {
    let allow = vec!["ok.test", "absent.test", "slow.test"];
    let rig = Rig::new(
        Table {
            allow,
            ..Table::default()
        },
        usual_names(),
    )
    .await;
    let free = tokio::net::TcpListener::bind("127.0.0.2:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for (place, status) in [
        ("absent.test:443".to_owned(), "502"),
        (format!("ok.test:{free}"), "502"),
        ("slow.test:443".to_owned(), "504"),
    ] {
        let answer = rig.ask(format!("CONNECT {place} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(
            answer.contains(&format!("{place} is granted but not reached")),
            "{answer}"
        );
    }
}

/// A listener that lets no further connection in, and what keeps it so.
async fn silent(ip: &str, port: u16) -> (tokio::net::TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{ip}:{port}").parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let at = listener.local_addr().unwrap();
    let mut kept = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(at)).await {
        kept.push(stream);
    }
    (listener, kept)
}

#[tokio::test]
async fn a_silent_address_costs_a_moment_when_there_is_another_and_504_when_there_is_none() {
    let good = Far::mirror("127.0.0.2").await;
    let _silent = silent("127.0.0.3", good.port()).await;
    let known = vec![
        ("ok.test", ips("127.0.0.3 127.0.0.2")),
        ("silent.test", ips("127.0.0.3")),
    ];
    let table = Table {
        allow: vec!["ok.test", "silent.test"],
        ..Table::default()
    };
    let rig = Rig::new(
        table,
        Names {
            known,
            ..Names::default()
        },
    )
    .await;
    let ask = async |name: &str| {
        let began = Instant::now();
        let request = format!(
            "GET http://{name}:{}/ HTTP/1.1\r\nConnection: close\r\n\r\n",
            good.port()
        );
        (rig.ask(request).await, began.elapsed())
    };
    let (answer, took) = ask("ok.test").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(took < Duration::from_millis(1000), "{took:?}");
    let (answer, took) = ask("silent.test").await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(took >= brisk().dial, "{took:?}");
}

#[tokio::test]
async fn requests_that_read_in_two_ways_are_answered_400_and_closed() {
    let (rig, far) = (Rig::usual().await, Far::mirror("127.0.0.2").await);
    let port = far.port();
    let good = format!("GET http://ok.test:{port}/ HTTP/1.1\r\n");
    for request in [
        format!("{good}Host: evil.test\r\n\r\n"),
        format!("{good}Host: ok.test:{port}\r\nHost: ok.test:{port}\r\n\r\n"),
        format!("{good}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        format!("{good} folded: x\r\n\r\n"),
        format!("GET http://ok.test:{port}/ HTTP/1.1\n\n"),
        format!("GET http://u@ok.test:{port}/ HTTP/1.1\r\n\r\n"),
        "\u{16}\u{3}\u{1}".to_owned(),
    ] {
        let answer = rig.ask(&request).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request:?}: {answer}");
    }
    let long = format!("{good}X: {}\r\n\r\n", "x".repeat(17_000));
    assert!(rig.ask(long).await.starts_with("HTTP/1.1 431 "));
    assert_eq!(far.seen(), 0);
    let control = rig
        .ask(format!("{good}Host: ok.test:{port}\r\nConnection: close\r\n\r\n"))
        .await;
    assert!(control.starts_with("HTTP/1.1 200 "), "{control}");
}

#[tokio::test]
async fn a_request_without_a_host_is_told_what_this_is() {
    let rig = Rig::usual().await;
    let answer = rig.ask("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.contains("this is Pinfold's broker"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_slow_head_times_out_and_hurts_nobody_else() {
    let far = Far::mirror("127.0.0.2").await;
    let limits = Limits {
        head: Duration::from_millis(600),
        ..brisk()
    };
    let table = Table {
        allow: vec!["ok.test"],
        ..Table::default()
    };
    let rig = Rig::with_limits(table, usual_names(), limits).await;
    let (mut mute, mut slow) = (rig.dial().await, rig.dial().await);
    let began = Instant::now();
    slow.write_all(b"GET http://ok.te").await.unwrap();
    let other = rig
        .ask(format!(
            "GET http://ok.test:{}/ HTTP/1.1\r\nConnection: close\r\n\r\n",
            far.port()
        ))
        .await;
    assert!(other.starts_with("HTTP/1.1 200 "), "{other}");
    assert!(began.elapsed() < Duration::from_millis(500));
    assert!(super::double::all(&mut slow).await.starts_with("HTTP/1.1 408 "));
    let mut nothing = Vec::new();
    mute.read_to_end(&mut nothing).await.unwrap();
    assert!(nothing.is_empty() && began.elapsed() >= limits.head);
}
