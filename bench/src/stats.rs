//! Medians and spread. Every figure of a setup is first set against the bare run of the same round and load, and
//! only then is the median taken: what slowed a whole round then slows no ratio.

use serde::Serialize;

use crate::rounds::{Plan, Sample};
use crate::setup::{Load, Setup};

/// A figure over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
}

/// One setup under one load.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub setup: Setup,
    pub answers_per_second: Figure,
    /// CPU time of one answer, microseconds.
    pub cpu_us: Figure,
    /// Answers per second, as a part of bare's.
    pub of_bare: Figure,
    /// CPU time of one answer beyond bare's, microseconds.
    pub added_cpu_us: Figure,
    /// Part of the time that the hypervisor took, at worst.
    pub most_stolen: f64,
    pub samples: Vec<Sample>,
}

/// All setups under one load.
#[derive(Debug, Serialize)]
pub struct LoadResult {
    #[serde(flatten)]
    pub load: Load,
    pub setups: Vec<Outcome>,
}

/// What the samples say.
pub fn results(plan: &Plan, samples: &[Sample]) -> Vec<LoadResult> {
    let of_load = |&load: &Load| {
        let samples: Vec<Sample> = samples.iter().copied().filter(|sample| sample.load == load).collect();
        LoadResult {
            load,
            setups: plan.setups.iter().filter_map(|&setup| outcome(setup, &samples)).collect(),
        }
    };
    plan.loads.iter().map(of_load).collect()
}

fn outcome(setup: Setup, of_load: &[Sample]) -> Option<Outcome> {
    let samples: Vec<Sample> = of_load.iter().copied().filter(|sample| sample.setup == setup).collect();
    let pairs: Vec<(Sample, Sample)> = samples
        .iter()
        .filter_map(|sample| Some((*sample, *of_load.iter().find(|bare| is_bare_of(bare, sample))?)))
        .collect();
    Some(Outcome {
        setup,
        answers_per_second: figure(samples.iter().map(|sample| sample.answers_per_second))?,
        cpu_us: figure(samples.iter().map(|sample| sample.cpu_us))?,
        of_bare: figure(pairs.iter().map(|(own, bare)| own.answers_per_second / bare.answers_per_second))?,
        added_cpu_us: figure(pairs.iter().map(|(own, bare)| own.cpu_us - bare.cpu_us))?,
        most_stolen: samples.iter().map(|sample| sample.stolen).fold(0.0, f64::max),
        samples,
    })
}

fn is_bare_of(bare: &Sample, sample: &Sample) -> bool {
    bare.setup == Setup::Bare && bare.round == sample.round
}

fn figure(values: impl Iterator<Item = f64>) -> Option<Figure> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (lowest, highest) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let median = match values.len() % 2 {
        1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    };
    Some(Figure { median, lowest, highest })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { connections: 1, head_bytes: 55 };

    fn sample(round: u32, setup: Setup, rate: f64, cpu_us: f64) -> Sample {
        Sample { round, setup, load: LOAD, answers_per_second: rate, cpu_us, stolen: 0.0 }
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        for (values, median) in [(&[3.0, 1.0, 9.0][..], 3.0), (&[4.0, 1.0, 2.0, 9.0], 3.0), (&[5.0], 5.0)] {
            let found = figure(values.iter().copied()).unwrap();
            assert!((found.median - median).abs() < 1e-9, "{values:?}");
        }
        assert_eq!(figure([].into_iter()), None);
    }

    #[test]
    fn a_slow_round_slows_no_ratio() {
        let samples = [
            sample(0, Setup::Bare, 100.0, 10.0),
            sample(0, Setup::Observe, 90.0, 11.0),
            sample(1, Setup::Observe, 45.0, 21.0),
            sample(1, Setup::Bare, 50.0, 20.0),
        ];
        let plan =
            Plan { rounds: 2, seconds: 1, setups: vec![Setup::Bare, Setup::Observe], loads: vec![LOAD] };
        let results = results(&plan, &samples);
        let observe = &results[0].setups[1];
        for (value, expected) in [
            (observe.of_bare.median, 0.9),
            (observe.of_bare.lowest, 0.9),
            (observe.of_bare.highest, 0.9),
            (observe.added_cpu_us.median, 1.0),
            (observe.answers_per_second.median, 67.5),
            (results[0].setups[0].of_bare.median, 1.0),
        ] {
            assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
        }
    }

    #[test]
    fn a_setup_that_did_not_run_has_no_row() {
        let plan =
            Plan { rounds: 1, seconds: 1, setups: vec![Setup::Bare, Setup::Denied], loads: vec![LOAD] };
        let results = results(&plan, &[sample(0, Setup::Bare, 1.0, 1.0)]);
        assert_eq!(results[0].setups.len(), 1);
    }
}
