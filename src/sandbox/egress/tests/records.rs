//! What the log says about what happened.

use super::double::{Far, Rig, tunnel};
use serde_json::Value;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

async fn lines(rig: &Rig, count: usize) -> Vec<Value> {
    for _ in 0..100 {
        if rig.log().len() >= count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    rig.log()
}

#[tokio::test]
async fn an_allowed_connection_has_a_line_at_its_decision_and_one_at_its_end() {
    let (rig, far) = (Rig::usual().await, Far::echo("127.0.0.2").await);
    let mut stream = tunnel(&rig, &format!("OK.test:{}", far.port())).await;
    let decided = lines(&rig, 1).await;
    assert_eq!(decided.len(), 1);
    let line = &decided[0];
    assert_eq!(
        (&line["verdict"], &line["name"], &line["rule"]),
        (&"allowed".into(), &"ok.test".into(), &"ok.test".into())
    );
    assert_eq!(
        (&line["address"], &line["port"]),
        (&far.at.to_string().into(), &far.port().into())
    );
    assert!(line.get("sent").is_none() && line["launch"].as_str().unwrap().len() == 12);

    stream.write_all(b"hello").await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(super::double::all(&mut stream).await, "hello");
    let ended = lines(&rig, 2).await;
    assert_eq!((&ended[1]["sent"], &ended[1]["received"]), (&5.into(), &5.into()));
    assert_eq!((&ended[1]["id"], ended[1].get("error")), (&line["id"], None));
    assert!(ended[1]["ms"].as_u64().is_some());
}

#[tokio::test]
async fn refusals_and_failures_have_their_reason() {
    let rig = Rig::usual().await;
    rig.ask("CONNECT evil.test:443 HTTP/1.1\r\n\r\n").await;
    rig.ask("GET / HTTP/1.1\r\n\r\n").await;
    rig.ask("CONNECT a@b:443 HTTP/1.1\r\n\r\n").await;
    rig.ask("CONNECT ok.test:1 HTTP/1.1\r\n\r\n").await;
    let lines = lines(&rig, 5).await;
    assert_eq!(
        (&lines[0]["verdict"], &lines[0]["name"]),
        (&"refused".into(), &"evil.test".into())
    );
    assert_eq!(lines[0]["reason"], "no rule names it");
    for line in &lines[1..3] {
        assert_eq!((&line["verdict"], line.get("name")), (&"refused".into(), None));
        assert!(line["reason"].as_str().is_some());
    }
    assert_eq!((&lines[3]["verdict"], lines[3].get("error")), (&"allowed".into(), None));
    assert!(lines[4]["error"].as_str().unwrap().contains("refused"), "{}", lines[4]);
    assert_eq!(lines.len(), 5);
}
