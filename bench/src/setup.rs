//! What is compared, and under which load.

use clap::ValueEnum;
use serde::Serialize;

/// How the client runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Setup {
    /// Without the agent.
    Bare,
    /// Watched: every request is read and counted.
    Observe,
    /// Under a budget, against a healthy origin: nothing is denied, everything is ready for it.
    Enforce,
    /// Without a budget for retries, against an origin that answers 503: from the second request on, the
    /// kernel answers.
    Denied,
}

impl Setup {
    /// As the tables name it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Observe => "observe",
            Self::Enforce => "enforce, healthy",
            Self::Denied => "denied",
        }
    }

    /// What `retry-agent exec` is told; nothing where it does not run.
    pub fn agent_args(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Bare => None,
            Self::Observe => Some(&["--mode", "observe"]),
            Self::Enforce => Some(&["--budget", "share=10%,window=60s"]),
            Self::Denied => Some(&["--budget", "none"]),
        }
    }

    /// Whether its origin is one that only fails.
    pub fn failing_origin(self) -> bool {
        self == Self::Denied
    }
}

/// One way to load the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Load {
    /// Connections that wrk keeps busy, each with one request at a time.
    pub connections: u32,
    /// Length of each request; they have no body.
    pub head_bytes: usize,
}

/// Connections: one shows latency, many show throughput.
const CONNECTIONS: [u32; 2] = [1, 16];

/// Heads, bytes: the smallest that anything sends, and one with the fields of an ordinary client library.
const HEADS: [usize; 2] = [55, 330];

/// Bare and the wanted ones, each once; all of them when none is named.
pub fn chosen(wanted: &[Setup]) -> Vec<Setup> {
    let all = Setup::value_variants();
    all.iter()
        .copied()
        .filter(|&setup| wanted.is_empty() || setup == Setup::Bare || wanted.contains(&setup))
        .collect()
}

/// Every load, or those with this many connections.
pub fn loads(connections: Option<u32>) -> Vec<Load> {
    let counts = connections.map_or_else(|| CONNECTIONS.to_vec(), |count| vec![count]);
    let load = |&connections: &u32| HEADS.map(|head_bytes| Load { connections, head_bytes });
    counts.iter().flat_map(load).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_is_always_among_the_chosen() {
        assert_eq!(chosen(&[Setup::Denied]), [Setup::Bare, Setup::Denied]);
        assert_eq!(chosen(&[Setup::Bare, Setup::Bare]), [Setup::Bare]);
        assert_eq!(chosen(&[]).len(), 4);
    }

    #[test]
    fn every_count_of_connections_meets_every_head() {
        assert_eq!(loads(None).len(), 4);
        assert_eq!(
            loads(Some(7)),
            [Load { connections: 7, head_bytes: 55 }, Load { connections: 7, head_bytes: 330 }]
        );
    }
}
