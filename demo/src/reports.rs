//! What the programs of `demo/services` say of themselves when asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a server received.
#[derive(Deserialize)]
pub struct Received {
    /// Requests per target: every attempt that arrived.
    pub attempts: BTreeMap<String, u64>,
    /// Targets that a leaf, although it was well, answered 503 once.
    #[serde(default)]
    pub hiccups: Vec<String>,
    /// First requests for a target, per second of the story.
    #[serde(default)]
    pub first: Vec<u64>,
    /// Requests for a target that had been asked for before, per second.
    #[serde(default)]
    pub repeated: Vec<u64>,
}

impl Received {
    /// Requests whose target begins with `prefix`.
    pub fn below(&self, prefix: &str) -> u64 {
        self.attempts.iter().filter(|(target, _)| target.starts_with(prefix)).map(|(_, count)| count).sum()
    }
}

/// What became of the calls of a load.
#[derive(Clone, Deserialize, Serialize)]
pub struct Made {
    /// Calls made.
    pub calls: u64,
    /// Calls begun, per second of the story.
    pub started: Vec<u64>,
    /// How they ended: status, or name of an error → calls.
    pub outcomes: BTreeMap<String, u64>,
    /// Duration of a call with all its attempts and pauses.
    pub median_ms: f64,
    /// The longest of them.
    pub worst_ms: f64,
    /// By how much the latest call began later than planned.
    pub late_ms: f64,
}

/// How many requests a server has received so far.
#[derive(Deserialize)]
pub struct Count {
    pub requests: u64,
}
