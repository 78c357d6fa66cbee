//! The one list of what is exported. Registration, the samples and docs/metrics.md are made from it.
use std::fmt::Write as _;

use retry_common::abi::Fail;

use crate::report::RESULTS;

/// A metric family.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// One sentence.
    pub help: &'static str,
    /// Values of its last label, each with an explanation, for the documentation.
    values: fn() -> Vec<(String, String)>,
}

/// What its samples are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

const EDGE: &[&str] = &["workload", "destination", "protocol"];

macro_rules! families {
    ($($name:ident = $kind:ident $text:literal $labels:expr, $help:literal, $values:expr;)*) => {
        $(#[doc = $help]
        pub static $name: Family =
            Family { name: $text, kind: Kind::$kind, labels: $labels, help: $help, values: $values };)*

        /// All of them, in the order of the documentation.
        pub static ALL: &[&Family] = &[$(&$name,)*];
    };
}

families! {
    CONNECTIONS = Counter "retry_agent_connections_total" &["workload", "destination", "protocol", "result"],
        "Connections, by how they ended up.", connections;
    CALLS = Counter "retry_agent_calls_total" EDGE,
        "Calls: first attempts, without their retries.", none;
    RETRIES = Counter "retry_agent_retries_total" &["workload", "destination", "protocol", "evidence"],
        "Attempts recognised as retries, denied ones included.", evidence;
    DENIED = Counter "retry_agent_retries_denied_total" &["workload", "destination", "protocol", "budget"],
        "Retries answered in the kernel because the budget was spent.", budgets;
    WOULD_DENY = Counter "retry_agent_retries_would_deny_total" &["workload", "destination", "protocol", "budget"],
        "Retries that enforce mode would have answered.", budgets;
    UNCOVERED = Counter "retry_agent_retries_uncovered_total" EDGE,
        "Excess retries that passed because their device had no reflector when the connection began.", none;
    SPARED = Counter "retry_agent_retries_spared_total" EDGE,
        "Excess retries that passed because a denial would not have been clean (pipelining, unread answers).", none;
    FAILURES = Counter "retry_agent_failures_total" &["workload", "destination", "protocol", "outcome"],
        "Failed attempts, by outcome.", outcomes;
    OPAQUE = Counter "retry_agent_opaque_connections_total" EDGE,
        "Connections that carry something else than HTTP/1.", none;
    BALANCE = Gauge "retry_agent_budget_balance" &["workload", "destination", "protocol", "budget"],
        "Retries that the budget would let pass now; absent where there is no limit.", budgets;
    OVERFLOWED = Counter "retry_agent_edges_overflowed_total" &[],
        "Edges that are counted under the label value `overflow` because `limits.series` was reached.", none;
    ERRORS = Counter "retry_agent_kernel_errors_total" &["reason"],
        "What the kernel side passed unread, unfollowed or undenied, by reason.", reasons;
    PACKETS = Counter "retry_agent_reflector_packets_total" &["action"],
        "Packets of denied connections, by what was done with them.", actions;
    ENTRIES = Gauge "retry_agent_map_entries" &["map"],
        "Entries in use of a kernel map.", none;
    MOST_ENTRIES = Gauge "retry_agent_map_max_entries" &["map"],
        "Most entries of a kernel map.", none;
    HEARTBEAT = Gauge "retry_agent_heartbeat_age_seconds" &[],
        "Time since the agent's last sign of life to the kernel side, which denies nothing new above 2 s.", none;
    BUILD = Gauge "retry_agent_build_info" &["version"],
        "Always 1; its label names the version.", none;
}

/// Whether this count is an action of the reflector rather than something left undone.
pub fn is_action(fail: Fail) -> bool {
    matches!(fail, Fail::Answered | Fail::Swallowed | Fail::Shielded)
}

type Values = Vec<(String, String)>;

fn none() -> Values {
    Vec::new()
}

