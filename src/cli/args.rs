//! Arguments as typed: the one declaration that help, usage errors and completions come from.

use crate::base::{LaunchId, Port};
use crate::policy::{Promise, parse_processors, parse_size};
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "pinfold",
    version,
    about = "Runs coding agents in enclosed terminal panes and checks from outside that the enclosure holds",
    after_help = "Examples:\n  pinfold start                      OpenCode for this project, in two verified sandboxes\n  pinfold run -- npm test            one command in one sandbox\n  pinfold doctor                     what this machine can enforce, tried out\n\nExit status: 0 good, 1 not good, 2 wrong usage or configuration. `start`, `run` and `shell` pass the status of\nthe command (of the agent's client) on, 128+n for a signal, and use 125 for a failure of Pinfold, 126 for a\nfailed verification or something that must not or cannot be executed, 127 for a command or an agent that is not\nfound. A `start` that opens a pane is 0 once the pane is there.",
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start an agent in this terminal, or in a new tmux pane
    Start(Start),
    /// Run one command in one sandbox
    Run(Run),
    /// Open a shell under the policy of a running or recorded agent's server
    Shell(Shell),
    /// End a running agent and everything that it started
    Stop(Select),
    /// List agents, running and recorded
    List(Output),
    /// Show everything that is known about one agent
    Info(Info),
    /// Forget agents that have ended, with their logs
    Prune(Prune),
    /// Check the sandboxes of a running agent now
    Verify(Select),
    /// Say what this machine can enforce, and try to escape from a throw-away sandbox
    Doctor(Doctor),
    /// Show the whole of it without an account: honest work done, escapes denied
    Demo(Demo),
    /// Print the policy that a profile resolves to, with the origin of each line
    Explain(Explain),
    /// Say whether a path, host or socket is allowed, and by which line
    Why(Why),
    /// List, show and check profiles
    Profile(ProfileArgs),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
    /// Runs in the pane of an agent (started by `start`)
    #[command(hide = true)]
    Bridge(Bridge),
    /// Makes one attempt that an enclosed process must not manage, and reports it
    #[command(hide = true)]
    Probe(Probe),
    /// Herdr's actions
    #[command(hide = true)]
    Action(Herdr),
    /// Herdr's events
    #[command(hide = true)]
    Events(Herdr),
    /// Herdr's panes
    #[command(hide = true)]
    Pane(Herdr),
}

/// How to print.
#[derive(Debug, Clone, Copy, Args)]
pub struct Output {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What may be granted beside the profile.
#[derive(Debug, Default, Args)]
pub struct Grants {
    /// Profile: a name (`pinfold profile list`) or a path to a JSON file
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<OsString>,
    /// Grant reading and writing below PATH
    #[arg(long, value_name = "PATH")]
    pub allow: Vec<PathBuf>,
    /// Grant reading below PATH
    #[arg(long, value_name = "PATH")]
    pub read: Vec<PathBuf>,
    /// Let the broker connect to NAME (or *.NAME), on ports 443 and 80 unless PORT is given
    #[arg(long, value_name = "NAME[:PORT]")]
    pub allow_domain: Vec<String>,
    /// Let the sandbox reach one service of this machine under a private name
    #[arg(long, value_name = "NAME=ADDRESS:PORT")]
    pub service: Vec<String>,
    /// Let this machine's loopback reach a port that the sandbox listens on
    #[arg(long, value_name = "PORT")]
    pub listen_port: Vec<Port>,
    /// Let the sandbox reach one port of this machine's loopback
    #[arg(long, value_name = "PORT")]
    pub open_port: Vec<Port>,
    /// No network at all, whatever the profile says
    #[arg(long, conflicts_with_all = ["allow_domain", "service", "open_port"])]
    pub block_net: bool,
    /// Pass a variable on, or set it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Go without a promise where the kernel cannot keep it (P1 to P7, by number or name)
    #[arg(long, value_name = "PROMISE")]
    pub allow_missing: Vec<Promise>,
    /// At most SIZE of memory for everything inside together, for example 2G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// At most N processes and threads inside
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub processes: Option<u64>,
    /// At most so much CPU time as N processors have, for example 1.5
    #[arg(long, value_name = "N", value_parser = processors)]
    pub cpu: Option<u64>,
    /// The size of the private /tmp and of the other private folders, each (default: 1G)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub tmp_size: Option<u64>,
    /// The workspace: this folder is granted, and the command starts in it (default: the project's top level is granted,
    /// and the command starts here)
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<PathBuf>,
}

/// One command in one sandbox.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pinfold run -- npm test\n  pinfold run --allow-domain github.com -- git fetch\n  pinfold run --block-net --read ~/data -- python3 report.py\n  pinfold run --dry-run --json -- true"
)]
pub struct Run {
    #[command(flatten)]
    pub grants: Grants,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write JSON lines about the launch to this open descriptor
    #[arg(long, value_name = "FD")]
    pub status_fd: Option<i32>,
    /// Print the plan (with --dry-run) or Pinfold's own failure as JSON
    #[arg(long)]
    pub json: bool,
    /// The command and its arguments, verbatim
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// An agent in two sandboxes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pinfold start                          here, or in a new pane inside tmux\n  pinfold start --continue               the agent's last session again\n  pinfold start --allow-domain api.example.org -- --model mine/large"
)]
pub struct Start {
    #[command(flatten)]
    pub grants: Grants,
    /// Which agent
    #[arg(long, default_value = "opencode", value_name = "NAME")]
    pub agent: OsString,
    /// The agent's program, if it is not on PATH
    #[arg(long, value_name = "PATH")]
    pub binary: Option<PathBuf>,
    /// Go on with the last session
    #[arg(long = "continue")]
    pub resume: bool,
    /// Where the pane is made: tmux or terminal (default: found out)
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// What to do when a later verification fails: end the agent, or only record it (`list` then says WEAKENED)
    #[arg(long, default_value = "stop", value_parser = ["stop", "warn"])]
    pub on_failure: String,
    /// How long the agent may take to answer before it is given up (default: 60)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub ready_timeout: Option<u16>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Arguments for the agent's client
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
}

