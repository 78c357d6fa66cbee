//! `demo.json`: the figures for machines.

use serde_json::{Value, json};

use crate::chain::{Chain, Phase};
use crate::check::Check;
use crate::storm::{HICCUP, Plan, Run, Storm};
use crate::table::ratio;

/// All figures of a demo.
pub fn json(chain: &Chain, storm: &Storm, checks: &[Check]) -> Value {
    let plan = storm.plan;
    let mut runs = json!({
        "rate": plan.rate,
        "seconds": { "healthy": plan.healthy, "outage": plan.outage, "recovered": plan.recovered },
        "fails_once": format!("1 call in {HICCUP}"),
        "ratio_is": "requests at the dependency to calls made, in the worst minute",
    });
    for run in &storm.runs {
        runs[run.name] = of_run(run, plan);
    }
    json!({
        "schema": 1,
        "chain": {
            "before": number(chain.before.mean()),
            "after": number(chain.after.mean()),
            "phases": { "before": of_phase(&chain.before), "after": of_phase(&chain.after) },
        },
        "storm": runs,
        "checks": checks,
    })
}

fn of_phase(phase: &Phase) -> Value {
    let layers: Vec<Value> = phase
        .layers
        .iter()
        .map(|layer| {
            json!({
                "from": layer.from, "to": layer.to, "calls": layer.counts.calls,
                "attempts": layer.counts.attempts(), "retries": layer.counts.retries,
                "denied": layer.counts.denied, "received": layer.received,
                "per_click": ratio(layer.received, phase.clicks),
            })
        })
        .collect();
    json!({
        "clicks": phase.clicks, "warm_up": phase.warm_up, "store_calls_per_click": phase.per_click,
        "layers": layers, "user": phase.made,
    })
}

fn of_run(run: &Run, plan: Plan) -> Value {
    let (failed, retried) = run.resumed(plan);
    json!({
        "ratio": rounded(run.worst_minute()),
        "ratio_in_outage": rounded(run.ratio_in_outage(plan)),
        "originals_denied": run.originals_denied(),
        "calls": run.made.calls,
        "received": run.per_second().iter().sum::<u64>(),
        "retries_received": run.retries_received(),
        "agent": run.counts,
        "after_recovery": { "failed_once": failed, "retried": retried },
        "load": run.made,
        "per_second": { "first": run.received.first, "retries": run.received.repeated },
    })
}

/// Whole where it is whole: 81, not 81.0.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 { json!(number as u64) } else { json!(rounded(number)) }
}

/// Four decimals, upwards: no ratio is written smaller than it was.
fn rounded(number: f64) -> f64 {
    (number * 10_000.0 - 1e-6).ceil() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_never_rounded_down() {
        for (exact, written) in [(1.1, 1.1), (1.100_01, 1.1001), (2.999_99, 3.0), (0.0, 0.0)] {
            assert!((rounded(exact) - written).abs() < 1e-9, "{exact}");
        }
        assert_eq!(number(81.0), json!(81));
        assert_eq!(number(1.3), json!(1.3));
    }
}
