//! Reading the agent's own figures: one GET of `/metrics`, the text format of Prometheus, sums per workload.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::Sub;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

/// How long the agent may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One line of the exposition.
#[derive(Debug, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// The agent's counters at one moment.
pub struct Snapshot(Vec<Sample>);

/// What the agent counted for one workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// First attempts.
    pub calls: u64,
    /// Repeated attempts, denied ones included.
    pub retries: u64,
    /// Retries that were answered in the kernel.
    pub denied: u64,
}

impl Counts {
    /// Everything the workload sent.
    pub fn attempts(&self) -> u64 {
        self.calls + self.retries
    }

    /// What went on to the destination.
    pub fn passed(&self) -> u64 {
        self.attempts().saturating_sub(self.denied)
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(before.calls),
            retries: self.retries.saturating_sub(before.retries),
            denied: self.denied.saturating_sub(before.denied),
        }
    }
}

impl Snapshot {
    /// Asks the agent.
    ///
    /// # Errors
    /// When it does not answer with 200 and the text format.
    pub fn take(agent: SocketAddr) -> Result<Self> {
        let (status, body) = get(agent, "/metrics").context("cannot read the agent's metrics")?;
        if status != 200 {
            bail!("the agent answered /metrics with {status}");
        }
        body.lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(sample)
            .collect::<Result<_>>()
            .map(Self)
    }

    /// The counts of one workload, over all its destinations.
    pub fn of(&self, workload: &str) -> Counts {
        let sum = |name: &str| {
            let lines = self.0.iter().filter(|sample| sample.name == name);
            let own = lines.filter(|sample| sample.labels.get("workload").is_some_and(|own| own == workload));
            own.map(|sample| sample.value).sum::<f64>() as u64
        };
        Counts {
            calls: sum("retry_agent_calls_total"),
            retries: sum("retry_agent_retries_total"),
            denied: sum("retry_agent_retries_denied_total"),
        }
    }

    /// The workloads of which at least one retry went on to its destination.
    pub fn retrying(&self) -> Vec<String> {
        let all: std::collections::BTreeSet<&String> =
            self.0.iter().filter_map(|sample| sample.labels.get("workload")).collect();
        let passes = |workload: &str| {
            let counts = self.of(workload);
            counts.retries > counts.denied
        };
        all.into_iter().filter(|workload| passes(workload)).cloned().collect()
    }
}

/// Status and body of a GET.
///
/// # Errors
/// When nobody answers in time, or not in HTTP.
pub fn get(server: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)
        .with_context(|| format!("cannot connect to {server}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // HTTP/1.0, so that the body comes in one piece and the end of the connection ends it.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {server}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(|| format!("no answer of {server} to {path}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without an end of its head")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.context("an answer without a status")?, body.to_owned()))
}

fn sample(line: &str) -> Result<Sample> {
    let read = || {
        let name_end = line.find(['{', ' '])?;
        let (name, rest) = line.split_at(name_end);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (BTreeMap::new(), rest),
        };
        let value = rest.split_whitespace().next()?.parse().ok()?;
        Some(Sample { name: name.to_owned(), labels, value })
    };
    read().with_context(|| format!("no sample of the text format: {line:?}"))
}

/// The labels up to the closing brace, and what comes after it.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        loop {
            match chars.next()? {
                (at, '"') => {
                    rest = &quoted[at + 1..];
                    break;
                }
                (_, '\\') => match chars.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        }
        labels.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(text: &str) -> Snapshot {
        Snapshot(text.lines().map(|line| sample(line).unwrap()).collect())
    }

    #[test]
    fn samples_are_read_with_their_labels() {
        for (line, name, label, value) in [
            ("up 1", "up", None, 1.0),
            ("up{} 1 1700000000", "up", None, 1.0),
            (r#"a_total{workload="x",le="+Inf"} 2.5"#, "a_total", Some("x"), 2.5),
            (r#"a_total{workload="a \"b\" {c}, \\d",} 3"#, "a_total", Some(r#"a "b" {c}, \d"#), 3.0),
        ] {
            let sample = sample(line).unwrap();
            assert_eq!(sample.name, name, "{line}");
            assert_eq!(sample.labels.get("workload").map(String::as_str), label, "{line}");
            assert!((sample.value - value).abs() < 1e-9, "{line}");
        }
    }

    #[test]
    fn what_is_no_sample_is_an_error() {
        for line in ["up", "up{a=\"b} 1", "up{a} 1", "up x"] {
            assert!(sample(line).is_err(), "{line}");
        }
    }

    #[test]
    fn counts_are_sums_over_destinations_and_evidence() {
        let snapshot = snapshot(
            r#"retry_agent_calls_total{workload="a",destination="x",protocol="http1"} 5
retry_agent_calls_total{workload="a",destination="y",protocol="http1"} 2
retry_agent_calls_total{workload="ab",destination="y",protocol="http1"} 100
retry_agent_retries_total{workload="a",destination="x",protocol="http1",evidence="repetition"} 4
retry_agent_retries_total{workload="a",destination="x",protocol="tcp",evidence="connection"} 1
retry_agent_retries_total{workload="b",destination="x",protocol="http1",evidence="repetition"} 3
retry_agent_retries_denied_total{workload="a",destination="x",protocol="http1",budget="share"} 3
retry_agent_retries_denied_total{workload="b",destination="x",protocol="http1",budget="none"} 3"#,
        );
        let counts = snapshot.of("a");
        assert_eq!(counts, Counts { calls: 7, retries: 5, denied: 3 });
        assert_eq!((counts.attempts(), counts.passed()), (12, 9));
        assert_eq!(snapshot.retrying(), ["a"], "all retries of b were denied");
    }
}
