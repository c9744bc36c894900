use super::*;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"healthy\":true,\"version\":\"1.18.33\"}";
const OK2: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"version\":\"2.0.3\"}";
const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html></html>";
const REFUSED: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
const ABSENT: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
/// Accept, and never answer.
const HELD: &str = "";

const FAST: Patience = Patience {
    total: Duration::from_millis(1500),
    each: Duration::from_millis(150),
    pause: Duration::from_millis(5),
};

/// Answers the nth connection with the nth text, the last one for ever; keeps what was asked.
fn serve(answers: &'static [&'static str]) -> (Probe, impl Fn() -> io::Result<TcpStream>, AskedIn) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let answer = answers[n.min(answers.len() - 1)];
            let mut request = [0; 2048];
            let count = stream.read(&mut request).unwrap();
            let _ = sender.send(String::from_utf8_lossy(&request[..count]).into_owned());
            for piece in answer.as_bytes().chunks(7) {
                let _ = stream.write_all(piece);
            }
            if answer.is_empty() {
                held.push(stream);
            }
        }
    });
    let probe = Probe {
        paths: &["/global/health"],
        major: 1,
        user: "opencode",
        port: Port::new(address.port()).unwrap(),
        password: Secret::fresh(),
    };
    (probe, move || TcpStream::connect(address), asked)
}

type AskedIn = std::sync::mpsc::Receiver<String>;

fn lives() -> Option<String> {
    None
}

#[test]
fn ready_when_it_answers_with_and_refuses_without_the_password() {
    let (probe, connect, asked) = serve(&[OK, REFUSED]);
    let ready = wait_ready(&probe, FAST, connect, lives).unwrap();
    assert_eq!(ready.version.to_string(), "1.18.33");
    let (first, second) = (asked.recv().unwrap(), asked.recv().unwrap());
    let pair = base64(format!("opencode:{}", probe.password.reveal()).as_bytes());
    assert!(
        first.contains(&format!("\r\nAuthorization: Basic {pair}\r\n")),
        "{first}"
    );
    assert!(second.starts_with("GET /global/health HTTP/1.1\r\n"), "{second}");
    assert!(!second.contains("Authorization"), "{second}");
}

#[test]
fn survives_a_held_request_a_web_page_and_an_error_at_the_start() {
    let (probe, connect, _asked) = serve(&[
        HELD,
        HELD,
        HTML,
        "HTTP/1.1 503 x\r\n\r\n",
        "SSH-2.0\r\n\r\n",
        OK,
        HELD,
        OK,
        REFUSED,
    ]);
    wait_ready(&probe, FAST, connect, lives).unwrap();
}

#[test]
fn a_server_that_needs_no_password_is_a_hard_failure() {
    let (probe, connect, asked) = serve(&[OK, OK]);
    assert!(matches!(wait_ready(&probe, FAST, connect, lives), Err(NotReady::Open)));
    assert_eq!(asked.try_iter().count(), 2, "it was asked again after it had failed");
}

#[test]
fn a_server_of_another_major_or_with_another_password_is_a_hard_failure() {
    let (probe, connect, _asked) = serve(&[OK2]);
    assert!(matches!(
        wait_ready(&probe, FAST, connect, lives),
        Err(NotReady::WrongVersion {
            expected: 1,
            found: Version {
                major: 2,
                minor: 0,
                patch: 3
            }
        })
    ));
    let (probe, connect, _asked) = serve(&[REFUSED]);
    assert!(matches!(
        wait_ready(&probe, FAST, connect, lives),
        Err(NotReady::Refuses)
    ));
}

#[test]
fn asks_the_second_path_where_the_first_is_absent() {
    let (mut probe, connect, asked) = serve(&[ABSENT, OK2, REFUSED]);
    (probe.paths, probe.major) = (&["/api/info", "/api/health"], 2);
    wait_ready(&probe, FAST, connect, lives).unwrap();
    let paths: Vec<_> = asked
        .try_iter()
        .map(|text| text.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(paths, ["/api/info", "/api/health", "/api/health"]);
}

#[test]
fn gives_up_in_time_with_the_last_reason() {
    let table: &[(&'static [&'static str], &str)] = &[
        (&[HELD], "it took a request and did not answer it"),
        (&[HTML], r#"it answered with "text/html" instead of JSON"#),
        (&["x"], "what it answered is not HTTP"),
    ];
    let short = Patience {
        total: Duration::from_millis(200),
        ..FAST
    };
    for (answers, expected) in table {
        let (probe, connect, _asked) = serve(answers);
        match wait_ready(&probe, short, connect, lives) {
            Err(NotReady::NeverAnswered { last, .. }) => assert_eq!(last, *expected),
            other => panic!("{answers:?} gave {other:?}"),
        }
    }
}

#[test]
fn notices_at_once_that_the_server_has_ended() {
    let asked = AtomicUsize::new(0);
    let (probe, _, _asked) = serve(&[HELD]);
    let refused = || -> io::Result<TcpStream> { Err(io::ErrorKind::ConnectionRefused.into()) };
    let exited = || (asked.fetch_add(1, Ordering::Relaxed) == 2).then(|| "exit status 1".to_owned());
    match wait_ready(&probe, FAST, refused, exited) {
        Err(NotReady::Exited { how, last }) => {
            assert_eq!((how.as_str(), last.as_str()), ("exit status 1", "nothing listens yet"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn encodes_as_the_standard_does() {
    let table = [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foobar", "Zm9vYmFy"),
        ("\u{7f}?>", "fz8+"),
    ];
    for (text, expected) in table {
        assert_eq!(base64(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn no_message_shows_the_password() {
    let (probe, _, _asked) = serve(&[OK]);
    assert!(!format!("{probe:?}").contains(probe.password.reveal()));
}
