//! What the terminal in between costs: much output, and one key there and back, beside a terminal without Pinfold.

use super::{Outcome, PINFOLD, summary};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{OpenptyResult, Winsize, openpty};
use pinfold::sys::terminal::lead_session;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Bytes of output.
const MUCH: usize = 20 << 20;
const ROUNDS: usize = 9;
const KEYS: usize = 300;

/// A program in a terminal of its own; this is the person's side.
struct Pane {
    person: OwnedFd,
    child: Child,
}

impl Pane {
    fn open(argv: &[OsString]) -> Result<Pane> {
        let size = Winsize {
            ws_row: 50,
            ws_col: 150,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let OpenptyResult { master, slave } = openpty(&size, None)?;
        let mut command = Command::new(argv.first().ok_or("no program")?);
        command.args(argv.get(1..).unwrap_or_default());
        command
            .stdin(slave.try_clone()?)
            .stdout(slave.try_clone()?)
            .stderr(slave);
        let child = lead_session(&mut command).spawn()?;
        Ok(Pane { person: master, child })
    }

    /// Reads once, if something comes within ten seconds.
    fn read(&self, bytes: &mut [u8]) -> Result<usize> {
        let mut polled = [PollFd::new(self.person.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, PollTimeout::try_from(Duration::from_secs(10))?)? == 0 {
            return Err("the terminal says nothing".into());
        }
        Ok(nix::unistd::read(&self.person, bytes)?)
    }

    /// Reads up to and with this byte.
    fn until(&self, last: u8) -> Result<()> {
        let mut byte = [0; 1];
        while self.read(&mut byte)? == 0 || byte[0] != last {}
        Ok(())
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same command bare and enclosed.
fn ways(script: &str) -> [(&'static str, Vec<OsString>); 2] {
    let bare = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
    let words = [PINFOLD, "run", "--block-net", "--"].map(OsString::from);
    let enclosed = words.into_iter().chain(bare.iter().cloned()).collect();
    [("bare", bare), ("enclosed", enclosed)]
}

/// From the first byte of much output to the last.
fn output(argv: &[OsString]) -> Result<Duration> {
    let pane = Pane::open(argv)?;
    pane.until(b'>')?;
    let mut bytes = vec![0; 64 << 10];
    let (begin, mut count) = (Instant::now(), 0);
    while count < MUCH {
        count += pane.read(&mut bytes)?;
    }
    Ok(begin.elapsed())
}

/// One key to a program that answers with it, in raw mode, many times.
fn keys(argv: &[OsString]) -> Result<Vec<Duration>> {
    let pane = Pane::open(argv)?;
    pane.until(b'>')?;
    // What the program still has to do before it reads.
    std::thread::sleep(Duration::from_millis(200));
    let mut times = Vec::new();
    for _ in 0..KEYS {
        let begin = Instant::now();
        nix::unistd::write(&pane.person, b"k")?;
        pane.until(b'k')?;
        times.push(begin.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(times)
}

/// Ways take turns, so that a busy moment hits both.
pub fn table() -> Outcome {
    println!("{:<34}{:>12}{:>10}{:>10}", "", "median ms", "p95 ms", "x bare");
    let script = format!("stty raw; printf '>'; head -c {MUCH} /dev/zero");
    let mut outputs = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for ((_, argv), times) in ways(&script).iter().zip(&mut outputs) {
            times.push(output(argv)?);
        }
    }
    row("20 MiB of output", &mut outputs);
    let mut echoes = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        let answers = ways("stty raw -echo; printf '>'; exec cat");
        for ((_, argv), times) in answers.iter().zip(&mut echoes) {
            times.extend(keys(argv)?);
        }
    }
    row("one key to `cat` and back", &mut echoes);
    println!("the goal for output is 1.1 times bare");
    Ok(())
}

fn row(what: &str, times: &mut [Vec<Duration>; 2]) {
    let mut bare = None;
    for (times, way) in times.iter_mut().zip(["bare", "enclosed"]) {
        let (median, p95) = summary(times);
        let ratio = median / *bare.get_or_insert(median);
        println!("{:<34}{median:>12.3}{p95:>10.3}{ratio:>10.2}", format!("{what}, {way}"));
    }
}
