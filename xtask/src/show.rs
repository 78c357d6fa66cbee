//! Demo and benchmark: build the agent, then run the program of the workspace that shows it at work.

use std::process::Command;

use anyhow::Result;

use crate::{build, host, paths, process, setup};

/// Sets up, builds, and runs `package` in release with the caller's arguments and terminal.
///
/// # Errors
/// [`host::NotPossible`] where no program can be loaded; otherwise when a step or the program fails.
pub fn run(package: &str, args: &[String]) -> Result<()> {
    host::allows_kernel_programs()?;
    setup::everything()?;
    build::agent()?;
    // Built on its own first: cargo then shows its progress, and below only the program speaks.
    process::run(process::cargo().args(["build", "--release", "--package", package]))?;
    process::run(&mut program(package, args))
}

fn program(package: &str, args: &[String]) -> Command {
    let mut command = process::cargo();
    command.args(["run", "--quiet", "--release", "--package", package, "--"]).args(args);
    command.env("RETRY_AGENT_BIN", paths::agent()).env("RETRY_CLIENTS", paths::clients());
    command.stdin(std::process::Stdio::inherit());
    command
}
