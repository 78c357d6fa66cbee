//! What the chain proves: the table per layer, and the promises.

use super::{ATTEMPTS, BOUNDARIES, Chain, OWNER, OWNER_SHARE, Phase};
use crate::check::Check;
use crate::table::{Table, count, mean, ratio};

/// The boundaries of one phase: the agent's counts, and beside them each service's own.
pub fn table(phase: &Phase) -> Table {
    let mut table = Table::new(&[
        "layer",
        "calls",
        "attempts",
        "retries",
        "denied",
        "retry ratio",
        "sent on",
        "received",
        "per click",
    ]);
    for layer in &phase.layers {
        let counts = layer.counts;
        table.row(vec![
            format!("{} → {}", layer.from, layer.to),
            count(counts.calls),
            count(counts.attempts()),
            count(counts.retries),
            count(counts.denied),
            format!("{:.0} %", 100.0 * ratio(counts.retries, counts.calls)),
            count(counts.passed()),
            count(layer.received),
            mean(ratio(layer.received, phase.clicks)),
        ]);
    }
    table
}

/// What must hold.
pub fn checks(chain: &Chain) -> Vec<Check> {
    vec![
        multiplied(&chain.before),
        agreement(chain),
        one_layer(&chain.after),
        share(&chain.after),
        first(chain),
    ]
}

fn multiplied(before: &Phase) -> Check {
    let expected = u64::from(ATTEMPTS.pow(BOUNDARIES));
    let seen = format!("{} calls per click at the store, by its own count", mean(before.mean()));
    let what = format!("without a cap one click costs {ATTEMPTS}^{BOUNDARIES} calls");
    Check::new(what, seen, before.per_click.iter().all(|&calls| calls == expected))
}

fn agreement(chain: &Chain) -> Check {
    let layers = || chain.before.layers.iter().chain(&chain.after.layers);
    let wrong: Vec<String> = layers()
        .filter(|layer| layer.counts.passed() != layer.received)
        .map(|layer| format!("{} received {}, not {}", layer.to, layer.received, layer.counts.passed()))
        .collect();
    let seen = if wrong.is_empty() { format!("{} layers agree", layers().count()) } else { wrong.join(", ") };
    Check::new("the agent counts on every layer what the called service counts", seen, wrong.is_empty())
}

fn one_layer(after: &Phase) -> Check {
    let inner = after.layers.iter().skip_while(|layer| layer.from != OWNER);
    let received: Vec<u64> = inner.map(|layer| layer.received).collect();
    let equal = received.iter().all(|count| Some(count) == received.first());
    let owner = received.first().copied().unwrap_or_default();
    let seen = format!("{} clicks, then {received:?} requests at the four services behind", after.clicks);
    Check::new(format!("with the caps only {OWNER} retries"), seen, equal && owner > after.clicks)
}

fn share(after: &Phase) -> Check {
    let owner = after.layers.iter().find(|layer| layer.from == OWNER);
    let retries =
        owner.map_or(0, |layer| layer.counts.retries - layer.counts.denied.min(layer.counts.retries));
    let originals = after.warm_up + after.clicks;
    let seen = format!("{retries} retries to {originals} calls within the minute");
    Check::new(
        format!("{OWNER} stays within its share of 10 %"),
        seen,
        retries as f64 <= OWNER_SHARE * originals as f64,
    )
}

fn first(chain: &Chain) -> Check {
    let missing = |phase: &Phase| phase.per_click.iter().filter(|&&calls| calls == 0).count();
    let (before, after) = (missing(&chain.before), missing(&chain.after));
    let seen = format!("{before} clicks before and {after} after never reached the store");
    Check::new("every click reaches the store at least once", seen, before + after == 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Phase, phase::Layer};
    use super::*;
    use crate::reports::Made;
    use crate::scrape::Counts;

    /// Calls, retries and denied retries of the user's layer and the four inner ones.
    fn phase(per_click: u64, layers: [(u64, u64, u64); 5]) -> Phase {
        let names = ["user", "gateway", "checkout", "orders", "pricing", "store"];
        let layers = names.windows(2).zip(layers).map(|(pair, (calls, retries, denied))| {
            let counts = Counts { calls, retries, denied };
            Layer { from: pair[0], to: pair[1], counts, received: counts.passed() }
        });
        let made = Made {
            calls: 2,
            started: vec![2],
            outcomes: BTreeMap::new(),
            median_ms: 0.0,
            worst_ms: 0.0,
            late_ms: 0.0,
        };
        Phase { clicks: 2, warm_up: 8, per_click: vec![per_click; 2], layers: layers.collect(), made }
    }

    fn held(before: Phase, after: Phase) -> Vec<bool> {
        checks(&Chain { before, after }).iter().map(|check| check.held).collect()
    }

    fn uncapped() -> Phase {
        phase(81, [(2, 0, 0), (2, 4, 0), (6, 12, 0), (18, 36, 0), (54, 108, 0)])
    }

    fn capped() -> Phase {
        phase(1, [(2, 0, 0), (2, 4, 3), (3, 6, 6), (3, 6, 6), (3, 6, 6)])
    }

    #[test]
    fn the_story_as_it_should_be_holds() {
        assert_eq!(held(uncapped(), capped()), [true; 5]);
    }

    #[test]
    fn each_promise_can_be_broken() {
        assert_eq!(held(uncapped(), uncapped()), [true, true, false, false, true], "caps without effect");
        let mut inner = capped();
        inner.layers[3].counts.denied = 5;
        inner.layers[3].received = 4;
        assert_eq!(held(uncapped(), inner), [true, true, false, true, true], "an inner layer retries");
        let mut lost = capped();
        lost.per_click[1] = 0;
        assert_eq!(held(uncapped(), lost), [true, true, true, true, false], "a click is lost");
        let mut miscounted = capped();
        miscounted.layers[0].received += 1;
        assert_eq!(held(uncapped(), miscounted), [true, false, true, true, true], "the counts differ");
        assert!(!held(phase(80, [(2, 0, 0); 5]), capped())[0], "fewer calls than attempts multiply to");
    }
}
