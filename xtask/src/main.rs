//! The project's own commands, behind `cargo xtask`. Each is one module; this file only names them.

mod build;
mod check;
mod docs;
mod host;
mod paths;
mod process;
mod progress;
mod setup;
mod show;
mod test;
mod tidy;
mod verify;
mod vm;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Tasks of the retry-agent workspace.
///
/// Exit status: 0 when the command did its job, 1 when it failed, 2 when its kernel part cannot run on this
/// machine (no root, or no cgroup2); it then says what was not run and why.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what build, tests and demo need; may be run again at any time.
    Setup,
    /// Build target/release/retry-agent with the kernel object embedded.
    Build,
    /// Load every kernel program and compare the verifier's cost with retry-ebpf/verifier.toml.
    Verify,
    /// Format, lints of both sides, dependency rules, documentation, generated pages.
    Check,
    /// Only the dependency and style rules that grep can find.
    Tidy,
    /// Write the generated pages below docs/.
    Docs {
        /// Only compare them, and fail when one is stale.
        #[arg(long)]
        check: bool,
    },
    /// All tests: user space, then the running kernel.
    Test {
        /// Only the user-space part, which needs neither root nor set-up.
        #[arg(long)]
        user: bool,
        /// Handed to every test runner, for example a filter.
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Build and run the main job: a retry storm without and with the agent.
    Demo {
        /// Handed to the demo, for example --full.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Build and run the benchmark: bare, observed, enforced.
    Bench {
        /// Handed to the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Load the programs and run the main end-to-end test on other kernels, in emulated machines.
    Vm {
        /// Beginning of a kernel's version; may be given several times. `target/vm` keeps what was fetched.
        #[arg(long = "kernel", default_values = vm::DEFAULT_KERNELS)]
        kernels: Vec<String>,
        /// The test file of the tests package to run.
        #[arg(long, default_value = vm::MAIN_TEST)]
        test: String,
        /// A command to run as root in each kernel instead.
        #[arg(last = true)]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            match error.downcast_ref::<host::NotPossible>() {
                Some(_) => ExitCode::from(host::NOT_POSSIBLE_STATUS),
                None => ExitCode::FAILURE,
            }
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Setup => setup::everything(),
        Task::Build => build::run(),
        Task::Verify => verify::run(),
        Task::Check => check::run(),
        Task::Tidy => tidy::run(),
        Task::Docs { check } => docs::run(check),
        Task::Test { user, args } => test::run(&test::Options { user_only: user, args }),
        Task::Demo { args } => show::run("retry-demo", &args),
        Task::Vm { kernels, test, command } => vm::run(&vm::Options { kernels, test, command }),
        Task::Bench { args } => show::run("retry-bench", &args),
    }
}
