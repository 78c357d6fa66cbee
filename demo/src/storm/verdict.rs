//! What the storm proves: ratios by the dependency's own count, and the promises.

use super::{CEILING, Plan, Run, Storm};
use crate::check::Check;
use crate::table::{Table, count, ratio};

/// Seconds of the window in which a share is a share.
const MINUTE: usize = 60;

impl Run {
    /// Requests that the dependency received, per second.
    pub fn per_second(&self) -> Vec<u64> {
        self.received
            .first
            .iter()
            .zip(&self.received.repeated)
            .map(|(first, repeated)| first + repeated)
            .collect()
    }

    /// The highest ratio of requests received to calls made in any minute (or since the start, before a minute
    /// is over). A share of 10 % is a share of the calls of the last minute, so this is what it promises; a shorter
    /// look at the outage alone would also see what the calls just before it had earned.
    pub fn worst_minute(&self) -> f64 {
        let (received, made) = (self.per_second(), &self.made.started);
        let within =
            |counts: &[u64], from: usize, to: usize| counts.iter().skip(from).take(to - from).sum::<u64>();
        (1..=received.len().max(made.len()))
            .map(|end| (end.saturating_sub(MINUTE), end))
            .map(|(from, end)| ratio(within(&received, from, end), within(made, from, end)))
            .fold(0.0, f64::max)
    }

    /// Requests received to calls made in the seconds of the outage alone.
    pub fn ratio_in_outage(&self, plan: Plan) -> f64 {
        let within = |counts: &[u64]| {
            counts.iter().skip(plan.healthy as usize).take(plan.outage as usize).sum::<u64>()
        };
        ratio(within(&self.per_second()), within(&self.made.started))
    }

    /// Calls of which the dependency never saw an attempt.
    pub fn originals_denied(&self) -> u64 {
        self.made.calls.saturating_sub(self.received.attempts.len() as u64)
    }

    /// Retries that the dependency saw.
    pub fn retries_received(&self) -> u64 {
        self.received.repeated.iter().sum()
    }

    /// Calls after the recovery that failed once, and those of them that were retried.
    pub fn resumed(&self, plan: Plan) -> (u64, u64) {
        let recovery = plan.recovery() * plan.rate;
        let number =
            |target: &String| target.rsplit('/').next().and_then(|number| number.parse::<u64>().ok());
        let failed = self.received.hiccups.iter().filter(|target| number(target) >= Some(recovery));
        let (mut all, mut retried) = (0, 0);
        for target in failed {
            all += 1;
            retried += u64::from(self.received.attempts.get(target) > Some(&1));
        }
        (all, retried)
    }
}

/// The three runs side by side.
pub fn table(storm: &Storm) -> Table {
    let mut table = Table::new(&[
        "run",
        "calls",
        "received",
        "retries there",
        "denied",
        "x in outage",
        "x worst minute",
        "originals denied",
        "retried after",
    ]);
    for run in &storm.runs {
        let (failed, retried) = run.resumed(storm.plan);
        table.row(vec![
            run.title.to_owned(),
            count(run.made.calls),
            count(run.per_second().iter().sum()),
            count(run.retries_received()),
            count(run.counts.denied),
            format!("{:.3}", run.ratio_in_outage(storm.plan)),
            format!("{:.3}", run.worst_minute()),
            count(run.originals_denied()),
            format!("{retried} of {failed}"),
        ]);
    }
    table
}

/// What must hold.
pub fn checks(storm: &Storm) -> Vec<Check> {
    let mut checks = vec![ceiling(storm), originals(storm), agreement(storm), one_layer(storm)];
    checks.extend(storm.runs.iter().filter(|run| run.name != "without").map(|run| resumed(run, storm.plan)));
    checks
}

fn ceiling(storm: &Storm) -> Check {
    let runs: Vec<&Run> = storm.runs.iter().filter(|run| run.name == "share").collect();
    let seen: Vec<String> = runs
        .iter()
        .map(|run| {
            let (minute, outage) = (run.worst_minute(), run.ratio_in_outage(storm.plan));
            format!("{minute:.4} x in the worst minute ({outage:.4} x in the outage alone)")
        })
        .collect();
    let held = !runs.is_empty() && runs.iter().all(|run| run.worst_minute() <= CEILING);
    Check::new(
        format!("with share=10% the dependency gets at most {CEILING:.2} x the calls made, in any minute"),
        seen.join(", "),
        held,
    )
}

