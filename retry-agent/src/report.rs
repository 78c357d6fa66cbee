//! What was counted, edge by edge: rows for the table, the JSON file and the metrics.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use retry_common::abi::{Config, Edge, EdgeCounter, EdgeKey, Fail};
use serde::Serialize;

use crate::workload::Workloads;

/// Version of the JSON layout (docs/configuration.md).
const SCHEMA: u32 = 1;

/// Everything that was counted.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    schema: u32,
    mode: &'static str,
    budget: String,
    window_ms: u64,
    /// One row per edge and protocol.
    pub edges: Vec<Row>,
    kernel: BTreeMap<&'static str, u64>,
}

/// Counts of one edge in one protocol.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Who calls.
    pub workload: String,
    /// Address and port that are called.
    pub destination: String,
    /// The name that the requests give it; none if they differ.
    pub host: Option<String>,
    /// `http1`, or `tcp` for connections that carry no readable request.
    pub protocol: &'static str,
    /// Connections by result; on one row per edge only.
    pub connections: BTreeMap<&'static str, u64>,
    /// First attempts.
    pub calls: u64,
    /// All attempts, denied ones too.
    pub attempts: u64,
    /// Retries by evidence.
    pub retries: BTreeMap<&'static str, u64>,
    /// Attempts answered in the kernel.
    pub denied: u64,
    /// Attempts that enforce mode would have answered.
    pub would_deny: u64,
    /// Failures by outcome.
    pub failures: BTreeMap<String, u64>,
    /// Excess retries that passed for want of a reflector on their device.
    pub uncovered: u64,
    /// Excess retries that passed because a denial would not have been clean.
    pub spared: u64,
    /// Connections that carry something else than HTTP/1.
    pub opaque: u64,
}

impl Report {
    /// The report on these edges.
    pub fn new(
        mode: &'static str,
        budget: String,
        config: &Config,
        edges: &[(EdgeKey, Edge)],
        fails: &[u64; Fail::COUNT],
        workloads: &Workloads,
    ) -> Self {
        let mut rows: Vec<Row> =
            edges.iter().flat_map(|(key, edge)| rows(key, edge, config, workloads)).collect();
        rows.sort_by(|a, b| {
            (&a.workload, &a.destination, a.protocol).cmp(&(&b.workload, &b.destination, b.protocol))
        });
        let kernel = Fail::ALL.iter().zip(fails).filter(|(_, count)| **count != 0);
        Self {
            schema: SCHEMA,
            mode,
            budget,
            window_ms: config.window_ms,
            edges: rows,
            kernel: kernel.map(|(fail, count)| (fail.label(), *count)).collect(),
        }
    }

    /// The table for people.
    pub fn table(&self) -> String {
        let mut text = format!("retry-agent: mode {}, budget {}\n", self.mode, self.budget);
        if self.edges.is_empty() {
            text += "no outgoing TCP connection was made\n";
            return text;
        }
        let rows: Vec<[String; 9]> = self.edges.iter().map(Row::cells).collect();
        let header = [
            "workload",
            "destination",
            "protocol",
            "calls",
            "retries",
            "ratio",
            "denied",
            "would deny",
            "failures",
        ];
        let width = |at: usize| {
            rows.iter().map(|row| row[at].chars().count()).chain([header[at].len()]).max().unwrap_or(0)
        };
        let widths: [usize; 9] = std::array::from_fn(width);
        for row in std::iter::once(header.map(str::to_owned)).chain(rows.clone()) {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths) {
                // Writing to a string cannot fail.
                let _ = write!(line, "{cell:width$}  ");
            }
            text += line.trim_end();
            text.push('\n');
        }
        text += "retry ratio = retries / calls; 10.0 % means 1.10 x the calls\n";
        text
    }
}

impl Row {
    /// Retries of any evidence.
    pub fn all_retries(&self) -> u64 {
        self.retries.values().sum()
    }

