//! Figures that need a sandbox of this process's own: repeated verification, and connects through the mediator.

use super::{Outcome, summary};
use pinfold::base::Port;
use pinfold::launch::session::expectation;
use pinfold::launch::{Additions, Setting, Wish, run::DEFAULT_PROFILE};
use pinfold::sandbox::{Doors, Jailed, Order, Running, Stream, mediate, spawn};
use pinfold::verify::{NetSubject, Subject, held, running};
use std::ffi::OsString;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The argument with which this program only measures connects and prints the median.
pub const CONNECTS: &str = "connects";
const VERIFICATIONS: usize = 50;
const ROUNDS: usize = 2000;
const SLEEPS: &str = "i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; wait";

/// A held sandbox without a broker, with stdout where it is wanted.
pub fn enclose(argv: Vec<OsString>, stdout: Stream, closed: Vec<Port>) -> Result<(Jailed, Subject)> {
    let setting = Setting::find().map_err(|fault| fault.to_string())?;
    let exe = std::env::current_exe()?;
    let wish = Wish {
        block_net: true,
        // For the copy of this program that runs inside; cargo's folder may lie outside the workspace.
        read: exe.parent().map(OsString::from).into_iter().collect(),
        ..Wish::default()
    };
    let additions = Additions {
        closed_ports: closed,
        ..Additions::default()
    };
    let policy = wish
        .policy(DEFAULT_PROFILE, additions, &setting)
        .map_err(|fault| fault.to_string())?;
    let null = || -> Result<Stream> { Ok(Stream::File(std::fs::File::open("/dev/null")?.into())) };
    let order = Order {
        argv,
        streams: [null()?, stdout, Stream::Inherited],
        inlets: Vec::new(),
        door: Doors::None,
    };
    let jailed = spawn(&policy, order)?;
    let subject = expectation(&jailed, &policy, NetSubject::default()).map_err(|fault| fault.to_string())?;
    Ok((jailed, subject))
}

/// Lets the command run once it has passed.
pub fn release(jailed: Jailed, subject: &Subject) -> Result<Running> {
    let passed = held(subject).map_err(|report| format!("{:?}", report.findings))?;
    Ok(jailed.release(passed)?)
}

/// The time of one verification, of one process and of two hundred.
pub fn verification() -> Outcome {
    println!(
        "{:<34}{:>12}{:>10}{:>10}",
        "processes inside", "median ms", "p95 ms", "ratio"
    );
    let mut alone = None;
    for (command, least) in [(&["/bin/sleep", "600"][..], 2), (&["/bin/sh", "-c", SLEEPS], 202)] {
        let argv = command.iter().map(OsString::from).collect();
        let (jailed, subject) = enclose(argv, Stream::Inherited, Vec::new())?;
        let sandbox = release(jailed, &subject)?;
        let begin = Instant::now();
        loop {
            let report = running(&subject);
            // Until its exec the released command shows this program's own environment, which is a finding.
            if report.ok() && report.processes.len() >= least {
                break;
            }
            if begin.elapsed() > Duration::from_secs(30) {
                return Err("the processes did not start".into());
            }
        }
        let mut times = Vec::new();
        let mut count = 0;
        for _ in 0..VERIFICATIONS {
            let begin = Instant::now();
            let report = running(&subject);
            times.push(begin.elapsed());
            if !report.ok() {
                return Err(format!("{:?}", report.findings).into());
            }
            count = report.processes.len();
        }
        sandbox.end();
        let (median, p95) = summary(&mut times);
        let ratio = median / *alone.get_or_insert(median);
        println!("{count:<34}{median:>12.2}{p95:>10.2}{ratio:>10.1}");
    }
    println!("must be below 20 ms for 200");
    Ok(())
}

/// The time of one connect: bare, and where the supervisor makes it.
pub fn connecting() -> Outcome {
    let exe = std::env::current_exe()?;
    let read = |bytes: Vec<u8>| -> Result<Vec<f64>> {
        let words = String::from_utf8(bytes)?;
        Ok(words
            .split_whitespace()
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?)
    };
    let bare = read(Command::new(&exe).arg(CONNECTS).output()?.stdout)?;
    let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let argv = vec![exe.into_os_string(), CONNECTS.into()];
    let (mut jailed, subject) = enclose(argv, Stream::File(writer), Vec::new())?;
    // The last sandbox of this process: a fork needs a single thread.
    let (listener, diag) = jailed.mediation.take().ok_or("the sandbox has no mediation")?;
    let rules = mediate::Rules {
        detour: None,
        writable: Default::default(),
        net: mediate::Net::Private { closed: Vec::new() },
        granted: Vec::new(),
        inside: mediate::Inside::Namespace,
        diag,
        refusals: None,
    };
    let _crew = mediate::start(listener, rules)?;
    let sandbox = release(jailed, &subject)?;
    let mut said = Vec::new();
    std::fs::File::from(reader).read_to_end(&mut said)?;
    sandbox.end();
    let enclosed = read(said)?;
    println!(
        "{:<34}{:>12}{:>12}{:>10}   {ROUNDS} rounds",
        "median us", "bare", "enclosed", "ratio"
    );
    for (name, (bare, enclosed)) in FAMILIES.iter().zip(bare.iter().zip(&enclosed)) {
        println!("{name:<34}{bare:>12.1}{enclosed:>12.1}{:>10.1}", enclosed / bare);
    }
    Ok(())
}

/// What is connected to, in the order in which the medians are printed.
const FAMILIES: [&str; 2] = ["TCP, own loopback", "Unix socket, by path"];

/// What the enclosed copy of this program does: connects to listeners of its own, and prints the medians in
/// microseconds.
pub fn connects() -> ExitCode {
    let measure = || -> std::io::Result<[f64; 2]> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let stream = TcpStream::connect(address)?;
            times.push(begin.elapsed());
            drop((stream, listener.accept()?));
        }
        let tcp = summary(&mut times).0 * 1e3;
        let path = std::env::temp_dir().join(format!("pinfold-bench-{}", std::process::id()));
        let listener = UnixListener::bind(&path)?;
        times.clear();
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let stream = UnixStream::connect(&path)?;
            times.push(begin.elapsed());
            drop((stream, listener.accept()?));
        }
        std::fs::remove_file(path)?;
        Ok([tcp, summary(&mut times).0 * 1e3])
    };
    match measure() {
        Ok([tcp, unix]) => {
            println!("{tcp} {unix}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
