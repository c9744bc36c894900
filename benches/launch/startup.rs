//! The wall time of `/bin/true`, each way in turn.

use super::{Outcome, PINFOLD, summary};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 100;
const WARM_UP: usize = 5;

/// One way to run a command.
struct Way {
    name: &'static str,
    argv: Vec<String>,
}

impl Way {
    fn command(&self, inner: &[&str]) -> Command {
        let mut argv = self.argv.iter().map(String::as_str).chain(inner.iter().copied());
        let mut command = Command::new(argv.next().unwrap_or("true"));
        command
            .args(argv)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
    /// Whether it runs a command and passes its status on: one that runs nothing cannot be the fastest.
    fn works(&self) -> bool {
        let status = self.command(&["/bin/sh", "-c", "exit 7"]).status();
        status.is_ok_and(|status| status.code() == Some(7))
    }
    fn once(&self) -> Option<Duration> {
        let begin = Instant::now();
        let status = self.command(&["/bin/true"]).status().ok()?;
        status.success().then(|| begin.elapsed())
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn bwrap() -> Vec<String> {
    words("bwrap --unshare-all --die-with-parent --new-session")
}

/// Whole `/usr` and `/etc`: what people write by hand.
fn plain_bwrap(here: &str) -> Vec<String> {
    let mut argv = bwrap();
    argv.extend(words("--ro-bind /usr /usr --ro-bind /etc /etc"));
    for link in ["/bin", "/lib", "/lib64"] {
        if std::fs::symlink_metadata(link).is_ok() {
            argv.extend(["--symlink".to_owned(), format!("usr{link}"), link.to_owned()]);
        }
    }
    argv.extend(words("--proc /proc --dev /dev --tmpfs /tmp --bind"));
    argv.extend([here.to_owned(), here.to_owned(), "--".to_owned()]);
    argv
}

/// Every mount of Pinfold's own plan, read from `run --dry-run --json`.
fn same_bwrap() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let output = Command::new(PINFOLD)
        .args(["run", "--dry-run", "--json", "--", "/bin/true"])
        .output()?;
    let plan: Value = serde_json::from_slice(&output.stdout)?;
    let mut argv = bwrap();
    for op in plan["plan"].as_array().ok_or("no plan")? {
        match op.as_str() {
            Some("proc") => argv.extend(words("--proc /proc")),
            Some("devices") => argv.extend(words("--dev /dev")),
            _ => {}
        }
        let Some((kind, op)) = op.as_object().and_then(|op| op.iter().next()) else {
            continue;
        };
        let text = |key: &str| op[key].as_str().unwrap_or_default().to_owned();
        let is_read = op["access"] == "read";
        match kind.as_str() {
            "bind" if is_read => argv.extend(["--ro-bind".into(), text("source"), text("target")]),
            "bind" => argv.extend(["--bind".into(), text("source"), text("target")]),
            "pin" => argv.extend(["--bind".into(), text("source"), text("at")]),
            "protect" => argv.extend(["--ro-bind".into(), text("source"), text("at")]),
            "scratch" | "sealed" => argv.extend(["--tmpfs".into(), text("at")]),
            "link" => argv.extend(["--symlink".into(), text("to"), text("at")]),
            _ => {}
        }
    }
    argv.push("--".into());
    Ok(argv)
}

/// The one that is named, else the one on PATH.
fn nono() -> String {
    std::env::var("PINFOLD_TEST_NONO").unwrap_or_else(|_| "nono".to_owned())
}

fn ways() -> Result<Vec<Way>, Box<dyn std::error::Error>> {
    let here = std::env::current_dir()?.to_string_lossy().into_owned();
    let way = |name, argv| Way { name, argv };
    Ok(vec![
        way("bare", Vec::new()),
        way("bwrap, same view", same_bwrap()?),
        way("bwrap, /usr and /etc", plain_bwrap(&here)),
        way("pinfold run", words(&format!("{PINFOLD} run --"))),
        way("nono", [vec![nono()], words("run --allow . --")].concat()),
    ])
}

/// Wall time, and ratios to bare and to bubblewrap.
pub fn table() -> Outcome {
    let (able, unable): (Vec<Way>, Vec<Way>) = ways()?.into_iter().partition(Way::works);
    let mut times: Vec<Vec<Duration>> = able.iter().map(|_| Vec::new()).collect();
    // The ways take turns, so that a busy moment hits all of them.
    for round in 0..WARM_UP + ROUNDS {
        for (way, times) in able.iter().zip(&mut times) {
            let time = way
                .once()
                .ok_or_else(|| format!("{} failed in round {round}", way.name))?;
            if round >= WARM_UP {
                times.push(time);
            }
        }
    }
    let summaries: Vec<_> = able
        .iter()
        .zip(&mut times)
        .map(|(way, times)| (way.name, summary(times)))
        .collect();
    let of = |name: &str| {
        summaries
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, (median, _))| *median)
    };
    let ratio = |median: f64, name: &str| of(name).map_or("-".to_owned(), |other| format!("{:.2}", median / other));
    println!(
        "{:<22}{:>10}{:>10}{:>10}{:>18}   /bin/true, {ROUNDS} rounds",
        "", "median ms", "p95 ms", "x bare", "x bwrap same view"
    );
    for (name, (median, p95)) in &summaries {
        let (bare, bwrap) = (ratio(*median, "bare"), ratio(*median, "bwrap, same view"));
        println!("{name:<22}{median:>10.2}{p95:>10.2}{bare:>10}{bwrap:>18}");
    }
    for way in &unable {
        let program = way.argv.first().map(String::as_str).unwrap_or_default();
        let why = which::which(program).map_or("not there", |_| "runs nothing here, or passes no exit status on");
        println!("{:<22}{why:>20}", way.name);
    }
    of("pinfold run")
        .map(drop)
        .ok_or_else(|| "pinfold run does not work here".into())
}
