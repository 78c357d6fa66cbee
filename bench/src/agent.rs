//! The agent around the client, and its own word on what it did. A run in which it saw other requests than the
//! client sent, or denied others than it should have, measured something else: that is an error, not a figure.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::cpus::{Cpus, pinned};
use crate::setup::{Load, Setup};
use crate::wrk::Seen;

/// The part of a denied run's requests that the kernel must have answered, percent: the origin answers those
/// that are on their way before its first 503 is read.
const DENIED_AT_LEAST_PERCENT: u64 = 99;

/// What the agent counted over all edges, HTTP only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests sent.
    pub attempts: u64,
    /// Of those, answered by the kernel.
    pub denied: u64,
}

/// `wrk` with these arguments on the load's CPU; where a setup has the agent, inside `retry-agent exec` on the
/// other CPU.
pub fn around_wrk(setup: Setup, agent: &Path, report: &Path, cpus: &Cpus, wrk: &[OsString]) -> Command {
    let Some(args) = setup.agent_args() else {
        let mut command = pinned(cpus.load, "wrk");
        command.args(wrk);
        return command;
    };
    let mut command = pinned(cpus.rest, agent);
    command.arg("exec").args(args).arg("--json").arg(report).arg("--");
    command.args(["taskset", "--cpu-list", &cpus.load.to_string(), "wrk"]).args(wrk);
    command
}

/// Reads the report that `retry-agent exec --json` wrote.
///
/// # Errors
/// When it is missing or unreadable.
pub fn counted(report: &Path) -> Result<Counted> {
    let text = fs::read_to_string(report).with_context(|| format!("cannot read {}", report.display()))?;
    parse(&text).with_context(|| format!("cannot read {}", report.display()))
}

/// Whether the run was what its setup says.
///
/// # Errors
/// With the first thing that was not.
pub fn confirm(setup: Setup, load: Load, seen: &Seen, counted: Option<Counted>) -> Result<()> {
    if seen.socket_errors > 0 {
        bail!("{} connections of the client failed", seen.socket_errors);
    }
    let should_fail = if setup.failing_origin() { seen.answers } else { 0 };
    if seen.failures != should_fail {
        bail!("{} of {} answers were failures instead of {should_fail}", seen.failures, seen.answers);
    }
    let Some(Counted { attempts, denied }) = counted else { return Ok(()) };
    // At its end wrk drops the requests that are under way, at most one on each connection.
    if attempts < seen.answers || attempts > seen.answers + u64::from(load.connections) {
        bail!("the agent counted {attempts} requests, the client had {} answers", seen.answers);
    }
    match setup {
        Setup::Denied if denied * 100 < attempts * DENIED_AT_LEAST_PERCENT => {
            bail!("only {denied} of {attempts} requests were denied")
        }
        Setup::Observe | Setup::Enforce if denied > 0 => bail!("{denied} requests were denied"),
        _ => Ok(()),
    }
}

/// The report, as far as it matters here.
#[derive(Deserialize)]
struct Report {
    edges: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    protocol: String,
    attempts: u64,
    denied: u64,
}

fn parse(text: &str) -> Result<Counted> {
    let report: Report = serde_json::from_str(text)?;
    let http = report.edges.iter().filter(|edge| edge.protocol == "http1");
    Ok(http.fold(Counted::default(), |sum, edge| Counted {
        attempts: sum.attempts + edge.attempts,
        denied: sum.denied + edge.denied,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { connections: 16, head_bytes: 55 };

    fn seen(answers: u64, failures: u64) -> Seen {
        Seen { answers, duration_us: 1, socket_errors: 0, failures }
    }

    #[test]
    fn only_http_rows_are_counted() {
        let row =
            |protocol: &str| format!(r#"{{"protocol":"{protocol}","attempts":7,"denied":2,"calls":5}}"#);
        let text = format!(r#"{{"schema":1,"edges":[{},{},{}]}}"#, row("http1"), row("tcp"), row("http1"));
        assert_eq!(parse(&text).unwrap(), Counted { attempts: 14, denied: 4 });
        assert!(parse("{}").is_err());
    }

    #[test]
    fn a_run_that_was_something_else_is_an_error() {
        let check = |setup, seen: Seen, counted: Option<(u64, u64)>, expected: &str| {
            let counted = counted.map(|(attempts, denied)| Counted { attempts, denied });
            let result = confirm(setup, LOAD, &seen, counted);
            assert_eq!(result.err().map(|error| error.to_string()).unwrap_or_default(), expected);
        };
        check(Setup::Bare, seen(100, 0), None, "");
        check(Setup::Observe, seen(100, 0), Some((116, 0)), "");
        check(Setup::Denied, seen(100, 100), Some((100, 99)), "");
        let errors = Seen { socket_errors: 2, ..seen(100, 0) };
        check(Setup::Bare, errors, None, "2 connections of the client failed");
        check(Setup::Bare, seen(100, 1), None, "1 of 100 answers were failures instead of 0");
        check(Setup::Denied, seen(100, 1), None, "1 of 100 answers were failures instead of 100");
        let missed = "the agent counted 0 requests, the client had 100 answers";
        check(Setup::Observe, seen(100, 0), Some((0, 0)), missed);
        let twice = "the agent counted 200 requests, the client had 100 answers";
        check(Setup::Observe, seen(100, 0), Some((200, 0)), twice);
        check(Setup::Enforce, seen(100, 0), Some((100, 1)), "1 requests were denied");
        check(Setup::Denied, seen(100, 100), Some((100, 98)), "only 98 of 100 requests were denied");
    }
}
