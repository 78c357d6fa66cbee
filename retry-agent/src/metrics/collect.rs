//! From counts to samples, in a bounded number of series.
use std::collections::HashSet;

use prometheus::{GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};
use retry_common::abi::Fail;

use super::family::{self, Family, Kind};
use crate::report::{Row, Rows};
use crate::session::Snapshot;

/// Label value of everything beyond the bound.
const OVERFLOW: &str = "overflow";

/// Turns snapshots into the text format. Edges keep their series as long as they live; those that come when there
/// are too many are added up.
pub struct Collector {
    most_series: usize,
    /// Edges with series of their own.
    named: HashSet<Name>,
    /// Edges without.
    refused: HashSet<Name>,
    /// Edges that ever were refused.
    overflowed: u64,
}

type Name = (String, String, &'static str);

/// A sample of an edge: its last label, if there is one, and its value.
type Sample = (&'static Family, Option<String>, f64);

impl Collector {
    /// With at most so many series that name a destination, beyond those of `overflow`.
    pub fn new(most_series: usize) -> Self {
        Self { most_series, named: HashSet::new(), refused: HashSet::new(), overflowed: 0 }
    }

    /// The text format.
    ///
    /// # Errors
    /// When the encoder refuses, which would be a mistake in the list of families.
    pub fn text(&mut self, snapshot: Snapshot) -> prometheus::Result<String> {
        let page = Page::new()?;
        for row in self.bounded(snapshot.rows) {
            for (family, label, value) in samples(&row) {
                let mut labels = vec![row.workload.as_str(), row.destination.as_str(), row.protocol];
                labels.extend(label.as_deref());
                page.set(family, &labels, value)?;
            }
        }
        page.set(&family::OVERFLOWED, &[], float(self.overflowed))?;
        for (fail, count) in Fail::ALL.iter().zip(snapshot.fails) {
            let family = if family::is_action(*fail) { &family::PACKETS } else { &family::ERRORS };
            page.set(family, &[fail.label()], float(count))?;
        }
        for fill in snapshot.fills {
            page.set(&family::ENTRIES, &[fill.map], f64::from(fill.used))?;
            page.set(&family::MOST_ENTRIES, &[fill.map], f64::from(fill.most))?;
        }
        page.set(&family::HEARTBEAT, &[], snapshot.beat_age.as_secs_f64())?;
        page.set(&family::BUILD, &[env!("CARGO_PKG_VERSION")], 1.0)?;
        page.text()
    }

    /// The rows with names of their own, and one row per protocol for all others.
    fn bounded(&mut self, rows: Rows) -> Vec<Row> {
        let rows: Vec<(Name, Row)> = rows.into_vec().into_iter().map(|row| (name(&row), row)).collect();
        let present: HashSet<&Name> = rows.iter().map(|(name, _)| name).collect();
        self.named.retain(|name| present.contains(name));
        self.refused.retain(|name| present.contains(name));
        let mut series: usize = rows
            .iter()
            .filter(|(name, _)| self.named.contains(name))
            .map(|(_, row)| samples(row).len())
            .sum();
        let (mut kept, mut rest) = (Vec::new(), Rows::default());
        for (name, row) in rows {
            if !self.named.contains(&name) && row.workload != OVERFLOW {
                let cost = samples(&row).len();
                if series + cost <= self.most_series {
                    series += cost;
                    self.refused.remove(&name);
                    self.named.insert(name.clone());
                } else if self.refused.insert(name.clone()) {
                    self.overflowed += 1;
                }
            }
            if self.named.contains(&name) {
                kept.push(row);
            } else {
                let overflow = || OVERFLOW.to_owned();
                rest.add(Row {
                    workload: overflow(),
                    destination: overflow(),
                    budget: "unlimited",
                    balance: None,
                    ..row
                });
            }
        }
        kept.extend(rest.into_vec());
        kept
    }
}

fn name(row: &Row) -> Name {
    (row.workload.clone(), row.destination.clone(), row.protocol)
}

/// Every sample of an edge, also those that are 0: a counter that appears with its first event hides that event
/// from `rate()`.
fn samples(row: &Row) -> Vec<Sample> {
    let budget = || Some(row.budget.to_owned());
    let mut samples: Vec<Sample> = vec![
        (&family::CALLS, None, float(row.calls)),
        (&family::DENIED, budget(), float(row.denied)),
        (&family::WOULD_DENY, budget(), float(row.would_deny)),
        (&family::UNCOVERED, None, float(row.uncovered)),
    ];
    if row.protocol == "tcp" {
        samples.push((&family::OPAQUE, None, float(row.opaque)));
    } else {
        samples.push((&family::SPARED, None, float(row.spared)));
    }
    let labelled = |family, counts: &mut dyn Iterator<Item = (String, u64)>| -> Vec<Sample> {
        counts.map(|(label, count)| (family, Some(label), float(count))).collect()
    };
    let owned = |(label, count): (&&str, &u64)| ((*label).to_owned(), *count);
    samples.extend(labelled(&family::CONNECTIONS, &mut row.connections.iter().map(owned)));
    samples.extend(labelled(&family::RETRIES, &mut row.retries.iter().map(owned)));
    samples.extend(labelled(
        &family::FAILURES,
        &mut row.failures.iter().map(|(label, count)| (label.clone(), *count)),
    ));
    samples.extend(row.balance.map(|balance| (&family::BALANCE, budget(), float(balance) / 1000.0)));
    samples
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
fn float(count: u64) -> f64 {
    count as f64
}

/// One scrape in the making.
struct Page {
    registry: Registry,
    families: Vec<(&'static str, Vector)>,
}

enum Vector {
    Counter(IntCounterVec),
    Gauge(GaugeVec),
}

impl Page {
    fn new() -> prometheus::Result<Self> {
        let mut page = Self { registry: Registry::new(), families: Vec::new() };
        for family in family::ALL {
            let options = Opts::new(family.name, family.help);
            let vector = match family.kind {
                Kind::Counter => {
                    let vector = IntCounterVec::new(options, family.labels)?;
                    page.registry.register(Box::new(vector.clone()))?;
                    Vector::Counter(vector)
                }
                Kind::Gauge => {
                    let vector = GaugeVec::new(options, family.labels)?;
                    page.registry.register(Box::new(vector.clone()))?;
                    Vector::Gauge(vector)
                }
            };
            page.families.push((family.name, vector));
        }
        Ok(page)
    }

    fn set(&self, family: &Family, labels: &[&str], value: f64) -> prometheus::Result<()> {
        let vector = self.families.iter().find(|(name, _)| *name == family.name).map(|(_, vector)| vector);
        match vector {
            Some(Vector::Counter(vector)) => {
                vector.get_metric_with_label_values(labels)?.inc_by(value as u64)
            }
            Some(Vector::Gauge(vector)) => vector.get_metric_with_label_values(labels)?.set(value),
            None => {}
        }
        Ok(())
    }

    fn text(&self) -> prometheus::Result<String> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn row(destination: u32, calls: u64) -> Row {
        let retries = [("repetition", 1)].into();
        let (workload, destination) = ("shop".to_owned(), format!("10.0.0.{destination}:80"));
        Row { workload, destination, protocol: "http1", budget: "share", calls, retries, ..Row::default() }
    }

    fn snapshot(rows: impl IntoIterator<Item = Row>) -> Snapshot {
        let mut all = Rows::default();
        for row in rows {
            all.add(row);
        }
        Snapshot { rows: all, fails: [3; Fail::COUNT], fills: Vec::new(), beat_age: Duration::ZERO }
    }

    #[test]
    fn samples_carry_their_labels() {
        let text = Collector::new(1000).text(snapshot([row(1, 7)])).unwrap();
        for line in [
            "retry_agent_calls_total{destination=\"10.0.0.1:80\",protocol=\"http1\",workload=\"shop\"} 7",
            "retry_agent_retries_total{destination=\"10.0.0.1:80\",evidence=\"repetition\",protocol=\"http1\",workload=\"shop\"} 1",
            "retry_agent_kernel_errors_total{reason=\"lost_sync\"} 3",
            "retry_agent_reflector_packets_total{action=\"answers_sent\"} 3",
            "# TYPE retry_agent_calls_total counter",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }

    #[test]
    fn label_values_cannot_break_the_format() {
        let odd = Row { workload: "a\"b\\c\nd".to_owned(), ..row(1, 1) };
        let text = Collector::new(1000).text(snapshot([odd])).unwrap();
        assert!(text.contains(r#"workload="a\"b\\c\nd""#), "{text}");
    }

    #[test]
    fn what_is_too_much_is_added_up_and_stays_where_it_is() {
        // Room for two rows of six samples.
        let mut collector = Collector::new(13);
        let first = collector.text(snapshot((1..=5).map(|number| row(number, 1)))).unwrap();
        assert!(first.contains("workload=\"overflow\"} 3"), "{first}");
        assert!(first.contains("retry_agent_edges_overflowed_total 3"), "{first}");
        // The same edges keep their names, whatever comes before them in order.
        let second = collector.text(snapshot((0..=5).map(|number| row(number, 2)))).unwrap();
        assert!(
            second.contains("destination=\"10.0.0.1:80\",protocol=\"http1\",workload=\"shop\"} 2"),
            "{second}"
        );
        assert!(second.contains("workload=\"overflow\"} 8"), "{second}");
        assert!(second.contains("retry_agent_edges_overflowed_total 4"), "{second}");
        // Room that became free is used again.
        let third = collector.text(snapshot([row(4, 3)])).unwrap();
        assert!(!third.contains("workload=\"overflow\""), "{third}");
    }
}