fn originals(storm: &Storm) -> Check {
    let denied: u64 = storm.runs.iter().map(Run::originals_denied).sum();
    let calls: u64 = storm.runs.iter().map(|run| run.made.calls).sum();
    let seen = format!("{denied} of {} calls never seen there", count(calls));
    Check::new("no first attempt is denied: the dependency saw every call", seen, denied == 0)
}

fn agreement(storm: &Storm) -> Check {
    let wrong: Vec<String> = storm
        .runs
        .iter()
        .filter(|run| {
            run.counts.calls != run.made.calls
                || run.counts.retries.saturating_sub(run.counts.denied) != run.retries_received()
        })
        .map(|run| format!("{}: the agent counted {:?}", run.title, run.counts))
        .collect();
    let seen = if wrong.is_empty() { "all three runs agree".to_owned() } else { wrong.join(", ") };
    Check::new(
        "the agent counts the calls and retries that load and dependency count",
        seen,
        wrong.is_empty(),
    )
}

fn one_layer(storm: &Storm) -> Check {
    let layers: Vec<&str> =
        storm.retrying.iter().filter_map(|workload| workload.rsplit('/').next()).collect();
    let is_load = |layer: &&str| storm.runs.iter().any(|run| run.name == *layer);
    let held = layers.len() == storm.runs.len() && layers.iter().all(is_load);
    Check::new(
        "only one layer of each run shows retries",
        format!("retries pass from {}", layers.join(", ")),
        held,
    )
}

fn resumed(run: &Run, plan: Plan) -> Check {
    let (failed, retried) = run.resumed(plan);
    let seen = format!("{retried} of {failed} calls that then failed once were retried");
    Check::new(format!("{}: retries resume after the recovery", run.title), seen, retried > 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::reports::{Made, Received};
    use crate::scrape::Counts;

    const PLAN: Plan = Plan { healthy: 2, outage: 2, recovered: 2, rate: 10 };

    fn run(started: &[u64], first: &[u64], repeated: &[u64]) -> Run {
        let made = Made {
            calls: started.iter().sum(),
            started: started.to_vec(),
            outcomes: BTreeMap::new(),
            median_ms: 0.0,
            worst_ms: 0.0,
            late_ms: 0.0,
        };
        let received = Received {
            attempts: BTreeMap::new(),
            hiccups: Vec::new(),
            first: first.to_vec(),
            repeated: repeated.to_vec(),
        };
        Run { name: "share", title: "share", made, received, counts: Counts::default() }
    }

    #[test]
    fn the_worst_minute_is_found_wherever_it_is() {
        let calls = [10; 200];
        let mut late = [0; 200];
        late[100..130].fill(20);
        let quiet = run(&calls, &calls, &[0; 200]);
        let storm = run(&calls, &calls, &late);
        assert!((quiet.worst_minute() - 1.0).abs() < 1e-9);
        assert!((storm.worst_minute() - 2.0).abs() < 1e-9, "600 retries to 600 calls");
    }

    #[test]
    fn only_seconds_of_the_outage_count_as_such() {
        let run = run(&[10; 6], &[10; 6], &[5, 0, 20, 10, 5, 0]);
        assert!((run.ratio_in_outage(PLAN) - 2.5).abs() < 1e-9);
        assert_eq!(run.retries_received(), 40);
    }

    #[test]
    fn a_call_without_an_attempt_at_the_dependency_was_denied() {
        let mut run = run(&[3], &[2], &[0]);
        run.received.attempts =
            [("/item/0", 1), ("/item/2", 3)].map(|(to, count)| (to.to_owned(), count)).into();
        assert_eq!(run.originals_denied(), 1);
    }

    #[test]
    fn only_failures_after_the_recovery_prove_that_retries_resume() {
        let mut run = run(&[10; 6], &[10; 6], &[0; 6]);
        run.received.hiccups = ["/item/5", "/item/39", "/item/40", "/item/45"].map(str::to_owned).into();
        run.received.attempts = [("/item/5", 2), ("/item/39", 2), ("/item/40", 1), ("/item/45", 2)]
            .map(|(to, n)| (to.to_owned(), n))
            .into();
        assert_eq!(run.resumed(PLAN), (2, 1));
    }
}
