//! Story 2, *the acceptance test*: steady load with three attempts per call on a dependency that is well, answers
//! 503 to everything, and recovers. Three runs side by side: uncapped, `share`, `token_pool`.

mod run;
mod verdict;

use anyhow::Result;

pub use self::run::Run;
pub use self::verdict::{checks, table};
use crate::cgroup::Cgroup;
use crate::place::Place;

/// Attempts that the load's HTTP client makes at a call.
pub const ATTEMPTS: u32 = 3;

/// Also while it is well, the dependency answers one call in so many with 503 once: retries at work on a good
/// day, and the proof that they come back after a bad one.
pub const HICCUP: u64 = 50;

/// The runs: name, budget if capped, and what to call it.
pub const RUNS: [(&str, Option<&str>, &str); 3] = [
    ("without", None, "no cap (observed)"),
    ("share", Some("share=10%,window=60s"), "share=10%"),
    ("token_pool", Some("token_pool=25,refill=1/s"), "token_pool=25, 1/s"),
];

/// The most calls at the dependency per call made that `share=10%` may allow.
pub const CEILING: f64 = 1.10;

/// The course of the story, in seconds, and its load.
#[derive(Clone, Copy)]
pub struct Plan {
    pub healthy: u64,
    pub outage: u64,
    pub recovered: u64,
    /// Calls per second in each run.
    pub rate: u64,
}

impl Plan {
    /// The short one, or the five minutes of the acceptance test.
    pub fn new(full: bool, rate: Option<u64>) -> Self {
        // Three runs of a hundred calls a second (300 attempts in the outage) take about one CPU in Python.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let sustained = if cpus >= 2 { 100 } else { 40 };
        Self {
            healthy: 10,
            outage: if full { 300 } else { 30 },
            recovered: 15,
            rate: rate.unwrap_or(sustained),
        }
    }

    /// Its length in seconds.
    pub fn length(&self) -> u64 {
        self.healthy + self.outage + self.recovered
    }

    /// The second in which the outage ends.
    pub fn recovery(&self) -> u64 {
        self.healthy + self.outage
    }
}

/// The story as it was seen.
pub struct Storm {
    pub plan: Plan,
    /// In the order of [`RUNS`].
    pub runs: Vec<Run>,
    /// The workloads of which the agent let at least one retry pass.
    pub retrying: Vec<String>,
}

/// Plays the story.
///
/// # Errors
/// When a process fails, or the demo is interrupted.
pub fn run(place: &Place, top: &Cgroup, plan: Plan) -> Result<Storm> {
    run::play(place, top, plan)
}
