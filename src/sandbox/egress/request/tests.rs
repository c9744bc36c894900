use super::{Request, Target};
use crate::base::Port;
use crate::sandbox::egress::authority::AuthorityError;
use crate::sandbox::egress::body::{Body, Chunks};
use crate::sandbox::egress::head::{self, Malformed};
use crate::sandbox::egress::rewrite;
use proptest::prelude::{any, proptest};

fn parse(text: &str) -> Result<Request<'_>, Malformed> {
    Request::parse(text.as_bytes())
}

fn port(number: u16) -> Port {
    Port::new(number).unwrap()
}

#[test]
fn reads_the_three_targets() {
    for (line, target) in [
        (
            "CONNECT ok.test:443",
            Target::Tunnel {
                host: "ok.test".into(),
                port: port(443),
            },
        ),
        (
            "CONNECT [::1]:22",
            Target::Tunnel {
                host: "::1".into(),
                port: port(22),
            },
        ),
        (
            "GET http://ok.test/a?b",
            Target::Absolute {
                host: "ok.test".into(),
                port: port(80),
                path: b"/a?b",
            },
        ),
        (
            "GET HTTP://OK.test:8080",
            Target::Absolute {
                host: "OK.test".into(),
                port: port(8080),
                path: b"",
            },
        ),
        (
            "GET http://ok.test?q",
            Target::Absolute {
                host: "ok.test".into(),
                port: port(80),
                path: b"?q",
            },
        ),
        (
            "GET http://[::1]:81/@x",
            Target::Absolute {
                host: "::1".into(),
                port: port(81),
                path: b"/@x",
            },
        ),
        ("GET /path", Target::Origin),
        ("OPTIONS *", Target::Origin),
    ] {
        let head = format!("{line} HTTP/1.1\r\n\r\n");
        assert_eq!(parse(&head).map(|r| r.target), Ok(target), "{line}");
    }
}

#[test]
fn refuses_unclear_first_lines() {
    use Malformed as M;
    for (line, error) in [
        ("GET http://ok.test/", M::FirstLine),
        ("GET  http://ok.test/ HTTP/1.1", M::FirstLine),
        ("GET http://ok.test/ HTTP/1.1 ", M::FirstLine),
        ("GET http://ok.test/ x HTTP/1.1", M::FirstLine),
        ("GET http://ok.test/\tx HTTP/1.1", M::FirstLine),
        ("G(T http://ok.test/ HTTP/1.1", M::FirstLine),
        ("GET http://ok.test/ HTTP/2.0", M::Version),
        ("GET http://ok.test/ HTTP/1.2", M::Version),
        ("GET http://ok.test/ http/1.1", M::Version),
        ("PRI * HTTP/2.0", M::Version),
        ("GET https://ok.test/ HTTP/1.1", M::Scheme),
        ("GET ftp://ok.test/ HTTP/1.1", M::Scheme),
        ("GET ok.test/ HTTP/1.1", M::Target),
        ("GET http:ok.test/ HTTP/1.1", M::Target),
        ("GET http://ok.test/#x HTTP/1.1", M::Fragment),
        ("GET http://ok.test#@evil.test/ HTTP/1.1", M::Fragment),
        ("GET http:///ok.test HTTP/1.1", M::Authority(AuthorityError::Empty)),
        (
            "GET http://ok.test\\@evil.test/ HTTP/1.1",
            M::Authority(AuthorityError::UserInfo),
        ),
        (
            "GET http://u:p@ok.test/ HTTP/1.1",
            M::Authority(AuthorityError::UserInfo),
        ),
        ("GET http://ok.test:/ HTTP/1.1", M::Authority(AuthorityError::Port)),
        ("CONNECT ok.test HTTP/1.1", M::NoPort),
        ("CONNECT ok.test:0443 HTTP/1.1", M::Authority(AuthorityError::Port)),
        (
            "CONNECT http://ok.test:443 HTTP/1.1",
            M::Authority(AuthorityError::Port),
        ),
        ("CONNECT ok.test:443/x HTTP/1.1", M::Authority(AuthorityError::Port)),
    ] {
        assert_eq!(
            parse(&format!("{line}\r\n\r\n")).map(|r| r.target),
            Err(error),
            "{line}"
        );
    }
}

#[test]
fn refuses_fields_that_contradict() {
    use Malformed as M;
    for (fields, wanted) in [
        ("Host: ok.test", Ok(())),
        ("Host: OK.TEST.", Ok(())),
        ("Host: ok.test:80", Ok(())),
        ("Host: evil.test", Err(M::Host)),
        ("Host: ok.test:81", Err(M::Host)),
        ("Host:", Err(M::Host)),
        ("Host: ok.test, evil.test", Err(M::Host)),
        ("Host: ok.test\r\nHost: ok.test", Err(M::Twice)),
        ("Host: ok.test\r\nhOST: evil.test", Err(M::Twice)),
        ("Content-Length: 5", Ok(())),
        ("Content-Length: 5\r\nContent-Length: 5", Err(M::Twice)),
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            Err(M::LengthAndCoding),
        ),
        ("Content-Length: +5", Err(M::Length)),
        ("Content-Length: 5, 5", Err(M::Length)),
        ("Content-Length: 0x5", Err(M::Length)),
        ("Content-Length:", Err(M::Length)),
        ("Content-Length: 99999999999999999999", Err(M::Length)),
        ("Transfer-Encoding: chunked", Ok(())),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            Err(M::Twice),
        ),
        ("Transfer-Encoding: gzip, chunked", Err(M::Coding)),
        ("Transfer-Encoding: xchunked", Err(M::Coding)),
        ("Transfer-Encoding:\x0bchunked", Err(M::Field)),
        (
            "Connection: close, Content-Length\r\nContent-Length: 5",
            Err(M::Nominated),
        ),
        ("Proxy-Connection: host", Err(M::Nominated)),
    ] {
        let head = format!("POST http://ok.test/ HTTP/1.1\r\n{fields}\r\n\r\n");
        assert_eq!(parse(&head).map(|_| ()), wanted, "{fields}");
    }
    let old = "POST http://ok.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(parse(old).map(|_| ()), Err(M::Coding));
}

