//! One playing of the chain: services and agent start, some clicks while the store is well, then the clicks that
//! count, while it answers 503 to everything.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{ATTEMPTS, OWNER, OWNER_BUDGET, SERVICES};
use crate::agent::{Agent, Cap};
use crate::cgroup::Cgroup;
use crate::place::Place;
use crate::progress::Progress;
use crate::reports::{Count, Made, Received};
use crate::scrape::{Counts, Snapshot};
use crate::services::{Done, Service};

/// Clicks while the store is well. They are the originals of which the owner's share is a share.
const WARM_UP: u64 = 40;
/// Clicks while the store fails.
const CLICKS: u64 = 20;
/// Clicks per second while the store is well, and while it fails (each of those may cost 120 requests).
const WARM_UP_RATE: u64 = 20;
const CLICK_RATE: u64 = 4;
/// How long the clicks may take altogether.
const PATIENCE: Duration = Duration::from_secs(90);

/// Who calls the outermost service.
const USER: &str = "user";

/// What went over one boundary while the store failed.
pub struct Layer {
    /// The calling workload.
    pub from: &'static str,
    /// The called one.
    pub to: &'static str,
    /// The agent's count.
    pub counts: Counts,
    /// The called service's own count.
    pub received: u64,
}

/// What was seen while the store failed.
pub struct Phase {
    /// Clicks made.
    pub clicks: u64,
    /// Clicks before, while the store was well.
    pub warm_up: u64,
    /// Calls that each click cost the store, by its own count, in the order of the clicks.
    pub per_click: Vec<u64>,
    /// The boundaries, the user's first.
    pub layers: Vec<Layer>,
    /// What became of the clicks.
    pub made: Made,
}

impl Phase {
    /// Calls at the store per click.
    pub fn mean(&self) -> f64 {
        self.per_click.iter().sum::<u64>() as f64 / self.clicks as f64
    }
}

/// The services of a phase, each in its own control group.
struct Stage {
    user: Cgroup,
    /// The store first: each service needs the address of the one behind it.
    services: Vec<(Service, Cgroup)>,
    /// Where the user clicks.
    door: u16,
}

/// Plays it with or without caps.
pub(super) fn play(place: &Place, top: &Cgroup, name: &str, capped: bool) -> Result<Phase> {
    let subtree = top.child(name)?;
    let groups = SERVICES.iter().rev().map(|service| subtree.child(service)).collect::<Result<Vec<_>>>()?;
    let user = subtree.child(USER)?;
    let what = format!("{CLICKS} clicks, retries {}", if capped { "capped" } else { "observed" });
    let progress = Progress::begin(&what, WARM_UP + CLICKS);
    progress.show(0, "the agent and five services start");
    let caps: Vec<Cap> = groups.iter().skip(1).filter(|_| capped).map(cap).collect();
    let agent = Agent::start(place, name, &subtree, &caps)?;
    drop(caps);
    let mut stage = Stage::set(place, user, groups)?;
    let phase = stage.play(place, &agent, subtree.name(), &progress)?;
    agent.stop()?;
    Ok(phase)
}

fn cap(workload: &Cgroup) -> Cap<'_> {
    let is_owner = workload.name().ends_with(OWNER);
    // An inner layer that may not retry has nothing to wait for: its client gives up at once.
    let (budget, retry_after_s) = if is_owner { (OWNER_BUDGET, 1) } else { ("none", 0) };
    Cap { workload, budget, retry_after_s }
}

impl Stage {
    fn set(place: &Place, user: Cgroup, groups: Vec<Cgroup>) -> Result<Self> {
        let mut services = Vec::new();
        let mut door = 0;
        for group in groups {
            let relay =
                ["--upstream", &format!("http://127.0.0.1:{door}"), "--attempts", &ATTEMPTS.to_string()];
            let relay = relay.map(str::to_owned);
            let (script, args) = if door == 0 { ("leaf.py", &[][..]) } else { ("relay.py", &relay[..]) };
            let (service, port) = Service::serve(place, &group, script, args)?;
            services.push((service, group));
            door = port;
        }
        Ok(Self { user, services, door })
    }

    fn play(&mut self, place: &Place, agent: &Agent, subtree: &str, progress: &Progress) -> Result<Phase> {
        self.click(place, "/well/", WARM_UP, WARM_UP_RATE, |store| {
            progress.show(store.min(WARM_UP), "the store is well");
        })?;
        let before = agent.scrape()?;
        let _: Done = self.store().ask("fail")?;
        let made = self.click(place, "/click/", CLICKS, CLICK_RATE, |store| {
            let calls = store.saturating_sub(WARM_UP);
            let clicks = (progress.seconds() as u64).min(CLICKS);
            progress.show(WARM_UP + clicks, &format!("the store fails: {calls} calls there"));
        })?;
        let after = agent.scrape()?;
        let layers = self.layers(subtree, &before, &after)?;
        let store: Received = self.store().ask("report")?;
        let per_click = (0..CLICKS).map(|click| store.attempts.get(&format!("/click/{click}")).copied());
        Ok(Phase {
            clicks: CLICKS,
            warm_up: WARM_UP,
            per_click: per_click.map(Option::unwrap_or_default).collect(),
            layers,
            made,
        })
    }

    fn store(&mut self) -> &mut Service {
        &mut self.services[0].0
    }

    /// Clicks `count` times and waits for the last answer; `watch` is told what the store has received so far.
    fn click(
        &mut self,
        place: &Place,
        target: &str,
        count: u64,
        rate: u64,
        watch: impl Fn(u64),
    ) -> Result<Made> {
        let base = format!("http://127.0.0.1:{}{target}", self.door);
        let (count, rate) = (count.to_string(), rate.to_string());
        // The user clicks once and waits.
        let args =
            ["--base", &base, "--count", &count, "--rate", &rate, "--attempts", "1"].map(str::to_owned);
        let load = Service::start(place, &self.user, "load.py", &args)?;
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            if let Some(made) = load.poll()? {
                return Ok(made);
            }
            let store: Count = self.store().ask("count")?;
            watch(store.requests);
            anyhow::ensure!(std::time::Instant::now() < deadline, "the clicks took longer than {PATIENCE:?}");
        }
    }

    fn layers(&mut self, subtree: &str, before: &Snapshot, after: &Snapshot) -> Result<Vec<Layer>> {
        let callers = std::iter::once(&USER).chain(&SERVICES);
        let mut layers = Vec::new();
        for ((&from, &to), (service, _)) in callers.zip(&SERVICES).zip(self.services.iter_mut().rev()) {
            let received: Received = service.ask("report").context("no report of a service")?;
            let workload = format!("{subtree}/{from}");
            let counts = after.of(&workload) - before.of(&workload);
            layers.push(Layer { from, to, counts, received: received.below("/click/") });
        }
        Ok(layers)
    }
}
