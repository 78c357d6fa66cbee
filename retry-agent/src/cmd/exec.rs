//! `exec`: one command in a cgroup of its own.
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context as _, Result};
use retry_common::abi::Mode;
use retry_common::budget::Rules;
use retry_common::recogniser::Evidence;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedReceiver;

use super::signals;
use crate::cgroup::{self, Fresh};
use crate::cli::ExecArgs;
use crate::config::{Settings, Treatment};
use crate::kernel::{check_privileges, send_signal};
use crate::metrics::Server;
use crate::report::Report;
use crate::session::Session;
use crate::spec::BudgetSpec;

pub(super) fn run(args: &ExecArgs) -> Result<ExitCode> {
    super::start_log("warn");
    super::block_on(run_command(args))
}

/// How the command's retries are treated.
fn settings(args: &ExecArgs) -> Settings {
    let implied = if args.budget.is_some() { Mode::Enforce } else { Mode::Observe };
    Settings {
        window: args.window,
        failure_statuses: args.failure_statuses.clone(),
        default: Treatment {
            mode: args.mode.map_or(implied, Mode::from),
            budget: args.budget.unwrap_or(BudgetSpec(Rules::UNLIMITED)),
            act_on: Evidence::from(args.act_on),
            retry_after_s: args.retry_after,
        },
        ..Settings::default()
    }
}

async fn run_command(args: &ExecArgs) -> Result<ExitCode> {
    check_privileges()?;
    let server = match args.metrics {
        Some(address) => Some(Server::start(address).await?),
        None => None,
    };
    let parent = cgroup::own(&cgroup::mount()?)?;
    let fresh = Fresh::make(&parent, std::process::id())?;
    let outcome = follow(args, &fresh, server.as_ref()).await;
    match fresh.remove() {
        Ok(0) => {}
        Ok(left) => eprintln!("retry-agent: {left} processes of the command go on, unwatched"),
        Err(error) => eprintln!("retry-agent: {error}"),
    }
    outcome
}

async fn follow(args: &ExecArgs, fresh: &Fresh, server: Option<&Server>) -> Result<ExitCode> {
    let session = Session::start(settings(args), fresh.path(), &format!("exec-{}", std::process::id()))?;
    if let Some(server) = server {
        server.show(session.clone());
    }
    let mut signals = signals::for_the_command().context("cannot listen to signals")?;
    let mut child = start(args, fresh)?;
    let status = wait(&mut child, &session, &mut signals).await?;
    let snapshot = session.snapshot()?;
    let report = Report::new(session.settings(), snapshot.rows, &snapshot.fails);
    for problem in session.problems() {
        eprintln!("retry-agent: {problem}");
    }
    eprint!("{}", report.table());
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&report).context("cannot write JSON")?;
        fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(exit_code(status))
}

fn start(args: &ExecArgs, fresh: &Fresh) -> Result<Child> {
    let own = std::env::current_exe().context("cannot find the own program")?;
    let mut command = Command::new(own);
    command.arg("enter").arg(fresh.path()).arg("--").args(&args.command);
    command.spawn().context("cannot start a process")
}

async fn wait(
    child: &mut Child,
    session: &Session,
    signals: &mut UnboundedReceiver<i32>,
) -> Result<ExitStatus> {
    let following = session.follow();
    tokio::pin!(following);
    let mut followed = true;
    loop {
        tokio::select! {
            status = child.wait() => return status.context("cannot wait for the command"),
            Some(number) = signals.recv() => forward(child, number),
            // The command goes on: without signs of life nothing new is denied.
            result = &mut following, if followed => {
                followed = false;
                if let Err(error) = result {
                    eprintln!("retry-agent: {error}; nothing is denied any more");
                }
            }
        }
    }
}

fn forward(child: &Child, number: i32) {
    let Some(process) = child.id() else { return };
    if let Err(error) = send_signal(process, number) {
        eprintln!("retry-agent: cannot hand on signal {number}: {error}");
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