    fn cells(&self) -> [String; 9] {
        let list = |counts: Vec<(&str, u64)>| {
            let used: Vec<String> =
                counts.into_iter().filter(|(_, n)| *n != 0).map(|(name, n)| format!("{name} {n}")).collect();
            if used.is_empty() { "-".to_owned() } else { used.join(", ") }
        };
        let destination = match &self.host {
            Some(host) if *host != self.destination => format!("{} ({host})", self.destination),
            _ => self.destination.clone(),
        };
        [
            self.workload.clone(),
            destination,
            self.protocol.to_owned(),
            self.calls.to_string(),
            list(self.retries.iter().map(|(name, count)| (*name, *count)).collect()),
            ratio(self.all_retries(), self.calls),
            self.denied.to_string(),
            self.would_deny.to_string(),
            list(self.failures.iter().map(|(name, count)| (name.as_str(), *count)).collect()),
        ]
    }
}

#[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
fn ratio(retries: u64, calls: u64) -> String {
    if calls == 0 { "-".to_owned() } else { format!("{:.1} %", retries as f64 * 100.0 / calls as f64) }
}

fn rows(key: &EdgeKey, edge: &Edge, config: &Config, workloads: &Workloads) -> Vec<Row> {
    let count = |counter| edge.count(counter);
    let base = Row {
        workload: workloads.name(key.workload),
        destination: destination(key),
        host: host(edge),
        ..Row::default()
    };
    let mut rows = Vec::new();
    if count(EdgeCounter::HttpAttempts) != 0 {
        rows.push(http1(edge, config, base.clone()));
    }
    if count(EdgeCounter::TcpAttempts) != 0 || (rows.is_empty() && count(EdgeCounter::Established) != 0) {
        rows.push(tcp(edge, base));
    }
    if let Some(row) = rows.first_mut() {
        row.connections = [
            EdgeCounter::Established,
            EdgeCounter::Refused,
            EdgeCounter::ResetEarly,
            EdgeCounter::TimedOut,
            EdgeCounter::ConnectDenied,
        ]
        .map(|counter| (counter.label(), count(counter)))
        .into();
    }
    rows
}

fn http1(edge: &Edge, config: &Config, base: Row) -> Row {
    let count = |counter| edge.count(counter);
    let retries = [
        ("repetition", count(EdgeCounter::HttpRepetition)),
        ("connection", count(EdgeCounter::HttpConnection)),
    ];
    let mut failures: BTreeMap<String, u64> = [
        ("reset", EdgeCounter::HttpReset),
        ("eof", EdgeCounter::HttpEof),
        ("abandoned", EdgeCounter::HttpAbandoned),
    ]
    .map(|(name, counter)| (name.to_owned(), count(counter)))
    .into();
    for (status, count) in
        config.failure_statuses.iter().zip(edge.statuses).filter(|(status, _)| **status != 0)
    {
        failures.insert(format!("status_{status}"), count);
    }
    Row {
        protocol: "http1",
        uncovered: count(EdgeCounter::Uncovered),
        spared: count(EdgeCounter::Spared),
        denied: count(EdgeCounter::HttpDenied),
        would_deny: count(EdgeCounter::HttpWouldDeny),
        failures,
        ..with_attempts(base, count(EdgeCounter::HttpAttempts), &retries)
    }
}

fn tcp(edge: &Edge, base: Row) -> Row {
    let count = |counter| edge.count(counter);
    let failures = [
        ("refused", EdgeCounter::Refused),
        ("reset", EdgeCounter::ResetEarly),
        ("connect_timeout", EdgeCounter::TimedOut),
        ("eof", EdgeCounter::TcpEof),
    ];
    Row {
        protocol: "tcp",
        opaque: count(EdgeCounter::Opaque),
        denied: count(EdgeCounter::TcpDenied),
        would_deny: count(EdgeCounter::TcpWouldDeny),
        failures: failures.map(|(name, counter)| (name.to_owned(), count(counter))).into(),
        ..with_attempts(
            base,
            count(EdgeCounter::TcpAttempts),
            &[("connection", count(EdgeCounter::TcpConnection))],
        )
    }
}

