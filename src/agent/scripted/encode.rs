//! Replies as the chat completions API writes them.

use super::MODEL;
use super::script::Reply;
use serde_json::{Value, json};

/// Characters in one piece of a streamed text: small, so that clients really have to join them.
const PIECE: usize = 24;

/// The reply as one object.
pub(super) fn whole(reply: &Reply) -> Value {
    let calls: Vec<_> = reply
        .calls
        .iter()
        .map(|(id, name, arguments)| call(id, name, &arguments.to_string()))
        .collect();
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish(reply)});
    envelope("chat.completion", json!([choice]), Some(usage()))
}

/// The reply as the objects of a stream; the closing `[DONE]` is the transport's.
pub(super) fn events(reply: &Reply) -> Vec<Value> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    deltas.extend(pieces(&reply.text).into_iter().map(|piece| json!({"content": piece})));
    for (index, (id, name, arguments)) in reply.calls.iter().enumerate() {
        let mut opening = call(id, name, "");
        opening["index"] = index.into();
        deltas.push(json!({"tool_calls": [opening]}));
        deltas.extend(
            pieces(&arguments.to_string())
                .into_iter()
                .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})),
        );
    }
    let chunk = |delta: Value, finish: Value, usage| {
        envelope(
            "chat.completion.chunk",
            json!([{"index": 0, "delta": delta, "finish_reason": finish}]),
            usage,
        )
    };
    let mut events: Vec<_> = deltas
        .into_iter()
        .map(|delta| chunk(delta, Value::Null, None))
        .collect();
    events.push(chunk(json!({}), finish(reply).into(), Some(usage())));
    events
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn finish(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn envelope(object: &str, choices: Value, usage: Option<Value>) -> Value {
    let mut whole = json!({"id": "scripted", "object": object, "created": 0, "model": MODEL, "choices": choices});
    if let Some(usage) = usage {
        whole["usage"] = usage;
    }
    whole
}

/// Nothing was computed, yet agents show and sum these.
fn usage() -> Value {
    json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
}

fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> Reply {
        let arguments = json!({"command": "printf '%s' \"ünïcödé\" and a rather long tail that makes several pieces"});
        Reply {
            text: "ü".repeat(PIECE * 2 + 1),
            calls: vec![("call_0_0".into(), "bash".into(), arguments)],
        }
    }

    #[test]
    fn a_stream_joined_again_is_the_reply() {
        let (mut text, mut arguments) = (String::new(), String::new());
        for event in events(&reply()) {
            let delta = &event["choices"][0]["delta"];
            text += delta["content"].as_str().unwrap_or_default();
            arguments += delta["tool_calls"][0]["function"]["arguments"]
                .as_str()
                .unwrap_or_default();
        }
        assert_eq!(text, reply().text);
        assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap(), reply().calls[0].2);
    }

    #[test]
    fn only_the_last_event_says_how_it_finished() {
        let events = events(&reply());
        let finishes: Vec<_> = events.iter().map(|e| &e["choices"][0]["finish_reason"]).collect();
        assert_eq!(finishes.last().unwrap().as_str(), Some("tool_calls"));
        assert!(finishes[..finishes.len() - 1].iter().all(|finish| finish.is_null()));
    }

    #[test]
    fn a_whole_answer_carries_text_and_calls() {
        let whole = whole(&reply());
        let message = &whole["choices"][0]["message"];
        assert_eq!(message["content"], reply().text);
        assert_eq!(message["tool_calls"][0]["function"]["name"], "bash");
        let text_only = Reply {
            calls: Vec::new(),
            ..reply()
        };
        let whole = super::whole(&text_only);
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
        assert!(whole["choices"][0]["message"].get("tool_calls").is_none());
    }
}
