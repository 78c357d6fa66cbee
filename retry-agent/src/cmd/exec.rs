//! `exec`: one command in a cgroup of its own.
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use retry_common::abi::{Config, EventKind, Mode, Policy};
use retry_common::answer;
use retry_common::budget::Rules;
use retry_common::recogniser::Evidence;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::cgroup::{self, Fresh};
use crate::cli::ExecArgs;
use crate::kernel::{Devices, Kernel, Sizes};
use crate::report::Report;
use crate::spec::{BudgetSpec, millis};
use crate::workload::Workloads;

/// Time between two signs of life.
const BEAT: Duration = Duration::from_millis(500);

pub(super) fn run(args: &ExecArgs) -> Result<ExitCode> {
    if args.metrics.is_some() {
        bail!("--metrics is not available yet");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(run_command(args))
}

/// How the command's retries are treated.
struct Plan {
    mode: Mode,
    rules: Rules,
    config: Config,
}

impl Plan {
    fn of(args: &ExecArgs) -> Self {
        let rules = args.budget.map_or(Rules::UNLIMITED, |budget| budget.0);
        let default = if args.budget.is_some() { Mode::Enforce } else { Mode::Observe };
        Self {
            mode: args.mode.map_or(default, Mode::from),
            rules,
            config: Config::new(millis(args.window), &args.failure_statuses.0),
        }
    }
}

async fn run_command(args: &ExecArgs) -> Result<ExitCode> {
    let plan = Plan::of(args);
    let parent = cgroup::own(&cgroup::mount()?)?;
    let kernel = Kernel::load(&Sizes::default(), plan.config)?;
    let policy = Policy {
        mode: plan.mode as u8,
        act_on: Evidence::from(args.act_on) as u8,
        reserved: [0; 6],
        rules: plan.rules,
    };
    kernel.set_policy(0, &policy, &answer::render(plan.rules.algorithm().label(), args.retry_after))?;
    let fresh = Fresh::make(&parent, &format!("retry-agent-exec-{}", std::process::id()))?;
    let outcome = follow(args, &plan, &kernel, &fresh).await;
    match fresh.remove() {
        Ok(0) => {}
        Ok(left) => eprintln!("retry-agent: {left} processes of the command go on, unwatched"),
        Err(error) => eprintln!("retry-agent: {error}"),
    }
    outcome
}

async fn follow(args: &ExecArgs, plan: &Plan, kernel: &Arc<Kernel>, fresh: &Fresh) -> Result<ExitCode> {
    kernel.attach(fresh.path())?;
    let devices = kernel.follow_devices(fresh.path())?;
    let mut signals = Signals::new().context("cannot listen to signals")?;
    let mut child = start(args, fresh)?;
    let name = format!("exec-{}", child.id().unwrap_or(0));
    let status = wait(&mut child, kernel, &devices, &mut signals).await?;
    let mut workloads = Workloads::new(fresh.path(), &name);
    workloads.refresh();
    let budget = BudgetSpec(plan.rules).to_string();
    let report =
        Report::new(plan.mode.label(), budget, &plan.config, &kernel.edges()?, &kernel.fails()?, &workloads);
    for problem in devices.problems() {
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

/// Signals that are handed on. SIGINT and SIGQUIT come from a terminal to the whole process group: the command
/// gets them itself, and we must not die of them before it.
struct Signals {
    forwarded: Vec<(i32, Signal)>,
    ignored: Vec<Signal>,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        let forwarded = kinds.into_iter().map(|kind| Ok((kind.as_raw_value(), signal(kind)?)));
        let ignored = [SignalKind::interrupt(), SignalKind::quit()].into_iter().map(signal);
        Ok(Self {
            forwarded: forwarded.collect::<std::io::Result<_>>()?,
            ignored: ignored.collect::<std::io::Result<_>>()?,
        })
    }

    /// The next signal to hand on.
    async fn next(&mut self) -> i32 {
        std::future::poll_fn(|context| {
            for ignored in &mut self.ignored {
                while ignored.poll_recv(context).is_ready() {}
            }
            for (number, signal) in &mut self.forwarded {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

async fn wait(
    child: &mut Child,
    kernel: &Kernel,
    devices: &Devices,
    signals: &mut Signals,
) -> Result<ExitStatus> {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut events = kernel.events()?;
    loop {
        tokio::select! {
            status = child.wait() => return status.context("cannot wait for the command"),
            _ = beats.tick() => kernel.beat()?,
            number = signals.next() => forward(child, number),
            events = events.next() => {
                for event in events? {
                    if event.kind == EventKind::NewEdge as u32 || event.kind == EventKind::Uncovered as u32 {
                        devices.look_at(event.process);
                    }
                }
            }
        }
    }
}

fn forward(child: &Child, number: i32) {
    let Some(process) = child.id() else { return };
    if let Err(error) = crate::kernel::send_signal(process, number) {
        eprintln!("retry-agent: cannot hand on signal {number}: {error}");
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
