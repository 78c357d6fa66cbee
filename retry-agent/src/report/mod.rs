//! What was counted, edge by edge: rows for the metrics, the table for people and the JSON file.

mod row;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use retry_common::abi::Fail;
use serde::Serialize;

use crate::config::Settings;
use crate::spec::millis;

pub use row::{RESULTS, Row, Rows, address, destination, host, rows};

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

impl Report {
    /// The report on these rows.
    pub fn new(settings: &Settings, rows: Rows, fails: &[u64; Fail::COUNT]) -> Self {
        let kernel = Fail::ALL.iter().zip(fails).filter(|(_, count)| **count != 0);
        Self {
            schema: SCHEMA,
            mode: settings.default.mode.label(),
            budget: settings.default.budget.to_string(),
            window_ms: millis(settings.window),
            edges: rows.into_vec(),
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
        let rows: Vec<[String; 9]> = self.edges.iter().map(cells).collect();
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

fn cells(row: &Row) -> [String; 9] {
    let list = |counts: Vec<(&str, u64)>| {
        let used: Vec<String> =
            counts.into_iter().filter(|(_, n)| *n != 0).map(|(name, n)| format!("{name} {n}")).collect();
        if used.is_empty() { "-".to_owned() } else { used.join(", ") }
    };
    let destination = match &row.host {
        Some(host) if *host != row.destination => format!("{} ({host})", row.destination),
        _ => row.destination.clone(),
    };
    [
        row.workload.clone(),
        destination,
        row.protocol.to_owned(),
        row.calls.to_string(),
        list(row.retries.iter().map(|(name, count)| (*name, *count)).collect()),
        ratio(row.all_retries(), row.calls),
        row.denied.to_string(),
        row.would_deny.to_string(),
        list(row.failures.iter().map(|(name, count)| (name.as_str(), *count)).collect()),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
fn ratio(retries: u64, calls: u64) -> String {
    if calls == 0 { "-".to_owned() } else { format!("{:.1} %", retries as f64 * 100.0 / calls as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Statuses;
    use crate::workload::Workloads;
    use retry_common::abi::{Edge, EdgeCounter, EdgeKey};

    fn edge(counters: &[(EdgeCounter, u64)]) -> Edge {
        let mut edge = Edge::BLANK;
        for (counter, count) in counters {
            edge.counters[*counter as usize] = *count;
        }
        edge
    }

    fn key() -> EdgeKey {
        EdgeKey::v4(7, u32::from_ne_bytes([127, 0, 0, 1]), 8080)
    }

    fn report(edge: Edge) -> Report {
        let settings = Settings { failure_statuses: Statuses(vec![429, 503]), ..Settings::default() };
        let workloads = Workloads::new(std::path::Path::new("/nowhere"), "");
        let mut all = Rows::default();
        for row in rows(&key(), &edge, &settings.config(), &workloads, &settings.default, 0) {
            all.add(row);
        }
        Report::new(&settings, all, &[0; Fail::COUNT])
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
    fn rows_of_one_name_are_added() {
        let mut rows = Rows::default();
        for denied in [1, 2] {
            let retries = [("repetition", 2)].into();
            let row = Row { denied, retries, balance: Some(500), ..Row::default() };
            rows.add(row);
        }
        let [row] = &rows.into_vec()[..] else { panic!("not one row") };
        assert_eq!((row.denied, row.all_retries(), row.balance), (3, 4, Some(1000)));
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
        for text in ["10.0.0.1:80", "[2001:db8::1]:443"] {
            assert_eq!(
                address(text).map(|key| destination(&EdgeKey { workload: 7, ..key })).as_deref(),
                Some(text)
            );
        }
        assert_eq!((address("10.0.0.1"), address("search:80")), (None, None));
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
