use super::*;
use std::io::{Read as _, Write as _};
use std::net::TcpStream as Plain;

fn start(script: Script) -> Server {
    Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), script).unwrap()
}

fn ask(server: &Server, request: &[u8]) -> String {
    let mut stream = Plain::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A server that refuses early may have closed its side already.
    let _ = stream.write_all(request);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn post(server: &Server, body: &str) -> String {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    ask(server, format!("{head}{body}").as_bytes())
}

fn asked(stream: bool, messages: &str) -> String {
    format!(r#"{{"stream":{stream},"messages":[{messages}],"tools":[{{"function":{{"name":"bash"}}}}]}}"#)
}

#[test]
fn streams_a_call_and_answers_whole_where_no_stream_was_asked_for() {
    let server = start(Script::Prompted);
    let prompt = r#"{"role":"user","content":"RUN: echo hi"}"#;
    let first = post(&server, &asked(true, prompt));
    assert!(
        first.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"),
        "{first}"
    );
    assert!(first.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{first}");
    assert!(first.contains(r#""id":"call_0_0""#), "{first}");
    let result = r#"{"role":"tool","tool_call_id":"call_0_0","content":"hi"}"#;
    let second = post(&server, &asked(false, &format!("{prompt},{result}")));
    assert!(second.contains(r#""content":"The command printed:\nhi""#), "{second}");
    assert_eq!(server.transcript().results[0].output, "hi");
}

#[test]
fn names_its_model() {
    let server = start(Script::Prompted);
    assert!(ask(&server, b"GET /v1/models HTTP/1.1\r\n\r\n").contains(r#""id":"scripted""#));
}

#[test]
fn takes_a_request_in_pieces_beside_one_that_never_ends() {
    let server = start(Script::Prompted);
    let mut idle = Plain::connect(server.address()).unwrap();
    idle.write_all(b"POST /v1/chat").unwrap();
    let mut stream = Plain::connect(server.address()).unwrap();
    for piece in b"GET /v1/models HTTP/1.1\r\n\r\n".chunks(5) {
        stream.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn refuses_what_it_does_not_serve() {
    let server = start(Script::Prompted);
    let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(70_000));
    let table: &[(&[u8], &str)] = &[
        (b"GET /v1/other HTTP/1.1\r\n\r\n", "404"),
        (b"GET /v1/chat/completions HTTP/1.1\r\n\r\n", "405"),
        (
            b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 1\r\n\r\n{",
            "400",
        ),
        (
            b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
            "400",
        ),
        (
            b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
            "413",
        ),
        (long.as_bytes(), "431"),
    ];
    for (request, status) in table {
        // The server waits for the end of what is refused; this side says it by closing.
        let mut stream = Plain::connect(server.address()).unwrap();
        stream.write_all(request).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    assert_eq!(server.transcript(), Transcript::default());
}

#[test]
fn stops_listening_when_dropped() {
    let server = start(Script::Prompted);
    let address = server.address();
    let _held = Plain::connect(address).unwrap();
    drop(server);
    assert!(Plain::connect(address).is_err());
}

#[test]
fn its_configuration_names_it_as_the_only_provider() {
    let json: Value = serde_json::from_str(&configuration(BASE_URL)).unwrap();
    assert_eq!(
        json["provider"]["pinfold-demo"]["options"]["baseURL"],
        "http://model.pinfold/v1"
    );
    assert_eq!(json["enabled_providers"], json!(["pinfold-demo"]));
    assert_eq!(json["model"], "pinfold-demo/scripted");
}
