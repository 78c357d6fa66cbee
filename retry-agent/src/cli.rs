//! The command line.
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use retry_common::abi::Mode;
use retry_common::recogniser::Evidence;

use crate::spec::{BudgetSpec, Statuses, duration};

/// Sees retries in the kernel, tells them from first attempts, and answers the excess ones.
#[derive(Debug, Parser)]
#[command(name = "retry-agent", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one command and tell which of its calls were retries; with a budget, cap them.
    ///
    /// The command's exit status is ours (128+n after signal n); 125 if the kernel side could not be set up, 126
    /// and 127 if the command could not be started.
    #[command(after_help = "Examples:\n  retry-agent exec -- curl --retry 3 http://127.0.0.1:8080/\n  \
        retry-agent exec --budget share=10%,window=60s --json calls.json -- ./service")]
    Exec(ExecArgs),
    /// Watch a subtree of cgroups, serve metrics, cap retries where a rule says so; SIGTERM detaches.
    #[command(
        after_help = "Without a configuration everything is observed and nothing denied. Log lines go to \
        stderr; RUST_LOG chooses them (default: info)."
    )]
    Run {
        /// Configuration (docs/configuration.md).
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Say whether a configuration is valid; exit status 2 if not.
    Check {
        /// The configuration.
        file: PathBuf,
    },
    /// Remove what agents left behind that were killed.
    Cleanup,
    /// Print a page of the documentation that is made from the code.
    #[command(hide = true)]
    Docs {
        /// Which one.
        page: Page,
    },
    /// Load every kernel program, report the verifier's cost, attach nothing.
    #[command(hide = true)]
    Verify {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Join a cgroup and become a command.
    #[command(hide = true)]
    Enter {
        /// The cgroup's folder.
        cgroup: PathBuf,
        /// The command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
}

/// Pages of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// docs/metrics.md.
    Metrics,
}

/// `exec`.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// How many retries may pass: `share=10%[,window=60s][,floor=N]`, `token_pool=25[,refill=1/s]`, `none`,
    /// `unlimited`.
    #[arg(long, value_name = "SPEC")]
    pub budget: Option<BudgetSpec>,
    /// What becomes of an excess retry; enforce if there is a budget, else observe.
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// How long a failure explains a repetition.
    #[arg(long, value_parser = duration, default_value = "60s", value_name = "DURATION")]
    pub window: Duration,
    /// Least evidence on which a retry is charged to the budget. `connection` also caps connects after failed
    /// ones, and may take another call's first connect for a retry.
    #[arg(long, value_enum, default_value = "repetition")]
    pub act_on: EvidenceArg,
    /// Statuses that are failures.
    #[arg(long, default_value = "429,500,502,503,504", value_name = "LIST")]
    pub failure_statuses: Statuses,
    /// Seconds that a denial asks the client to wait.
    #[arg(long, default_value_t = 1, value_name = "SECONDS")]
    pub retry_after: u32,
    /// Write the summary to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Serve Prometheus metrics here while the command runs.
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// [`Mode`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Count only.
    Observe,
    /// Count what enforce would deny.
    DryRun,
    /// Answer excess retries in the kernel.
    Enforce,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Observe => Self::Observe,
            ModeArg::DryRun => Self::DryRun,
            ModeArg::Enforce => Self::Enforce,
        }
    }
}

/// [`Evidence`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EvidenceArg {
    /// The same request after a failed attempt of it.
    Repetition,
    /// Also a connect after a failed one.
    Connection,
}

impl From<EvidenceArg> for Evidence {
    fn from(evidence: EvidenceArg) -> Self {
        match evidence {
            EvidenceArg::Repetition => Self::Repetition,
            EvidenceArg::Connection => Self::Connection,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_stands_behind_the_dashes_is_the_command() {
        let cli =
            Cli::try_parse_from(["retry-agent", "exec", "--budget", "none", "--", "curl", "--retry", "3"]);
        let Ok(Cli { command: Command::Exec(args) }) = cli else { panic!("{cli:?}") };
        assert_eq!(args.command, ["curl", "--retry", "3"]);
    }
}
