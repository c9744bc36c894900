//! What the scripted model says next, and what it has been told.

use serde_json::{Value, json};

/// The title that every session gets.
const TITLE: &str = "A scripted session";
/// Said when a script has no step left, or a prompt nothing to run.
const END: &str = "There is nothing left to do.";
/// In a prompt, the rest of the line is a shell command.
const PROMPT: &str = "RUN: ";
/// The shell tool in OpenCode 1.x and 2.x.
const SHELLS: [&str; 2] = ["bash", "shell"];

/// How the model decides what to say.
#[derive(Debug, Clone, PartialEq)]
pub enum Script {
    /// One step for each request, in order. A step without calls ends the agent's turn; the next prompt goes on with
    /// the step after it.
    Steps(Vec<Step>),
    /// A prompt with a line `RUN: command` is answered with that command, then with what it printed.
    Prompted,
}

/// One answer of the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    pub text: String,
    pub calls: Vec<Call>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's name; `bash` stands for the shell tool under either of its names.
    pub tool: String,
    /// A JSON object.
    pub arguments: Value,
}

/// What a tool call gave back.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Index into the script's steps; in prompted mode, the number of the command.
    pub step: usize,
    /// Index into that step's calls.
    pub call: usize,
    pub tool: String,
    pub arguments: Value,
    /// As the agent passed it on.
    pub output: String,
}

/// What has happened so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    /// In the order in which they arrived, each once.
    pub results: Vec<ToolResult>,
    /// Names of the tools that the last request offered.
    pub tools: Vec<String>,
    /// Steps that were played.
    pub steps: usize,
    /// Requests without tools: those for a title.
    pub titles: usize,
}

impl Step {
    /// A text that ends the turn.
    pub fn say(text: impl Into<String>) -> Step {
        Step {
            text: text.into(),
            calls: Vec::new(),
        }
    }

    /// One tool call.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Step {
        Step {
            text: String::new(),
            calls: vec![Call {
                tool: tool.into(),
                arguments,
            }],
        }
    }

    /// One shell command; `purpose` is what the person reads beside it.
    pub fn shell(command: impl Into<String>, purpose: &str) -> Step {
        let command: String = command.into();
        Step::call(SHELLS[0], json!({"command": command, "description": purpose}))
    }
}

/// What is to be sent; ids are unique for each call of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub text: String,
    /// Id, tool, arguments.
    pub calls: Vec<(String, String, Value)>,
}

/// A script on its way.
#[derive(Debug)]
pub(super) struct Play {
    script: Script,
    transcript: Transcript,
    /// Calls that were made and not answered yet, by id.
    open: Vec<(String, ToolResult)>,
    /// The last messages and what was said to them: an agent that asks again gets the same step again.
    last: Option<(Value, Reply)>,
}

impl Play {
    pub(super) fn new(script: Script) -> Play {
        Play {
            script,
            transcript: Transcript::default(),
            open: Vec::new(),
            last: None,
        }
    }

    pub(super) fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The answer to one request, whose `messages` is a list.
    pub(super) fn reply(&mut self, request: &Value) -> Reply {
        let tools: Vec<String> = list(&request["tools"])
            .iter()
            .filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned))
            .collect();
        if tools.is_empty() {
            self.transcript.titles += 1;
            return Reply {
                text: TITLE.to_owned(),
                calls: Vec::new(),
            };
        }
        let messages = &request["messages"];
        if let Some((_, reply)) = self.last.as_ref().filter(|(asked, _)| asked == messages) {
            return reply.clone();
        }
        self.record(list(messages));
        let step = match &self.script {
            Script::Steps(steps) => steps
                .get(self.transcript.steps)
                .cloned()
                .unwrap_or_else(|| Step::say(END)),
            Script::Prompted => prompted(list(messages)),
        };
        let reply = self.play(step, &tools);
        self.transcript.tools = tools;
        self.last = Some((messages.clone(), reply.clone()));
        reply
    }

    /// Keeps the results that answer open calls.
    fn record(&mut self, messages: &[Value]) {
        for message in messages.iter().filter(|message| message["role"] == "tool") {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if let Some(at) = self.open.iter().position(|(open, _)| open == id) {
                let (_, result) = self.open.remove(at);
                self.transcript.results.push(ToolResult {
                    output: text_of(message),
                    ..result
                });
            }
        }
    }

    /// Gives the calls their ids and the names that the agent offers.
    fn play(&mut self, step: Step, tools: &[String]) -> Reply {
        let number = self.transcript.steps;
        self.transcript.steps += 1;
        let mut calls = Vec::new();
        for (index, Call { tool, arguments }) in step.calls.into_iter().enumerate() {
            let tool = offered(tool, tools);
            let id = format!("call_{number}_{index}");
            let (name, values) = (tool.clone(), arguments.clone());
            let result = ToolResult {
                step: number,
                call: index,
                tool,
                arguments,
                output: String::new(),
            };
            self.open.push((id.clone(), result));
            calls.push((id, name, values));
        }
        Reply { text: step.text, calls }
    }
}

