//! `pinfold demo`: OpenCode in its two sandboxes with a scripted model, honest work done, escapes tried and denied.

mod area;
mod attempt;
mod error;
mod evidence;
mod logs;
mod met;
mod opencode;
mod outside;
mod project;
mod pty;
mod script;
mod session;
mod table;

pub use error::DemoError;

use super::Outcome;
use super::args::Demo;
use super::output::{say, say_json, tell};
use crate::agent::scripted::{Server, Transcript};
use crate::base::{Fault, Port};
use crate::launch::Setting;
use crate::sandbox::attend::Signals;
use crate::state::{Record, Store};
use area::Area;
use attempt::{Attempt, attempts};
use evidence::{Evidence, Row, Sandbox, Work};
use met::Met;
use nix::sys::signal::Signal;
use outside::Outside;
use project::Project;
use serde_json::{Value, json};
use session::{Session, Turn, command, describe};
use std::ffi::OsStr;
use std::net::TcpListener;
use std::process::{ExitCode, ExitStatus};
use std::time::Instant;

/// Gives it, prints what was found, and judges.
pub fn run(args: Demo) -> Outcome {
    let setting = Setting::find()?;
    let evidence = show(&args, &setting)?;
    let problems = evidence.problems();
    if args.output.json {
        let mut all = json!({"ok": problems.is_empty(), "problems": problems});
        if let (Some(all), Ok(Value::Object(found))) = (all.as_object_mut(), serde_json::to_value(&evidence)) {
            all.extend(found);
        }
        say_json(&all);
    } else {
        table::lines(&evidence).into_iter().for_each(say);
    }
    Ok(ExitCode::from(u8::from(!problems.is_empty())))
}

/// Everything that is done, in order. What is made here goes in the reverse order, on an error too.
fn show(args: &Demo, setting: &Setting) -> Result<Evidence, Fault> {
    let begun = Instant::now();
    let agent = opencode::find(args.binary.as_deref(), setting)?;
    progress(&format!("OpenCode is {}", crate::base::text::visible(agent.as_path())));
    let tmux = outside::tmux(setting.environ.get(OsStr::new("TMUX")));
    let area = Area::make(&setting.environ, &setting.program, tmux.as_deref())?;
    let project = area.project()?;
    let outside = Outside::make(&area, tmux.clone())?;
    let (attempts, not_tried) = attempts(outside.aims());
    progress(&format!(
        "trying {} ways out, outside any sandbox first",
        attempts.len()
    ));
    let controls = controls(&attempts, &outside, &area, &project, setting)?;
    let before = project.test()?;
    outside.visitors();
    let model = model(&attempts)?;
    let port = Port::new(model.address().port()).ok_or(DemoError::StandIn)?;
    let store = Store::open(&area.dirs()?)?;
    let aims: Vec<_> = area.aims(&setting.program, tmux.as_deref()).collect();
    let command = command(&setting.program, agent.as_path(), port, &area, &aims);
    progress("starting OpenCode in its two sandboxes, which takes it some ten seconds");
    let mut session = Session::start(command, project.folder.as_path(), &store, &setting.signals)?;
    let played = session.turn(|| model.transcript().steps, script::length(&attempts), progress);
    let ended = played.and_then(|turn| Ok((turn, session.end()?)));
    let logs = logs::keep(&store, setting)?;
    let (Turn { ready, record }, status) =
        ended.inspect_err(|_| logs.iter().for_each(|log| progress(&logs::line(log))))?;
    let transcript = model.transcript();
    let work = work(&before, &transcript, &project, outside.visitors(), status, &record)?;
    Ok(Evidence {
        version: record.agent_version.clone(),
        ready_seconds: ready.as_secs_f64(),
        seconds: begun.elapsed().as_secs_f64(),
        work,
        attempts: rows(attempts, controls, &transcript),
        not_tried,
        sandboxes: sandboxes(&record),
        logs,
    })
}

