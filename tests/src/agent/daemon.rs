//! `retry-agent run` with a configuration, ready when the test gets it and stopped when it is dropped.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::Agent;
use crate::process::{Ended, Running};
use crate::scrape::{self, Samples};
use crate::{scratch_file, wait};

/// How long the daemon may take to detach and go.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    running: Option<Running>,
    config: PathBuf,
    metrics: SocketAddr,
}

impl Daemon {
    /// Starts it with this configuration, to which the address of the metrics is added, and waits until it says
    /// that it is ready.
    ///
    /// # Panics
    /// When it ends or is not ready in time.
    pub fn start(agent: &Agent, config: &str) -> Self {
        Self::start_by(agent, config, |command| command)
    }

    /// The same, with the command line changed first, such as to run in a namespace.
    ///
    /// # Panics
    /// When it ends or is not ready in time.
    pub fn start_by(agent: &Agent, config: &str, change: impl FnOnce(Command) -> Command) -> Self {
        let metrics = Self::free_address();
        let path = scratch_file("config");
        fs::write(&path, format!("metrics: {metrics}\n{config}")).expect("scratch files can be written");
        let mut command = agent.command(&["run", "--config"]);
        command.arg(&path);
        let mut running = Running::start(&mut change(command));
        let ready = wait::within(wait::PATIENCE, || {
            let ready = matches!(scrape::get(metrics, "/readyz"), Ok((200, _)));
            (ready || !running.is_alive()).then_some(ready)
        });
        if ready != Some(true) {
            running.signal(libc::SIGKILL);
            panic!("the daemon is not ready: {:?}", running.wait(STOP_LIMIT));
        }
        Self { running: Some(running), config: path, metrics }
    }

    /// A loopback address nobody listens on just now.
    ///
    /// # Panics
    /// When there is none.
    pub fn free_address() -> SocketAddr {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        taken.local_addr().expect("a bound socket has an address")
    }

    /// Where it serves its metrics.
    pub fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// Its numbers now.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn scrape(&self) -> Samples {
        let (status, text) = scrape::get(self.metrics, "/metrics").expect("the daemon answers");
        assert_eq!(status, 200, "{text}");
        Samples::parse(&text)
    }

    /// Ends it without a chance to clean up.
    ///
    /// # Panics
    /// When it does not end.
    pub fn kill(mut self) {
        let running = self.running.take().expect("ended once");
        running.signal(libc::SIGKILL);
        running.wait(STOP_LIMIT);
    }

    /// Asks it to stop, waits for the end, and insists on a clean one.
    ///
    /// # Panics
    /// When it hangs or ends with another status than 0.
    pub fn stop(mut self) -> Ended {
        let running = self.running.take().expect("stopped once");
        running.signal(libc::SIGTERM);
        let ended = running.wait(STOP_LIMIT);
        ended.assert_success();
        ended
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // After a failed assertion: it must still detach. If it hangs, `Running` kills it.
            running.signal(libc::SIGTERM);
            let mut running = running;
            wait::within(STOP_LIMIT, || (!running.is_alive()).then_some(()));
        }
        // Nothing depends on it any more.
        let _ = fs::remove_file(&self.config);
    }
}