/// The shell tool has another name in OpenCode 2.x.
fn offered(tool: String, tools: &[String]) -> String {
    if tool != SHELLS[0] {
        return tool;
    }
    SHELLS
        .into_iter()
        .find(|shell| tools.iter().any(|t| t == shell))
        .map_or(tool, str::to_owned)
}

fn prompted(messages: &[Value]) -> Step {
    let Some(last) = messages.last() else {
        return Step::say(END);
    };
    let text = text_of(last);
    match last["role"].as_str() {
        Some("tool") => Step::say(format!("The command printed:\n{text}")),
        Some("user") => match text.lines().find_map(|line| line.strip_prefix(PROMPT)) {
            Some(command) => Step::shell(command, "runs what the prompt asked for"),
            None => Step::say(END),
        },
        _ => Step::say(END),
    }
}

/// A message's content, which is a text or a list of parts with texts.
fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        parts => {
            let texts: Vec<_> = list(parts).iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: Value) -> Value {
        json!({"messages": messages, "tools": [{"function": {"name": "bash"}}, {"function": {"name": "read"}}]})
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn result(id: &str, text: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": text})
    }

    #[test]
    fn plays_its_steps_and_keeps_what_tools_gave_back() {
        let read = Step::call("read", json!({"filePath": "/x"}));
        let both = Step {
            text: "both".into(),
            calls: [read.calls.clone(), Step::shell("ls", "").calls].concat(),
        };
        let mut play = Play::new(Script::Steps(vec![both, Step::say("done")]));
        let first = play.reply(&request(json!([user("go")])));
        assert_eq!((first.text.as_str(), first.calls.len()), ("both", 2));
        let messages = json!([user("go"), {"role": "assistant"}, result("call_0_1", "a"), result("call_0_0", "b")]);
        let second = play.reply(&request(messages.clone()));
        assert_eq!((second.text.as_str(), second.calls.len()), ("done", 0));
        let outputs: Vec<_> = play
            .transcript()
            .results
            .iter()
            .map(|r| (r.call, r.tool.as_str(), r.output.as_str()))
            .collect();
        assert_eq!(outputs, [(1, "bash", "a"), (0, "read", "b")]);
        let third = play.reply(&request(json!([user("go"), result("call_0_0", "again"), user("more")])));
        assert_eq!(third.text, END);
        assert_eq!(play.transcript().results.len(), 2, "a result was counted twice");
    }

    #[test]
    fn a_request_for_a_title_does_not_advance() {
        let mut play = Play::new(Script::Steps(vec![Step::say("one")]));
        for tools in [json!(null), json!([])] {
            let title = play.reply(&json!({"messages": [user("go")], "tools": tools}));
            assert_eq!(title.text, TITLE);
        }
        assert_eq!(play.reply(&request(json!([user("go")]))).text, "one");
        assert_eq!((play.transcript().titles, play.transcript().steps), (2, 1));
    }

    #[test]
    fn the_same_request_again_gets_the_same_step_again() {
        let mut play = Play::new(Script::Steps(vec![Step::shell("a", ""), Step::shell("b", "")]));
        let asked = request(json!([user("go")]));
        assert_eq!(play.reply(&asked), play.reply(&asked));
        assert_eq!(play.transcript().steps, 1);
        let next = play.reply(&request(json!([user("go"), result("call_0_0", "")])));
        assert_eq!(next.calls[0].2["command"], "b");
    }

    #[test]
    fn runs_what_a_prompt_asks_for_and_says_what_it_printed() {
        let mut play = Play::new(Script::Prompted);
        let parts = json!({"role": "user", "content": [{"type": "text", "text": "please\nRUN: echo hi\n"}]});
        let first = play.reply(&request(json!([parts])));
        assert_eq!(
            (first.calls[0].1.as_str(), &first.calls[0].2["command"]),
            ("bash", &json!("echo hi"))
        );
        let second = play.reply(&request(json!([parts, result("call_0_0", "hi\n")])));
        assert_eq!(second.text, "The command printed:\nhi\n");
        assert!(second.calls.is_empty());
        assert_eq!(play.reply(&request(json!([user("I RUN: nothing")]))).text, END);
        assert_eq!(play.transcript().results[0].output, "hi\n");
    }

    #[test]
    fn uses_the_shell_under_the_name_that_is_offered() {
        let mut play = Play::new(Script::Prompted);
        let second = json!({"messages": [user("RUN: a")], "tools": [{"function": {"name": "shell"}}]});
        assert_eq!(play.reply(&second).calls[0].1, "shell");
    }
}