fn controls(
    attempts: &[Attempt],
    outside: &Outside,
    area: &Area,
    project: &Project,
    setting: &Setting,
) -> Result<Vec<Met>, Fault> {
    let one = |attempt: &Attempt| {
        if let Some(signal) = asked_to_end(&setting.signals) {
            return Err(DemoError::Interrupted(signal).into());
        }
        Ok(outside.control(attempt, area, project.folder.as_path())?)
    };
    attempts.iter().map(one).collect()
}

fn model(attempts: &[Attempt]) -> Result<Server, DemoError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|source| DemoError::Listen { source })?;
    Server::start(listener, script::script(attempts)).map_err(|source| DemoError::Listen { source })
}

fn rows(attempts: Vec<Attempt>, controls: Vec<Met>, transcript: &Transcript) -> Vec<Row> {
    let inside = |index| script::inside(transcript, index);
    let rows = attempts.into_iter().zip(controls).enumerate();
    rows.map(|(index, (attempt, outside))| Row::new(attempt, outside, inside(index)))
        .collect()
}

/// What must have worked, told by what stands there in the end and not by what a tool said, where there is a choice.
fn work(
    before: &Met,
    transcript: &Transcript,
    project: &Project,
    visitors: usize,
    status: ExitStatus,
    record: &Record,
) -> Result<Vec<Work>, Fault> {
    let [failed, passed] = script::tests(transcript);
    let left = [&record.server, &record.client];
    let alive = left.into_iter().flatten().filter(|side| side.init.is_alive()).count();
    let nobody = |count: usize, what: &str| match count {
        0 => Met::Worked,
        some => Met::Denied(format!("{some} {what}")),
    };
    let end = match status.success() {
        true => Met::Worked,
        false => Met::Denied(describe(status)),
    };
    let list = [
        ("the test failed before, outside", failing(before)),
        ("the test failed before, inside", failing(&failed)),
        ("the model changed the program, and it passed", passed),
        ("the test passes now, outside", project.test()?),
        ("the change is committed, and nothing else", project.committed()?),
        (
            "nobody from inside reached a listener outside",
            nobody(visitors, "connections"),
        ),
        ("the client ended well", end),
        ("nothing of the launch is left", nobody(alive, "sandboxes")),
    ];
    Ok(list.into_iter().map(|(what, met)| Work { what, met }).collect())
}

/// A failing test is what was wanted.
fn failing(met: &Met) -> Met {
    match met {
        Met::Denied(_) => Met::Worked,
        Met::Worked => Met::Denied("it passed".into()),
        Met::Unclear(words) => Met::Unclear(words.clone()),
    }
}

/// The reports of the last verification, told apart by the first process of each sandbox.
fn sandboxes(record: &Record) -> Vec<Sandbox> {
    let of = |report: &Value| {
        let processes = report["processes"].as_array()?;
        let first = processes.iter().find(|process| process["role"] == "init")?["pid"].as_i64()?;
        let is = |side: &Option<crate::state::Side>| {
            side.as_ref()
                .is_some_and(|side| i64::from(side.init.pid.get()) == first)
        };
        let side = if is(&record.server) {
            "server"
        } else {
            Some("client").filter(|_| is(&record.client))?
        };
        let findings = report["findings"].as_array()?.iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = findings
            .map(|found| format!("{}: {}", text(&found["check"]), text(&found["problem"])))
            .collect();
        Some(Sandbox {
            side,
            processes: processes.len(),
            findings,
        })
    };
    record.reports().iter().filter_map(of).collect()
}

/// One line for whoever waits.
fn progress(text: &str) {
    tell(format_args!("demo: {text}"));
}

/// A signal that asks this process to end, if one has arrived.
fn asked_to_end(signals: &Signals) -> Option<Signal> {
    let ends = |signal: &Signal| {
        matches!(
            signal,
            Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT
        )
    };
    std::iter::from_fn(|| signals.next()).find(ends)
}
