//! The agent as a child of a test: one command under `exec`, or the daemon.

mod daemon;
mod report;

pub use daemon::Daemon;
pub use report::{Edge, Report};

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::process::{self, Ended, Running};
use crate::scratch_file;

/// The binary under test.
#[derive(Clone, Debug)]
pub struct Agent {
    path: PathBuf,
}

impl Agent {
    /// The binary at `path`.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The binary with these arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(args);
        command
    }

    /// One command in observe mode.
    pub fn observe(&self) -> Exec {
        self.exec(&["--mode", "observe"])
    }

    /// One command whose excess retries are denied.
    pub fn enforce(&self, budget: &str) -> Exec {
        self.exec(&["--mode", "enforce", "--budget", budget])
    }

    /// One command, with options of `exec`.
    pub fn exec(&self, options: &[&str]) -> Exec {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Exec { agent: self.clone(), options, limit: process::LIMIT }
    }
}

/// A run of `retry-agent exec` in preparation.
#[derive(Clone, Debug)]
pub struct Exec {
    agent: Agent,
    options: Vec<String>,
    limit: Duration,
}

impl Exec {
    /// One more option of `exec` with its value.
    #[must_use]
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Another deadline than the usual one.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The whole command line, with the report going to `report`.
    pub fn command(&self, inner: &Command, report: &std::path::Path) -> Command {
        let mut command = self.agent.command(&["exec"]);
        command.args(&self.options).arg("--json").arg(report).arg("--");
        command.arg(inner.get_program()).args(inner.get_args());
        command
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(&self, inner: &Command) -> Started {
        let report = scratch_file("report");
        Started { running: Running::start(&mut self.command(inner, &report)), report, limit: self.limit }
    }

    /// Runs it to the end.
    ///
    /// # Panics
    /// When it hangs or leaves no report.
    #[track_caller]
    pub fn run(&self, inner: &Command) -> Finished {
        self.start(inner).finish()
    }

    /// Runs a command that is to succeed.
    ///
    /// # Panics
    /// When it does not, hangs or leaves no report.
    #[track_caller]
    pub fn run_well(&self, inner: &Command) -> Finished {
        let finished = self.run(inner);
        finished.ended.assert_success();
        finished
    }
}

/// A run of `retry-agent exec` on its way.
#[derive(Debug)]
pub struct Started {
    /// The agent.
    pub running: Running,
    report: PathBuf,
    limit: Duration,
}

impl Started {
    /// Waits for the end and reads the report.
    ///
    /// # Panics
    /// When it hangs or leaves no report.
    #[track_caller]
    pub fn finish(self) -> Finished {
        let ended = self.running.wait(self.limit);
        let text = fs::read_to_string(&self.report);
        // It is not there when the agent failed early; the next line says so.
        let _ = fs::remove_file(&self.report);
        let text = text.unwrap_or_else(|error| panic!("no report ({error}) from {ended:?}"));
        let report = Report::parse(&text).unwrap_or_else(|error| panic!("{error} in the report {text}"));
        Finished { ended, report }
    }
}

/// A command that ran under the agent.
#[derive(Debug)]
pub struct Finished {
    pub ended: Ended,
    pub report: Report,
}

impl Finished {
    /// The requests to this destination.
    ///
    /// # Panics
    /// When there is no such edge or more than one.
    #[track_caller]
    pub fn edge(&self, destination: SocketAddr) -> &Edge {
        self.edge_of("http1", destination)
    }

    /// The connections to this destination that carried no request the agent can read.
    ///
    /// # Panics
    /// When there is no such edge or more than one.
    #[track_caller]
    pub fn tcp_edge(&self, destination: SocketAddr) -> &Edge {
        self.edge_of("tcp", destination)
    }

    #[track_caller]
    fn edge_of(&self, protocol: &str, destination: SocketAddr) -> &Edge {
        let destination = destination.to_string();
        let wanted = |edge: &&Edge| edge.protocol == protocol && edge.destination == destination;
        let mut found = self.report.edges.iter().filter(wanted);
        match (found.next(), found.next()) {
            (Some(edge), None) => edge,
            (None, _) => {
                panic!("no {protocol} edge to {destination} in {:#?}, {:?}", self.report, self.ended)
            }
            _ => panic!("two {protocol} edges to {destination} in {:#?}", self.report),
        }
    }

    /// What the kernel side could not do, for this reason.
    pub fn kernel(&self, reason: &str) -> u64 {
        self.report.kernel.get(reason).copied().unwrap_or(0)
    }
}
