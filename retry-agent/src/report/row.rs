//! One row per edge and protocol: what was counted, under the names that people know.
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use retry_common::abi::{Config, Edge, EdgeCounter, EdgeKey};
use serde::Serialize;

use crate::config::Treatment;
use crate::workload::Workloads;

/// Results of a connection.
pub const RESULTS: [EdgeCounter; 5] = [
    EdgeCounter::Established,
    EdgeCounter::Refused,
    EdgeCounter::ResetEarly,
    EdgeCounter::TimedOut,
    EdgeCounter::ConnectDenied,
];

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
    /// The budget that holds here.
    #[serde(skip)]
    pub budget: &'static str,
    /// Retries that would pass now, in thousandths; none where there is no limit.
    #[serde(skip)]
    pub balance: Option<u64>,
}

impl Row {
    /// Retries of any evidence.
    pub fn all_retries(&self) -> u64 {
        self.retries.values().sum()
    }

    /// Adds the counts of a row of the same name.
    fn absorb(&mut self, other: Self) {
        fn add<K: Ord>(to: &mut BTreeMap<K, u64>, from: BTreeMap<K, u64>) {
            for (name, count) in from {
                *to.entry(name).or_default() += count;
            }
        }
        add(&mut self.connections, other.connections);
        add(&mut self.retries, other.retries);
        add(&mut self.failures, other.failures);
        self.calls += other.calls;
        self.attempts += other.attempts;
        self.denied += other.denied;
        self.would_deny += other.would_deny;
        self.uncovered += other.uncovered;
        self.spared += other.spared;
        self.opaque += other.opaque;
        self.balance = self.balance.zip(other.balance).map(|(one, more)| one + more);
        if self.host != other.host {
            self.host = None;
        }
    }
}

/// Rows in the order of their names. Edges of the same name (a restarted container has another cgroup) make one.
#[derive(Clone, Debug, Default)]
pub struct Rows(BTreeMap<(String, String, &'static str), Row>);

impl Rows {
    /// Adds a row, or its counts to the row of the same name.
    pub fn add(&mut self, row: Row) {
        let name = (row.workload.clone(), row.destination.clone(), row.protocol);
        match self.0.get_mut(&name) {
            Some(known) => known.absorb(row),
            None => _ = self.0.insert(name, row),
        }
    }

    /// Drops the rows that are not wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(&Row) -> bool) {
        self.0.retain(|_, row| wanted(row));
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<Row> {
        self.0.into_values().collect()
    }
}

/// The rows of an edge under its treatment; `now_ms` of the monotonic clock.
pub fn rows(
    key: &EdgeKey,
    edge: &Edge,
    config: &Config,
    workloads: &Workloads,
    treatment: &Treatment,
    now_ms: u64,
) -> Vec<Row> {
    let count = |counter| edge.count(counter);
    let base = Row {
        workload: workloads.name(key.workload),
        destination: destination(key),
        host: host(edge),
        budget: treatment.budget_name(),
        balance: edge.budget.balance(&treatment.budget.0, now_ms),
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
        row.connections = RESULTS.map(|counter| (counter.label(), count(counter))).into();
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

/// The edge of any workload to an address with a port, if the text is one.
pub fn address(text: &str) -> Option<EdgeKey> {
    let address: SocketAddr = text.parse().ok()?;
    let words = |bytes: [u8; 16]| {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_ne_bytes(*bytes);
        }
        words
    };
    Some(match address.ip().to_canonical() {
        IpAddr::V4(ip) => EdgeKey::v4(0, u32::from_ne_bytes(ip.octets()), address.port()),
        IpAddr::V6(ip) => EdgeKey::v6(0, words(ip.octets()), address.port()),
    })
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
