//! A report as lines for a person.

use super::{Finding, Process, Report, Role};

impl Report {
    /// The verdict, then what is wrong, then who is there. Text that processes chose is escaped.
    pub fn lines(&self) -> Vec<String> {
        let verdict = match (self.ended, self.findings.len()) {
            (true, _) => "ended".to_owned(),
            (false, 0) => "confined".to_owned(),
            (false, 1) => "not confined: 1 finding".to_owned(),
            (false, n) => format!("not confined: {n} findings"),
        };
        let (processes, checks) = (self.processes.len(), self.checks.len());
        let mut lines = vec![format!(
            "{verdict} ({processes} processes, {checks} checks, {} ms)",
            self.took_ms
        )];
        lines.extend(self.findings.iter().map(Finding::line));
        lines.extend(self.processes.iter().map(Process::line));
        lines
    }
}

impl Finding {
    /// Check, process, problem.
    pub fn line(&self) -> String {
        let who = self.pid.map(|pid| format!("process {pid}: ")).unwrap_or_default();
        format!("  {}: {who}{}", self.check, self.problem)
    }
}

impl Process {
    /// Number, role, verdict and command.
    pub fn line(&self) -> String {
        let role = match self.role {
            Role::Init => "init",
            Role::Command => "command",
            Role::Tool => "tool",
        };
        let verdict = if self.confined { "confined" } else { "NOT CONFINED" };
        format!(
            "  {:>7} {role:<7} {verdict:<12} {}",
            self.pid.get(),
            self.command.escape_debug()
        )
    }
}
