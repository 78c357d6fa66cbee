//! The binary: parse, run, exit code.
use std::process::ExitCode;

use clap::Parser as _;
use retry_agent::cli::Cli;

fn main() -> ExitCode {
    retry_agent::cmd::run(Cli::parse())
}
