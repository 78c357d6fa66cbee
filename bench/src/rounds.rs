//! The runs, in an order that is fair: every setup once in each round under each load, beginning with another
//! one each time.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::agent::{self, Counted};
use crate::clock::Books;
use crate::cpus::Cpus;
use crate::origin::Origin;
use crate::place::Place;
use crate::run;
use crate::setup::{Load, Setup};
use crate::wrk::{self, Seen};

/// What a run takes beside the load: loading and attaching the programs, and taking them away.
const AROUND_A_RUN: Duration = Duration::from_millis(600);

/// How long a run may take longer than its load before it is ended.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is to be measured.
pub struct Plan {
    pub rounds: u32,
    pub seconds: u32,
    pub setups: Vec<Setup>,
    pub loads: Vec<Load>,
}

impl Plan {
    /// Runs in one round.
    pub fn runs_per_round(&self) -> usize {
        self.setups.len() * self.loads.len()
    }

    /// About how long it all takes.
    pub fn duration(&self) -> Duration {
        let runs = u32::try_from(self.runs_per_round()).unwrap_or(u32::MAX).saturating_mul(self.rounds);
        (Duration::from_secs(self.seconds.into()) + AROUND_A_RUN).saturating_mul(runs)
    }

    /// Whether any setup runs the agent.
    pub fn needs_agent(&self) -> bool {
        self.setups.iter().any(|setup| setup.agent_args().is_some())
    }
}

/// One run's figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    #[serde(skip)]
    pub round: u32,
    #[serde(skip)]
    pub setup: Setup,
    #[serde(skip)]
    pub load: Load,
    /// Answers per second; of a denied run only those that the kernel gave.
    pub answers_per_second: f64,
    /// CPU time of one answer on the load's CPU: client, origin and kernel together.
    pub cpu_us: f64,
    /// Part of the run's time in which the hypervisor had the CPU do something else.
    pub stolen: f64,
}

/// Runs everything.
///
/// # Errors
/// When something cannot be started or did not do what its setup says; the message names the run.
pub fn all(place: &Place, cpus: &Cpus, plan: &Plan) -> Result<Vec<Sample>> {
    let script = place.file("wrk.lua");
    wrk::write_script(&script)?;
    let origin = Origin::start(place, cpus)?;
    let bench = Bench { place, cpus, origin: &origin, seconds: plan.seconds, script: &script };
    let bar = bar(plan);
    let mut samples = Vec::new();
    for round in 0..plan.rounds {
        for &load in &plan.loads {
            for setup in rotated(&plan.setups, round) {
                let what =
                    format!("{}, {} connections, {} B", setup.label(), load.connections, load.head_bytes);
                bar.set_message(what.clone());
                let sample = bench.one(round, setup, load);
                samples.push(sample.with_context(|| format!("round {}, {what}", round + 1))?);
                bar.inc(1);
            }
        }
        if bar.is_hidden() {
            println!("  round {} of {} is over", round + 1, plan.rounds);
        }
    }
    bar.finish_and_clear();
    Ok(samples)
}

/// What all runs share.
struct Bench<'a> {
    place: &'a Place,
    cpus: &'a Cpus,
    origin: &'a Origin,
    seconds: u32,
    script: &'a std::path::Path,
}

impl Bench<'_> {
    fn one(&self, round: u32, setup: Setup, load: Load) -> Result<Sample> {
        let address = if setup.failing_origin() { self.origin.failing } else { self.origin.healthy };
        let report = self.place.file("exec.json");
        // A report of an earlier run must not speak for this one.
        fs::remove_file(&report).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        let args = wrk::args(address, load, self.seconds, self.script)?;
        let command = agent::around_wrk(setup, &self.place.agent, &report, self.cpus, &args);
        let limit = Duration::from_secs(self.seconds.into()) + PATIENCE;
        let before = Books::read(self.cpus.load)?;
        let output = run::to_end(command, setup.label(), limit)?;
        let spent = Books::read(self.cpus.load)?.since(before);
        let seen = wrk::parse(&String::from_utf8_lossy(&output.stdout))?;
        let counted = setup.agent_args().map(|_| agent::counted(&report)).transpose()?;
        agent::confirm(setup, load, &seen, counted)?;
        Ok(Sample {
            round,
            setup,
            load,
            answers_per_second: seen.rate() * kernels_share(setup, &seen, counted),
            cpu_us: spent.busy_us as f64 / seen.answers as f64,
            stolen: spent.stolen_us as f64 / seen.duration_us as f64,
        })
    }
}

/// The part of the answers that are meant: all, but in a denied run only those that the kernel gave.
fn kernels_share(setup: Setup, seen: &Seen, counted: Option<Counted>) -> f64 {
    match counted {
        Some(counted) if setup == Setup::Denied => {
            counted.denied.min(seen.answers) as f64 / seen.answers as f64
        }
        _ => 1.0,
    }
}

/// The setups, beginning with another one in each round.
fn rotated(setups: &[Setup], round: u32) -> impl Iterator<Item = Setup> {
    let skip = usize::try_from(round).unwrap_or(0) % setups.len().max(1);
    setups.iter().copied().cycle().skip(skip).take(setups.len())
}

fn bar(plan: &Plan) -> ProgressBar {
    let runs = u64::try_from(plan.runs_per_round()).unwrap_or(u64::MAX).saturating_mul(plan.rounds.into());
    let bar = ProgressBar::new(runs);
    if let Ok(style) = ProgressStyle::with_template("  [{bar:24}] {pos}/{len} {elapsed} {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_setup_in_another_order() {
        let setups = [Setup::Bare, Setup::Observe, Setup::Denied];
        let order = |round| rotated(&setups, round).collect::<Vec<_>>();
        assert_eq!(order(0), setups);
        assert_eq!(order(1), [Setup::Observe, Setup::Denied, Setup::Bare]);
        assert_eq!(order(3), order(0));
    }

    #[test]
    fn only_the_kernels_answers_count_in_a_denied_run() {
        let seen = Seen { answers: 200, duration_us: 1, socket_errors: 0, failures: 200 };
        let counted = Some(Counted { attempts: 201, denied: 150 });
        assert!((kernels_share(Setup::Denied, &seen, counted) - 0.75).abs() < 1e-9);
        assert!((kernels_share(Setup::Observe, &seen, counted) - 1.0).abs() < 1e-9);
    }
}
