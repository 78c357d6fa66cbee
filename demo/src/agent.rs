//! The agent under demonstration: one `retry-agent run` for a subtree of control groups, with a configuration
//! written for the occasion.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::cgroup::Cgroup;
use crate::interrupt;
use crate::place::Place;
use crate::scrape::{self, Snapshot};

/// How long the agent may take until its programs are loaded and attached.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the agent may take to detach after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(5);

/// How many of its last lines are shown when it fails.
const LAST_WORDS: usize = 12;

/// A cap on the retries of one workload.
pub struct Cap<'a> {
    /// The workload's control group.
    pub workload: &'a Cgroup,
    /// As in the agent's configuration.
    pub budget: &'static str,
    /// What a denied client is told to wait, seconds.
    pub retry_after_s: u32,
}

/// A running agent; it detaches and ends when it is dropped.
pub struct Agent {
    child: Child,
    metrics: SocketAddr,
    log: std::path::PathBuf,
}

impl Agent {
    /// Starts an agent that observes everything below `subtree` and enforces `caps`; returns when it is ready.
    ///
    /// # Errors
    /// When it cannot be started, ends, or does not become ready; the message has its last words.
    pub fn start(place: &Place, name: &str, subtree: &Cgroup, caps: &[Cap]) -> Result<Self> {
        let metrics = free_address()?;
        let config = place.output.join(format!("{name}.yaml"));
        fs::write(&config, configuration(subtree, metrics, caps))
            .with_context(|| format!("cannot write {}", config.display()))?;
        let log = place.log(&format!("agent-{name}"));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(&place.agent);
        command.arg("run").arg("--config").arg(&config);
        command.stdin(Stdio::null()).stdout(file.try_clone().context("cannot share a log")?).stderr(file);
        // Ctrl-C at the terminal is for the demo, which then ends the agent in order.
        command.process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start {}", place.agent.display()))?;
        let mut agent = Self { child, metrics, log };
        agent.wait_until_ready()?;
        Ok(agent)
    }

    /// Its counters now.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn scrape(&self) -> Result<Snapshot> {
        Snapshot::take(self.metrics)
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// When it does not detach by itself, or with another status than 0.
    pub fn stop(mut self) -> Result<()> {
        match self.terminate() {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the agent ended with {status}; {}", self.last_words()),
            None => bail!("the agent did not end within {} s after SIGTERM", FAREWELL.as_secs()),
        }
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !matches!(scrape::get(self.metrics, "/readyz"), Ok((200, _))) {
            if let Ok(Some(status)) = self.child.try_wait() {
                bail!("the agent ended with {status} before it was ready; {}", self.last_words());
            }
            if Instant::now() > deadline {
                bail!("the agent was not ready within {} s; {}", PATIENCE.as_secs(), self.last_words());
            }
            interrupt::glance(deadline)?;
        }
        Ok(())
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
        format!("its last words, from {}:\n    {}", self.log.display(), last.join("\n    "))
    }

    /// SIGTERM, then patience, then SIGKILL; the status if it ended by itself.
    fn terminate(&mut self) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // SAFETY: kill takes two integers; the pid is our child's, which was not waited for yet.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(20));
        }
        self.child.kill().ok();
        self.child.wait().ok();
        None
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.terminate();
    }
}

fn configuration(subtree: &Cgroup, metrics: SocketAddr, caps: &[Cap]) -> String {
    let mut text = format!(
        "# Written by the demo.\ncgroup: /{}\nmetrics: {metrics}\nwindow: 60s\n\
         default: {{ mode: observe, budget: unlimited }}\n",
        subtree.name()
    );
    if !caps.is_empty() {
        text.push_str("rules:\n");
    }
    for Cap { workload, budget, retry_after_s } in caps {
        let workload = workload.name();
        let name = workload.replace('/', "-");
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "  - name: {name}\n    match: {{ workload: \"{workload}\" }}\n    mode: enforce\n    \
             budget: {budget}\n    act_on: repetition\n    retry_after: {retry_after_s}s\n"
        );
    }
    text
}

/// An address of this host on which nobody listens. Another process could take it before the agent does; the
/// agent then says so and ends.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port")?;
    listener.local_addr().context("a listener without an address")
}
