//! Test: everything that runs the code, in stages. User space first, because it needs nothing; then set-up, the
//! agent, the verifier's word on each program, and the tests on the running kernel.
//!
//! Where no program can be loaded (no root, no cgroup2) the user-space part runs, and the command then says what
//! was left out and ends with status 2.

mod report;
pub mod runners;

use anyhow::{Result, bail};

use self::report::Report;
use self::runners::{Runner, TestOutput};
use crate::{build, host, paths, setup, verify};

/// The package whose tests need root and a kernel.
pub const KERNEL_TESTS: &str = "retry-tests";

/// What the caller asked for.
pub struct Options {
    /// Leave the kernel part out.
    pub user_only: bool,
    /// Handed to every runner: a filter, or options of Rust's test harness.
    pub args: Vec<String>,
}

/// Runs the stages and prints the summary.
///
/// # Errors
/// When a stage fails, or with [`host::NotPossible`] when only the user-space part could run.
pub fn run(options: &Options) -> Result<()> {
    let possible = host::allows_kernel_programs();
    let with_kernel = !options.user_only && possible.is_ok();
    let mut report = Report::default();
    let result = stages(&mut report, options, with_kernel);
    report.print();
    match (result, possible) {
        (Err(error), _) => Err(error.context("the tests failed")),
        (Ok(()), Err(reason)) if !options.user_only => {
            println!("cargo xtask test: user-space part passed, kernel part NOT RUN");
            Err(reason.into())
        }
        (Ok(()), _) => {
            println!(
                "cargo xtask test: {} passed",
                if with_kernel { "all stages" } else { "user-space part" }
            );
            Ok(())
        }
    }
}

fn stages(report: &mut Report, options: &Options, with_kernel: bool) -> Result<()> {
    let mut runners = Vec::new();
    report.stage("building the tests", |_| {
        runners = runners::build()?;
        Ok(())
    })?;
    let (kernel, user): (Vec<Runner>, Vec<Runner>) =
        runners.into_iter().partition(|runner| runner.package == KERNEL_TESTS);
    report.stage("user-space tests", |results| user_space(&user, options, results))?;
    if with_kernel {
        report.stage("set-up", |_| setup::everything())?;
        report.stage("building the agent", |_| build::agent())?;
        report.stage("verifying the kernel programs", |_| verify::measure(&paths::agent()))?;
        report.stage("kernel tests", |results| on_the_kernel(&kernel, options, results))?;
    }
    Ok(())
}

fn user_space(runners: &[Runner], options: &Options, results: &mut Vec<TestOutput>) -> Result<()> {
    let mut failed = Vec::new();
    for runner in runners {
        run_one(runner, &options.args, results, &mut failed)?;
    }
    let documentation = runners::documentation(&options.args)?;
    if !documentation.succeeded {
        failed.push(documentation.runner.clone());
    }
    results.push(documentation);
    require_none(&failed)
}

/// One test at a time: the tests attach to the same kernel, and timing on it is what many of them are about.
fn on_the_kernel(runners: &[Runner], options: &Options, results: &mut Vec<TestOutput>) -> Result<()> {
    let mut args = vec!["--test-threads=1".to_owned()];
    args.extend(options.args.iter().cloned());
    let mut failed = Vec::new();
    let first = results.len();
    for runner in runners {
        run_one(runner, &args, results, &mut failed)?;
    }
    require_none(&failed)?;
    if options.args.is_empty() && results[first..].iter().all(|output| output.passed() == 0) {
        bail!("not one kernel test was run");
    }
    Ok(())
}

fn run_one(
    runner: &Runner,
    args: &[String],
    results: &mut Vec<TestOutput>,
    failed: &mut Vec<String>,
) -> Result<()> {
    let output = runner.run(args)?;
    if !output.succeeded {
        failed.push(output.runner.clone());
    }
    results.push(output);
    Ok(())
}

fn require_none(failed: &[String]) -> Result<()> {
    if !failed.is_empty() {
        bail!("{} failed", failed.join(", "));
    }
    Ok(())
}
