//! What the reader sees: a table for each load, and how the figures stand to the targets.

use std::fmt::Write as _;

use crate::setup::Setup;
use crate::stats::{Figure, LoadResult};

/// The load on which the targets are set.
const TARGET_CONNECTIONS: u32 = 16;
const TARGET_HEAD_BYTES: usize = 330;

/// At least this part of bare's throughput.
const TARGET_OF_BARE: f64 = 0.93;

/// At most this much CPU time added to a request, microseconds.
const TARGET_ADDED_CPU_US: f64 = 1.2;

/// Beyond this part of a run's time taken by the hypervisor, the reader is told.
const STOLEN_WORTH_TELLING: f64 = 0.02;

/// All tables and the verdict on the targets.
pub fn text(results: &[LoadResult]) -> String {
    let mut text = String::new();
    for result in results {
        text += &table(result);
    }
    text += "\nOf bare and added CPU are medians over the rounds, each against the bare run of the same round; \
             [lowest .. highest].\nCPU per answer is all that the load's CPU spent (client, origin, kernel), by \
             /proc/stat, divided by the answers.\n";
    text += "A denied request costs the client a new connection: the kernel's answer closes it.\n";
    text += &targets(results);
    text += &stolen(results);
    text
}

fn table(result: &LoadResult) -> String {
    let load = result.load;
    let noun = if load.connections == 1 { "connection" } else { "connections" };
    let mut text = format!("\n{} {noun}, requests of {} B\n", load.connections, load.head_bytes);
    let _ = writeln!(
        text,
        "  {:<17} {:>9}  {:>26}  {:>11}  {:>26}",
        "", "answers/s", "of bare", "CPU/answer", "added CPU"
    );
    for row in &result.setups {
        let compared = row.setup != Setup::Bare;
        let of_bare = if compared { spread(row.of_bare, 100.0, 1, " %") } else { String::new() };
        let added = if compared { spread(row.added_cpu_us, 1.0, 2, " us") } else { String::new() };
        let _ = writeln!(
            text,
            "  {:<17} {:>9}  {of_bare:>26}  {:>8.2} us  {added:>26}",
            row.setup.label(),
            thousands(row.answers_per_second.median),
            row.cpu_us.median,
        );
    }
    text
}

/// `93.1 % [92.0 .. 94.2]`
fn spread(figure: Figure, scale: f64, digits: usize, unit: &str) -> String {
    let [median, lowest, highest] =
        [figure.median, figure.lowest, figure.highest].map(|value| format!("{:.digits$}", value * scale));
    format!("{median}{unit} [{lowest} .. {highest}]")
}

fn thousands(rate: f64) -> String {
    let digits = format!("{rate:.0}");
    match digits.len() {
        0..=3 => digits,
        length => format!("{},{}", &digits[..length - 3], &digits[length - 3..]),
    }
}

fn targets(results: &[LoadResult]) -> String {
    let at_target = |result: &&LoadResult| {
        result.load.connections == TARGET_CONNECTIONS && result.load.head_bytes == TARGET_HEAD_BYTES
    };
    let Some(result) = results.iter().find(at_target) else { return String::new() };
    let mut text = format!("\nTargets, {TARGET_CONNECTIONS} connections and {TARGET_HEAD_BYTES} B:\n");
    for row in result.setups.iter().filter(|row| matches!(row.setup, Setup::Observe | Setup::Enforce)) {
        let (part, added) = (row.of_bare.median, row.added_cpu_us.median);
        let _ = writeln!(
            text,
            "  {:<17} at least {:.0} % of bare: {:.1} %, {}; at most {TARGET_ADDED_CPU_US} us more CPU: {added:.2} us, {}",
            row.setup.label(),
            TARGET_OF_BARE * 100.0,
            part * 100.0,
            verdict(part >= TARGET_OF_BARE),
            verdict(added <= TARGET_ADDED_CPU_US),
        );
    }
    text
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

fn stolen(results: &[LoadResult]) -> String {
    let rows = results.iter().flat_map(|result| &result.setups);
    let most = rows.map(|row| row.most_stolen).fold(0.0, f64::max);
    if most <= STOLEN_WORTH_TELLING {
        return String::new();
    }
    format!(
        "WARNING: the hypervisor took up to {:.0} % of a run's time; throughput suffered.\n",
        most * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::{Plan, Sample};
    use crate::setup::Load;
    use crate::stats;

    fn shown(observe: f64, cpu_us: f64, stolen: f64) -> String {
        let load = Load { connections: TARGET_CONNECTIONS, head_bytes: TARGET_HEAD_BYTES };
        let sample =
            |setup, rate, cpu_us| Sample { round: 0, setup, load, answers_per_second: rate, cpu_us, stolen };
        let samples = [sample(Setup::Bare, 100_000.0, 10.0), sample(Setup::Observe, observe, cpu_us)];
        let plan =
            Plan { rounds: 1, seconds: 1, setups: vec![Setup::Bare, Setup::Observe], loads: vec![load] };
        text(&stats::results(&plan, &samples))
    }

    #[test]
    fn targets_are_met_or_missed() {
        let good = shown(93_000.0, 11.2, 0.0);
        assert!(good.contains("93.0 %, met; at most 1.2 us more CPU: 1.20 us, met"), "{good}");
        let bad = shown(92_900.0, 11.3, 0.0);
        assert!(bad.contains("92.9 %, MISSED; at most 1.2 us more CPU: 1.30 us, MISSED"), "{bad}");
    }

    #[test]
    fn stolen_time_is_told_when_it_matters() {
        assert!(!shown(1.0, 1.0, 0.01).contains("hypervisor"));
        assert!(shown(1.0, 1.0, 0.25).contains("took up to 25 %"));
    }

    #[test]
    fn rates_are_readable() {
        for (rate, text) in [(7.2, "7"), (999.0, "999"), (1_000.0, "1,000"), (123_456.7, "123,457")] {
            assert_eq!(thousands(rate), text);
        }
    }
}
