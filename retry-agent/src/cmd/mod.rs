//! One file per verb.
mod check;
mod cleanup;
mod enter;
mod exec;
mod run;
mod signals;
mod verify;

use std::future::Future;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command, Page};
use crate::kernel::chain;
use crate::metrics;

/// Exit status when the kernel side could not be set up, as `env` and `nohup` have it for their own failures.
const OWN_FAILURE: u8 = 125;
/// Exit status for a configuration that is not valid.
const BAD_CONFIG: u8 = 2;

/// Runs the verb; failures are told on stderr.
pub fn run(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Exec(args) => exec::run(&args),
        Command::Run { config } => run::run(config.as_deref()),
        Command::Check { file } => Ok(check::run(&file)),
        Command::Cleanup => cleanup::run(),
        Command::Docs { page: Page::Metrics } => {
            print!("{}", metrics::page());
            Ok(ExitCode::SUCCESS)
        }
        Command::Verify { json } => verify::run(json),
        Command::Enter { cgroup, command } => return enter::run(&cgroup, &command),
    };
    result.unwrap_or_else(|error| {
        eprintln!("retry-agent: {}", chain(error.as_ref()));
        ExitCode::from(OWN_FAILURE)
    })
}

/// Runs a verb that waits. Two threads: a scrape must not keep signs of life from the kernel side.
fn block_on(verb: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(verb)
}

/// Log lines on stderr; `RUST_LOG` chooses them, else those from this level on.
fn start_log(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    // The loader tells every relocation at debug level.
    let filter = ["aya=warn", "aya_obj=warn"]
        .into_iter()
        .filter_map(|directive| directive.parse().ok())
        .fold(filter, EnvFilter::add_directive);
    let terminal = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_ansi(terminal);
    // Fails only if there is a log already.
    let _ = log.with_writer(std::io::stderr).try_init();
}
