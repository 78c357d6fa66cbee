//! One file per verb.
mod enter;
mod exec;
mod verify;

use std::process::ExitCode;

use crate::cli::{Cli, Command};

/// Exit status when the kernel side could not be set up, as `env` and `nohup` have it for their own failures.
const OWN_FAILURE: u8 = 125;

/// Runs the verb; failures are told on stderr.
pub fn run(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Exec(args) => exec::run(&args),
        Command::Verify { json } => verify::run(json),
        Command::Enter { cgroup, command } => return enter::run(&cgroup, &command),
    };
    result.unwrap_or_else(|error| {
        eprintln!("retry-agent: {error:#}");
        ExitCode::from(OWN_FAILURE)
    })
}
