//! What one enclosed launch costs, beside the bare command and beside bubblewrap with the same view.
//!
//! Ratios within one run; the numbers of one machine say little about another. Each program is first shown to pass an
//! exit status on, so that one that runs nothing cannot be the fastest.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 60;
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
    /// Whether it runs a command and passes its status on.
    fn works(&self) -> bool {
        let status = self.command(&["/bin/sh", "-c", "exit 7"]).status();
        status.is_ok_and(|s| s.code() == Some(7))
    }
    fn once(&self) -> Option<Duration> {
        let begin = Instant::now();
        let status = self.command(&["/bin/true"]).status().ok()?;
        status.success().then(|| begin.elapsed())
    }
}

fn ways() -> Vec<Way> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let here = std::env::current_dir()
        .map(|d| d.to_string_lossy().into_owned())
        .unwrap_or_else(|_| "/".to_owned());
    let mut bwrap: Vec<String> =
        words("bwrap --unshare-all --die-with-parent --new-session --ro-bind /usr /usr --ro-bind /etc /etc");
    for link in ["/bin", "/lib", "/lib64"]
        .iter()
        .filter(|l| std::fs::symlink_metadata(l).is_ok())
    {
        bwrap.extend(["--symlink".to_owned(), format!("usr{link}"), (*link).to_owned()]);
    }
    bwrap.extend(words("--proc /proc --dev /dev --tmpfs /tmp --bind"));
    bwrap.extend([here.clone(), here, "--".to_owned()]);
    vec![
        Way {
            name: "bare",
            argv: Vec::new(),
        },
        Way {
            name: "bwrap",
            argv: bwrap,
        },
        Way {
            name: "pinfold run",
            argv: words(&format!("{} run --", env!("CARGO_BIN_EXE_pinfold"))),
        },
    ]
}

/// Median and 95th percentile in milliseconds.
fn summary(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    (at(50), at(95))
}

fn main() -> ExitCode {
    let (able, unable): (Vec<Way>, Vec<Way>) = ways().into_iter().partition(Way::works);
    let mut times: Vec<Vec<Duration>> = able.iter().map(|_| Vec::new()).collect();
    // the ways take turns, so that a busy moment hits all of them
    for round in 0..WARM_UP + ROUNDS {
        for (way, times) in able.iter().zip(&mut times) {
            match way.once() {
                Some(time) if round >= WARM_UP => times.push(time),
                Some(_) => {}
                None => {
                    eprintln!("{} failed in round {round}", way.name);
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    println!(
        "{:<14}{:>10}{:>10}{:>12}   /bin/true, {ROUNDS} rounds",
        "", "median ms", "p95 ms", "x bare"
    );
    let mut bare = None;
    for (way, times) in able.iter().zip(&mut times) {
        let (median, p95) = summary(times);
        let ratio = median / *bare.get_or_insert(median);
        println!("{:<14}{median:>10.2}{p95:>10.2}{ratio:>12.1}", way.name);
    }
    for way in &unable {
        println!(
            "{:<14}    does not run here: it did not pass an exit status on",
            way.name
        );
    }
    if unable.iter().any(|w| w.name == "pinfold run") {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
