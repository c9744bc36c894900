//! From `start` to a verified client, and how much of it is the agent's own.

use crate::{Outcome, PINFOLD};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(90);

/// One agent in a terminal of script(1)'s, in a home of its own.
struct Start<'a> {
    home: &'a Path,
    child: Child,
}

impl Start<'_> {
    fn command(home: &Path, verb: &str) -> Command {
        let mut command = Command::new(PINFOLD);
        command.arg(verb).env("HOME", home);
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_DATA_HOME",
            "TMUX",
            "HERDR_ENV",
        ] {
            command.env_remove(name);
        }
        command
    }

    fn sessions(home: &Path) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
        let said = Start::command(home, "list").arg("--json").output()?;
        Ok(serde_json::from_slice(&said.stdout)?)
    }
}

impl Drop for Start<'_> {
    fn drop(&mut self) {
        let _ = Start::command(self.home, "stop").output();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Milliseconds until both sandboxes are held, and from there on the agent's own and all.
pub fn table() -> Outcome {
    let Some(agent) = std::env::var_os("PINFOLD_TEST_OPENCODE") else {
        println!("PINFOLD_TEST_OPENCODE names no OpenCode: not measured");
        return Ok(());
    };
    println!(
        "{:<12}{:>12}{:>14}{:>12}{:>16}",
        "round", "held ms", "agent's ms", "all ms", "Pinfold's ms"
    );
    for round in 1..=ROUNDS {
        let folder = tempfile::tempdir()?;
        let (home, project) = (folder.path().join("home"), folder.path().join("project"));
        std::fs::create_dir_all(&home)?;
        std::fs::create_dir_all(project.join(".git"))?;
        let line = format!(
            "'{PINFOLD}' start --host terminal --binary '{}'",
            agent.to_string_lossy()
        );
        let mut script = Command::new("script");
        script
            .args(["-qfec", &line, "/dev/null"])
            .current_dir(&project)
            .env("HOME", &home);
        script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut start = Start {
            home: &home,
            child: script.spawn()?,
        };
        let timings = timings(&home)?;
        let of = |name: &str| timings[name].as_u64().unwrap_or_default();
        let (held, ready, all) = (of("heldMs"), of("readyMs"), of("verifiedMs"));
        println!(
            "{round:<12}{held:>12}{ready:>14}{all:>12}{:>16}",
            all.saturating_sub(ready)
        );
        if let Some(stdin) = start.child.stdin.as_mut() {
            stdin.flush()?;
        }
    }
    Ok(())
}

fn timings(home: &Path) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(100));
        let session = Start::sessions(home)?["sessions"][0].clone();
        if session["lifecycleState"] == "running" {
            return Ok(session["timings"].clone());
        }
        if session["lifecycleState"] == "failed" {
            return Err(session["lastError"].to_string().into());
        }
    }
    Err("no session came up in time".into())
}
