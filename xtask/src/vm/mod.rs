//! Vm: the same agent and the same tests on other kernels. Boots each in an emulated machine, loads every kernel
//! program there, runs the main end-to-end test, and prints a table.
//!
//! Emulation needs no hardware help, so this works inside other virtual machines, about thirty times slower.

mod guest;
mod image;
mod kernel;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use self::guest::{GuestCommand, Outcome};
use crate::progress::seconds;
use crate::setup::{self, debian};
use crate::test::runners::{self, Runner};
use crate::{build, host, paths, verify};

/// The oldest kernel with full function, the one of current Debian, and the newest packaged.
pub const DEFAULT_KERNELS: [&str; 3] = ["6.1", "6.12", "7.2"];

/// The test file that exercises the whole path (observe, recognise, deny) over IPv4 and IPv6, loopback, veth, bridge
/// and translation, with lost, late and doubled packets.
pub const MAIN_TEST: &str = "netns";

/// What the caller asked for.
pub struct Options {
    pub kernels: Vec<String>,
    /// The test file of the tests package to run.
    pub test: String,
    /// Run instead of programs and test, when not empty.
    pub command: Vec<String>,
}

/// One row of the table.
struct Row {
    version: String,
    cells: Vec<Result<String>>,
    took: String,
}

/// Boots each kernel and prints what held on it.
///
/// # Errors
/// When a kernel cannot be had or booted, or something did not hold on one of them.
pub fn run(options: &Options) -> Result<()> {
    if !host::is_root() {
        return Err(host::NotPossible("only root can share files with a virtual machine".to_owned()).into());
    }
    println!("set-up: virtual machine");
    debian::ensure(debian::FOR_VM)?;
    let cache = paths::target().join("vm");
    let jobs = jobs(options)?;
    let rows = options.kernels.iter().map(|wanted| row(&cache, wanted, &jobs)).collect::<Result<Vec<_>>>()?;
    let mut failed = Vec::new();
    println!("== kernels");
    for row in &rows {
        let cells = row.cells.iter().map(|cell| match cell {
            Ok(text) => text.clone(),
            Err(error) => format!("FAILED: {error:#}"),
        });
        println!("{:<30} {:>12}  {}", row.version, row.took, cells.collect::<Vec<_>>().join("  |  "));
        if row.cells.iter().any(Result::is_err) {
            failed.push(row.version.as_str());
        }
    }
    if !failed.is_empty() {
        bail!("not everything held on {}", failed.join(", "));
    }
    Ok(())
}

/// What to run in the guest and how to read its outcome.
struct Job {
    program: PathBuf,
    args: Vec<String>,
    folder: PathBuf,
    read: fn(&Outcome) -> Result<String>,
}

fn jobs(options: &Options) -> Result<Vec<Job>> {
    if let [program, args @ ..] = options.command.as_slice() {
        let program = host::find_command(program).unwrap_or_else(|| PathBuf::from(program));
        let program = std::path::absolute(&program).context("cannot find the command")?;
        return Ok(vec![Job { program, args: args.to_vec(), folder: paths::root(), read: any_output }]);
    }
    setup::everything()?;
    build::agent()?;
    let test = test_runner(&options.test)?;
    let args = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Ok(vec![
        Job {
            program: paths::agent(),
            args: args(&["verify", "--json"]),
            folder: paths::root(),
            read: programs,
        },
        Job {
            program: test.executable,
            args: args(&["--test-threads=1"]),
            folder: test.folder,
            read: closing_line,
        },
    ])
}

fn test_runner(name: &str) -> Result<Runner> {
    let runners = runners::build()?;
    let fits = |runner: &Runner| runner.package == crate::test::KERNEL_TESTS && runner.name == name;
    runners
        .into_iter()
        .find(fits)
        .with_context(|| format!("{} has no test file {name}", crate::test::KERNEL_TESTS))
}

fn row(cache: &Path, wanted: &str, jobs: &[Job]) -> Result<Row> {
    let kernel = kernel::get(cache, wanted)?;
    let started = Instant::now();
    let environment = [
        ("RETRY_AGENT_BIN", paths::agent().display().to_string()),
        ("RETRY_CLIENTS", paths::clients().display().to_string()),
    ];
    let cells = jobs.iter().map(|job| {
        let command = GuestCommand {
            program: &job.program,
            args: &job.args,
            folder: &job.folder,
            environment: &environment,
        };
        let outcome = guest::run(cache, &kernel, &command)?;
        (job.read)(&outcome).inspect_err(|_| {
            println!("{}", outcome.stdout.trim_end());
            println!("{}", outcome.stderr.trim_end());
        })
    });
    let cells = cells.collect();
    Ok(Row { version: kernel.version, cells, took: seconds(started.elapsed()) })
}

fn any_output(outcome: &Outcome) -> Result<String> {
    require_success(outcome)?;
    print!("{}", outcome.stdout);
    eprint!("{}", outcome.stderr);
    Ok("status 0".to_owned())
}

fn programs(outcome: &Outcome) -> Result<String> {
    require_success(outcome)?;
    verify::summary(&outcome.stdout)
}

fn closing_line(outcome: &Outcome) -> Result<String> {
    require_success(outcome)?;
    let line = outcome.stdout.lines().rfind(|line| line.starts_with("test result:"));
    let line = line.context("the test printed no closing line")?;
    Ok(line.trim_start_matches("test result: ").to_owned())
}

fn require_success(outcome: &Outcome) -> Result<()> {
    if outcome.status != 0 {
        bail!("status {}", outcome.status);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: i32, stdout: &str) -> Outcome {
        Outcome { status, stdout: stdout.to_owned(), stderr: String::new() }
    }

    #[test]
    fn a_cell_shows_the_tests_closing_line_only_when_it_passed() {
        let stdout = "running 1 test\ntest result: ok. 1 passed; 0 failed\n";
        assert_eq!(closing_line(&outcome(0, stdout)).unwrap(), "ok. 1 passed; 0 failed");
        assert_eq!(closing_line(&outcome(101, stdout)).unwrap_err().to_string(), "status 101");
        assert!(closing_line(&outcome(0, "")).is_err(), "a runner that says nothing ran nothing");
    }
}