fn with_attempts(base: Row, attempts: u64, retries: &[(&'static str, u64)]) -> Row {
    let all: u64 = retries.iter().map(|(_, count)| count).sum();
    // Counters are read one by one while they grow: a retry may be seen before its attempt.
    Row { attempts, calls: attempts.saturating_sub(all), retries: retries.iter().copied().collect(), ..base }
}

/// Address and port as written in URLs.
pub fn destination(key: &EdgeKey) -> String {
    if key.workload == 0 {
        return "overflow".to_owned();
    }
    let mut bytes = [0; 16];
    for (to, word) in bytes.chunks_exact_mut(4).zip(key.address) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    let address = Ipv6Addr::from(bytes);
    let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
    SocketAddr::new(address, key.port).to_string()
}

/// The one name that the requests of an edge gave their destination.
pub fn host(edge: &Edge) -> Option<String> {
    if edge.host_mixed != 0 || edge.host_len == 0 {
        return None;
    }
    let bytes: Vec<u8> = edge.host.iter().flat_map(|word| word.to_le_bytes()).collect();
    let text = bytes.split(|byte| matches!(byte, b'\r' | b'\n' | 0)).next()?;
    // A Host is plain ASCII; anything else would only confuse a reader.
    let text = std::str::from_utf8(text).ok()?.trim();
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    plain.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use retry_common::abi::{FAILURE_STATUSES, HOST_LEN};

    fn edge(counters: &[(EdgeCounter, u64)]) -> Edge {
        let mut edge = Edge {
            lock: Default::default(),
            host_len: 0,
            budget: Default::default(),
            counters: [0; EdgeCounter::COUNT],
            statuses: [0; FAILURE_STATUSES],
            last_failure_ms: 0,
            last_used_ms: 0,
            host_hash: 0,
            host_mixed: 0,
            reserved: 0,
            host: [0; HOST_LEN / 8],
        };
        for (counter, count) in counters {
            edge.counters[*counter as usize] = *count;
        }
        edge
    }

    fn key() -> EdgeKey {
        EdgeKey::v4(7, u32::from_ne_bytes([127, 0, 0, 1]), 8080)
    }

    fn report(edge: Edge) -> Report {
        let config = Config::new(60_000, &[429, 503]);
        let workloads = Workloads::new(std::path::Path::new("/nowhere"), "");
        Report::new(
            "observe",
            "unlimited".to_owned(),
            &config,
            &[(key(), edge)],
            &[0; Fail::COUNT],
            &workloads,
        )
    }

    #[test]
    fn calls_are_attempts_without_retries() {
        let mut edge = edge(&[
            (EdgeCounter::HttpAttempts, 10),
            (EdgeCounter::HttpRepetition, 5),
            (EdgeCounter::HttpConnection, 1),
            (EdgeCounter::Established, 3),
        ]);
        edge.statuses[1] = 6;
        let report = report(edge);
        let [row] = report.edges.as_slice() else { panic!("{report:?}") };
        assert_eq!((row.calls, row.attempts, row.all_retries()), (4, 10, 6));
        assert_eq!(row.failures["status_503"], 6);
        assert_eq!(row.connections["established"], 3);
        let table = report.table();
        assert!(table.contains("150.0 %") && table.contains("repetition 5"), "{table}");
    }

    #[test]
    fn connections_are_counted_on_one_row_only() {
        let report = report(edge(&[
            (EdgeCounter::HttpAttempts, 1),
            (EdgeCounter::TcpAttempts, 2),
            (EdgeCounter::Refused, 2),
            (EdgeCounter::Established, 1),
        ]));
        let [http1, tcp] = report.edges.as_slice() else { panic!("{report:?}") };
        assert_eq!(http1.connections["refused"], 2);
        assert!(tcp.connections.is_empty());
        assert_eq!(tcp.failures["refused"], 2);
    }

    #[test]
    fn destinations_are_written_as_in_urls() {
        assert_eq!(destination(&key()), "127.0.0.1:8080");
        let loopback = EdgeKey::v6(7, [0, 0, 0, 1_u32.to_be()], 80);
        assert_eq!(destination(&loopback), "[::1]:80");
        assert_eq!(destination(&EdgeKey::OVERFLOW), "overflow");
    }

    #[test]
    fn a_host_is_shown_only_if_it_is_one() {
        let with = |text: &[u8]| {
            let mut edge = edge(&[]);
            edge.host_len = 8;
            for (word, bytes) in edge.host.iter_mut().zip(text.chunks(8)) {
                let mut eight = [0; 8];
                eight[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(eight);
            }
            host(&edge)
        };
        assert_eq!(with(b" a.example:8080\r\n").as_deref(), Some("a.example:8080"));
        assert_eq!(with(b" \x1b[31mred\r\n"), None);
        assert_eq!(with(b" \r\n"), None);
    }
}