#[test]
fn connect_takes_a_host_with_or_without_port_and_no_body() {
    for (fields, wanted) in [
        ("Host: ok.test", Ok(())),
        ("Host: ok.test:443", Ok(())),
        ("Content-Length: 0", Ok(())),
        ("Host: ok.test:80", Err(Malformed::Host)),
        ("Host: evil.test:443", Err(Malformed::Host)),
        ("Content-Length: 1", Err(Malformed::ConnectBody)),
        ("Transfer-Encoding: chunked", Err(Malformed::ConnectBody)),
    ] {
        let head = format!("CONNECT ok.test:443 HTTP/1.1\r\n{fields}\r\n\r\n");
        assert_eq!(parse(&head).map(|_| ()), wanted, "{fields}");
    }
}

#[test]
fn knows_body_and_persistence() {
    let read = |fields: &str, version: &str| {
        let head = format!("POST http://ok.test/ {version}\r\n{fields}\r\n");
        parse(&head).map(|r| (r.body, r.persists)).unwrap()
    };
    assert_eq!(read("", "HTTP/1.1"), (Body::EMPTY, true));
    assert_eq!(read("Content-Length: 7\r\n", "HTTP/1.1"), (Body::Length(7), true));
    assert_eq!(
        read("transfer-encoding: CHUNKED\r\n", "HTTP/1.1"),
        (Body::Chunked(Chunks::default()), true)
    );
    assert_eq!(read("Connection: x, Close\r\n", "HTTP/1.1"), (Body::EMPTY, false));
    assert_eq!(read("Proxy-Connection: close\r\n", "HTTP/1.1"), (Body::EMPTY, false));
    assert_eq!(read("Connection: keep-alive\r\n", "HTTP/1.0"), (Body::EMPTY, false));
}

#[test]
fn sends_on_what_is_meant_for_the_server_only() {
    let head = "GET http://OK.test:8080/a HTTP/1.1\r\nHost: ok.test:8080\r\nProxy-Authorization: secret\r\nproxy-x: y\r\n\
        Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nAccept: a\r\nAccept: b\r\n\r\n";
    let out = rewrite::to_server(&parse(head).unwrap(), "ok.test", port(8080));
    let wanted = "GET /a HTTP/1.1\r\nHost: ok.test:8080\r\nAccept: a\r\nAccept: b\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), wanted);
    for (line, first) in [
        ("GET http://ok.test?q", "GET /?q HTTP/1.1\r\nHost: ok.test\r\n"),
        ("GET http://ok.test", "GET / HTTP/1.1\r\nHost: ok.test\r\n"),
        ("OPTIONS http://ok.test", "OPTIONS * HTTP/1.1\r\nHost: ok.test\r\n"),
    ] {
        let head = format!("{line} HTTP/1.1\r\n\r\n");
        let out = rewrite::to_server(&parse(&head).unwrap(), "ok.test", port(80));
        assert!(out.starts_with(first.as_bytes()), "{}", out.escape_ascii());
    }
    let six = "GET http://[::1]/ HTTP/1.1\r\n\r\n";
    let out = rewrite::to_server(&parse(six).unwrap(), "::1", port(80));
    assert!(out.starts_with(b"GET / HTTP/1.1\r\nHost: [::1]\r\n"));
}

proptest! {
    #[test]
    fn never_panics(bytes in any::<Vec<u8>>(), line in "[A-Z]{0,7} [ -~]{0,30} HTTP/1.[0-2]") {
        let _ = Request::parse(&bytes);
        let _ = Request::parse(format!("{line}\r\n\r\n").as_bytes());
    }

    #[test]
    fn what_is_sent_on_has_one_reading(
        path in "(/[!-~]{0,12})?",
        fields in "((Host: ok.test|Connection: [a-zA-Z-]{1,6}|X: [ -~]{0,9}|Content-Length: [0-9]{1,2}|Transfer-Encoding: chunked|Host : x|[ -~]{1,12})\r\n){0,5}",
    ) {
        let head = format!("POST http://ok.test{path} HTTP/1.1\r\n{fields}\r\n");
        if let Ok(request) = parse(&head) {
            let out = rewrite::to_server(&request, "ok.test", port(80));
            let (line, sent) = head::split(&out).unwrap();
            assert_eq!(line.split(|b| *b == b' ').count(), 3);
            assert_eq!(sent.one("host"), Ok(Some(&b"ok.test"[..])));
            assert_eq!(sent.one("connection"), Ok(Some(&b"close"[..])));
            assert_eq!(sent.length(), request.fields.length());
            assert_eq!(sent.is_chunked(request.version), request.fields.is_chunked(request.version));
        }
    }
}
