//! The playing of the storm: one agent, three loads, three dependencies, one clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};

use super::{ATTEMPTS, HICCUP, Plan, RUNS, Storm};
use crate::agent::{Agent, Cap};
use crate::cgroup::Cgroup;
use crate::interrupt;
use crate::place::Place;
use crate::progress::Progress;
use crate::reports::{Count, Made, Received};
use crate::scrape::Counts;
use crate::services::{Done, Service};

/// From the start of the processes to the first call.
const PRELUDE: Duration = Duration::from_secs(3);

/// How long the last calls may take after the end of the plan.
const AFTERMATH: Duration = Duration::from_secs(40);

/// One load and its dependency, as they were seen.
pub struct Run {
    /// As in [`RUNS`].
    pub name: &'static str,
    pub title: &'static str,
    /// The load's own count.
    pub made: Made,
    /// The dependency's own count.
    pub received: Received,
    /// The agent's count.
    pub counts: Counts,
}

/// A run while it goes on. The groups go last, when their processes have ended.
struct Playing {
    load: Service,
    dependency: Service,
    seen: u64,
    load_group: Cgroup,
    _dependency_group: Cgroup,
}

pub(super) fn play(place: &Place, top: &Cgroup, plan: Plan) -> Result<Storm> {
    let subtree = top.child("storm")?;
    let groups = RUNS.iter().map(|(name, ..)| subtree.child(name)).collect::<Result<Vec<_>>>()?;
    let caps: Vec<Cap> = groups
        .iter()
        .zip(RUNS)
        .filter_map(|(workload, (_, budget, _))| Some(Cap { workload, budget: budget?, retry_after_s: 1 }))
        .collect();
    let progress = Progress::begin("three runs", plan.length());
    let agent = Agent::start(place, "storm", &subtree, &caps)?;
    drop(caps);
    let zero = Instant::now() + PRELUDE;
    let epoch = (SystemTime::now() + PRELUDE).duration_since(UNIX_EPOCH).context("a clock before 1970")?;
    let mut playing = groups
        .into_iter()
        .map(|group| start(place, &subtree, group, plan, epoch.as_secs_f64()))
        .collect::<Result<Vec<_>>>()?;
    direct(&mut playing, plan, zero, &progress)?;
    let mades = playing.iter().map(|run| run.load.next(AFTERMATH)).collect::<Result<Vec<Made>>>()?;
    let snapshot = agent.scrape()?;
    let mut runs = Vec::new();
    for ((run, made), (name, _, title)) in playing.iter_mut().zip(mades).zip(RUNS) {
        let received = run.dependency.ask("report")?;
        runs.push(Run { name, title, made, received, counts: snapshot.of(run.load_group.name()) });
    }
    agent.stop()?;
    Ok(Storm { plan, runs, retrying: snapshot.retrying() })
}

fn start(place: &Place, subtree: &Cgroup, load_group: Cgroup, plan: Plan, epoch: f64) -> Result<Playing> {
    let name = load_group.name().rsplit('/').next().unwrap_or_default();
    let dependency_group = subtree.child(&format!("{name}-dependency"))?;
    let zero = format!("{epoch:.6}");
    let args = ["--zero", &zero, "--hiccup", &HICCUP.to_string()].map(str::to_owned);
    let (dependency, port) = Service::serve(place, &dependency_group, "leaf.py", &args)?;
    let args = [
        ("--zero", zero),
        ("--base", format!("http://127.0.0.1:{port}/item/")),
        ("--rate", plan.rate.to_string()),
        ("--count", (plan.rate * plan.length()).to_string()),
        ("--attempts", ATTEMPTS.to_string()),
    ];
    let args: Vec<String> = args.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
    let load = Service::start(place, &load_group, "load.py", &args)?;
    Ok(Playing { load, dependency, seen: 0, load_group, _dependency_group: dependency_group })
}

/// Lets the dependencies fail and recover on time.
fn direct(runs: &mut [Playing], plan: Plan, zero: Instant, progress: &Progress) -> Result<()> {
    let at = |second: u64| zero + Duration::from_secs(second);
    let acts = [
        (at(plan.healthy), "fail", "well"),
        (at(plan.recovery()), "ok", "503 to everything"),
        (at(plan.length()), "count", "recovered"),
    ];
    let mut glanced = zero;
    for (end, command, scene) in acts {
        progress.scene(scene);
        while Instant::now() < end {
            interrupt::glance(end)?;
            if glanced.elapsed() >= Duration::from_secs(1) {
                glanced = Instant::now();
                let rates = rates(runs)?;
                progress.show((glanced - zero).as_secs(), &format!("{scene}; calls/s: {rates}"));
            }
        }
        for run in runs.iter_mut() {
            let _: Done = run.dependency.ask(command)?;
        }
    }
    Ok(())
}

/// What each dependency received since the last time, for the reader's eye only.
fn rates(runs: &mut [Playing]) -> Result<String> {
    let mut texts = Vec::new();
    for (run, (name, ..)) in runs.iter_mut().zip(RUNS) {
        let count: Count = run.dependency.ask("count")?;
        texts.push(format!("{} {name}", count.requests - run.seen));
        run.seen = count.requests;
    }
    Ok(texts.join(", "))
}