/// A shell under a server's policy.
#[derive(Debug, Args)]
pub struct Shell {
    /// Go without a promise where the kernel cannot keep it (P1 to P7, by number or name)
    #[arg(long, value_name = "PROMISE")]
    pub allow_missing: Vec<Promise>,
    /// Session, pane or launch (default: the only one)
    pub session: Option<String>,
    /// Print Pinfold's own failure as JSON
    #[arg(long)]
    pub json: bool,
    /// A command instead of the person's shell
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// One agent.
#[derive(Debug, Args)]
pub struct Select {
    /// Session, pane or launch, or the start of one (default: the only one)
    pub session: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Everything that is known about one session.
#[derive(Debug, Args)]
pub struct Info {
    #[command(flatten)]
    pub select: Select,
    /// What it changed that this machine may execute, all of it; also of a `run`, by the name that it told
    #[arg(long)]
    pub changes: bool,
}

/// What to forget.
#[derive(Debug, Args)]
#[command(
    after_help = "What runs is never forgotten. Without --all, neither is an agent that failed, or that changed what this machine\nmay execute, before `pinfold info` has shown it. A start forgets by itself what is neither among the last 100\nnor younger than 30 days."
)]
pub struct Prune {
    /// Session, pane or launch, or the start of one (default: all that have ended)
    pub session: Option<String>,
    /// Those too whose end nobody has looked at
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub output: Output,
}

/// What this machine can enforce.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The profile to try the escapes under
    #[arg(long, default_value = "opencode-server", value_name = "NAME|FILE")]
    pub profile: OsString,
    /// Try them under every profile, one after the other, and show what does not hold
    #[arg(long, conflicts_with = "profile")]
    pub every_profile: bool,
    #[command(flatten)]
    pub output: Output,
}

/// The demonstration.
#[derive(Debug, Args)]
pub struct Demo {
    /// OpenCode's program, if it is not on PATH
    #[arg(long, value_name = "PATH")]
    pub binary: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// The resolved policy.
#[derive(Debug, Args)]
pub struct Explain {
    #[command(flatten)]
    pub grants: Grants,
    #[command(flatten)]
    pub output: Output,
}

/// One question to the policy.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pinfold why ~/.ssh/id_ed25519\n  pinfold why api.openai.com:443 --profile opencode-server\n  pinfold why /var/run/docker.sock\n  pinfold why --last                 what was refused in the last launch, and the smallest grant for each"
)]
pub struct Why {
    /// A path, a host with or without a port, or a socket's path
    #[arg(required_unless_present = "last")]
    pub subject: Option<OsString>,
    /// What was refused while a launch ran: in the last one in which anything was, or in the one named
    #[arg(long, value_name = "LAUNCH", num_args = 0..=1, conflicts_with = "subject")]
    pub last: Option<Option<String>>,
    #[command(flatten)]
    pub grants: Grants,
    #[command(flatten)]
    pub output: Output,
}

/// Profiles.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    #[command(subcommand)]
    pub verb: ProfileVerb,
}

/// What to do with profiles.
#[derive(Debug, Subcommand)]
pub enum ProfileVerb {
    /// List the profiles that can be named
    List(Output),
    /// Print one as it is written
    Show {
        /// A name (`pinfold profile list`) or a path to a JSON file
        profile: OsString,
        #[command(flatten)]
        output: Output,
    },
    /// Check that a launch would take it: it loads with all that it extends, and nothing in it is refused here
    Check {
        /// A name (`pinfold profile list`) or a path to a JSON file
        profile: OsString,
        #[command(flatten)]
        output: Output,
    },
    /// Print the JSON Schema of profiles
    Schema(Output),
}

/// The pane's half of a start.
#[derive(Debug, Args)]
pub struct Bridge {
    #[arg(value_parser = ["start"])]
    pub mode: String,
    pub launch: LaunchId,
}

/// One attempt, many, or what they are made on.
#[derive(Debug, Args)]
pub struct Probe {
    /// Read a JSON array of attempts on standard input
    #[arg(long, conflicts_with = "name")]
    pub batch: bool,
    /// Make and hold the doctor's targets until standard input ends
    #[arg(long, conflicts_with_all = ["name", "batch"])]
    pub targets: bool,
    #[arg(required_unless_present_any = ["batch", "targets"])]
    pub name: Option<String>,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// Words that Herdr adds.
#[derive(Debug, Args)]
pub struct Herdr {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub words: Vec<OsString>,
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "write a number of bytes, or for example 512M or 2G".to_owned())
}

fn processors(text: &str) -> Result<u64, String> {
    parse_processors(text).ok_or_else(|| "write a number of processors, for example 2 or 1.5".to_owned())
}
