//! What `exec --json` writes. A field the agent stops writing fails the tests here.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    pub schema: u32,
    pub mode: String,
    pub window_ms: u64,
    pub edges: Vec<Edge>,
    /// What the kernel side could not do, by reason.
    pub kernel: BTreeMap<String, u64>,
}

/// One workload calling one destination.
#[derive(Clone, Debug, Deserialize)]
pub struct Edge {
    pub workload: String,
    pub destination: String,
    pub host: Option<String>,
    pub protocol: String,
    pub connections: BTreeMap<String, u64>,
    pub calls: u64,
    pub attempts: u64,
    pub retries: BTreeMap<String, u64>,
    pub denied: u64,
    pub would_deny: u64,
    pub failures: BTreeMap<String, u64>,
    pub uncovered: u64,
    pub opaque: u64,
}

impl Report {
    /// Reads the file's text.
    ///
    /// # Errors
    /// When a field is missing or has another type.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl Edge {
    /// Retries with this evidence.
    pub fn retries_by(&self, evidence: &str) -> u64 {
        self.retries.get(evidence).copied().unwrap_or(0)
    }

    /// Retries with any evidence.
    pub fn all_retries(&self) -> u64 {
        self.retries.values().sum()
    }

    /// Failures with this outcome.
    pub fn failures_by(&self, outcome: &str) -> u64 {
        self.failures.get(outcome).copied().unwrap_or(0)
    }

    /// Failures that happened, without the outcomes that count nothing.
    pub fn failures_seen(&self) -> Vec<(&str, u64)> {
        self.failures.iter().filter(|(_, n)| **n > 0).map(|(name, n)| (name.as_str(), *n)).collect()
    }

    /// Connections that ended up so.
    pub fn connections_by(&self, result: &str) -> u64 {
        self.connections.get(result).copied().unwrap_or(0)
    }
}