fn listed(rows: &[(&str, &str)]) -> Values {
    rows.iter().map(|(value, text)| ((*value).to_owned(), (*text).to_owned())).collect()
}

fn connections() -> Values {
    RESULTS.iter().map(|result| (result.label().to_owned(), result.help().to_owned())).collect()
}

fn evidence() -> Values {
    listed(&[
        ("repetition", "The same request after a failed attempt of it."),
        (
            "connection",
            "A connect, or the request behind it, after a failed connect to the same destination.",
        ),
    ])
}

fn budgets() -> Values {
    listed(&[
        ("none", "No retry passes."),
        ("share", "A share of the calls over a rolling window."),
        ("token_pool", "A pool of tokens that successes refill."),
        ("unlimited", "Every retry passes."),
    ])
}

fn outcomes() -> Values {
    listed(&[
        ("status_N", "An answer with a status that is configured as a failure, such as `status_503`."),
        ("reset", "The connection was reset before an answer."),
        ("eof", "The server closed the connection before an answer."),
        ("abandoned", "The client gave up while waiting."),
        ("refused", "The connect was refused (protocol `tcp`)."),
        ("connect_timeout", "The connect was given up (protocol `tcp`)."),
    ])
}

fn reasons() -> Values {
    fails(|fail| !is_action(fail))
}

fn actions() -> Values {
    fails(is_action)
}

fn fails(wanted: fn(Fail) -> bool) -> Values {
    let fails = Fail::ALL.iter().filter(|fail| wanted(**fail));
    fails.map(|fail| (fail.label().to_owned(), fail.help().to_owned())).collect()
}

/// docs/metrics.md.
pub fn page() -> String {
    let mut text = String::from(HEAD);
    for family in ALL {
        let kind = if family.kind == Kind::Counter { "counter" } else { "gauge" };
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "no labels".to_owned() } else { labels.join(", ") };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n### `{}`\n\n{} ({kind}; {labels})\n", family.name, family.help);
        let values = (family.values)();
        if let (Some(label), false) = (family.labels.last(), values.is_empty()) {
            let _ = write!(text, "\n| `{label}` | |\n|---|---|\n");
            for (value, help) in values {
                let _ = writeln!(text, "| `{value}` | {help} |");
            }
        }
    }
    text
}

const HEAD: &str = "# Metrics

<!-- Written by `cargo xtask docs` from retry-agent/src/metrics/family.rs. -->

`retry-agent run` serves them on `metrics:` of its configuration (127.0.0.1:9464 if it says nothing), `exec` on
`--metrics`: `/metrics` in the Prometheus text format 0.0.4, `/healthz` (200 while signs of life reach the kernel),
`/readyz` (200 once the kernel side is attached). The `prometheus` crate writes no OpenMetrics.

Everything is read from the kernel's maps at the moment of the scrape. Retry ratio and amplification are divisions:

```promql
# Retry ratio per edge: 0.10 means 1.10 attempts per call.
sum by (workload, destination) (rate(retry_agent_retries_total[5m]))
  / sum by (workload, destination) (rate(retry_agent_calls_total[5m]))
```

`workload` is the name of the calling cgroup, `destination` the address and port that it asked for. When
`limits.series` is reached, further edges are added up under the value `overflow`; the same value takes what found the
kernel's table of edges full. An edge that was unused for an hour, or whose cgroup is gone, disappears.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        for family in ALL {
            assert!(family.name.starts_with("retry_agent_"), "{}", family.name);
            assert_eq!(family.name.ends_with("_total"), family.kind == Kind::Counter, "{}", family.name);
            assert!(family.help.ends_with('.'), "{}", family.name);
        }
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), ALL.len(), "a name twice");
    }

    #[test]
    fn the_page_has_every_family_and_reason() {
        let page = page();
        assert!(ALL.iter().all(|family| page.contains(family.name)));
        assert!(Fail::ALL.iter().all(|fail| page.contains(&format!("`{}`", fail.label()))));
    }
}
