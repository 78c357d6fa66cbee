//! The kernel side at work: attached to a cgroup, with devices followed, policies assigned and signs of life
//! given. What `exec` and `run` have in common.
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use retry_common::abi::{Config, Edge, EdgeKey, Event, EventKind, Fail, OVERFLOW_POLICY};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use crate::config::{Destination, Settings};
use crate::kernel::{Devices, Fill, Kernel, KernelError, now_ms};
use crate::report::{self, Row, Rows};
use crate::spec::millis;
use crate::workload::Workloads;

/// Time between two signs of life; the kernel side trusts us for four of them.
const BEAT: Duration = Duration::from_millis(500);
/// Time between two looks at all edges.
const SWEEP: Duration = Duration::from_secs(5);
/// An edge unused for so long is forgotten, ms.
const IDLE_MS: u64 = 3_600_000;

/// A kernel side at work. Dropping it detaches.
pub struct Session {
    settings: Settings,
    /// What the kernel was told of them.
    config: Config,
    kernel: Arc<Kernel>,
    devices: Devices,
    state: Mutex<State>,
    /// Time of the last sign of life, ms of the monotonic clock.
    beat_ms: AtomicU64,
}

struct State {
    workloads: Workloads,
    /// Policies as the kernel has them, for edges and for [`EdgeKey::any_of`].
    assigned: HashMap<EdgeKey, u32>,
    /// Counts of edges that were forgotten while others of the same name live on.
    retired: Rows,
}

impl Session {
    /// Loads the kernel side and attaches it to `cgroup`, which people know as `root_name` (empty for the whole
    /// tree): everything below is followed from the next connect on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start(settings: Settings, cgroup: &Path, root_name: &str) -> Result<Arc<Self>, KernelError> {
        let config = settings.config();
        let kernel = Kernel::load(&settings.limits, config)?;
        for (id, treatment) in settings.treatments() {
            kernel.set_policy(id, &treatment.policy(), &treatment.answer())?;
        }
        let workloads = Workloads::new(cgroup, root_name);
        let state = State { workloads, assigned: HashMap::new(), retired: Rows::default() };
        let devices = kernel.follow_devices(cgroup)?;
        let beat_ms = AtomicU64::new(now_ms());
        let session = Self { settings, config, kernel, devices, state: Mutex::new(state), beat_ms };
        session.look_at_workloads();
        session.kernel.attach(cgroup)?;
        Ok(Arc::new(session))
    }

    /// What it was told.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Gives signs of life, assigns policies to new edges and forgets old ones. Returns only with an error.
    ///
    /// # Errors
    /// When the kernel refuses; nothing new is denied from then on.
    pub async fn follow(&self) -> Result<(), KernelError> {
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sweeps = interval(SWEEP);
        sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = self.kernel.events()?;
        loop {
            tokio::select! {
                biased;
                _ = beats.tick() => {
                    self.kernel.beat()?;
                    self.kernel.flush_log();
                    self.beat_ms.store(now_ms(), Ordering::Relaxed);
                    for problem in self.devices.problems() {
                        warn!("{problem}");
                    }
                }
                events = events.next() => {
                    for event in events? {
                        self.react(&event)?;
                    }
                }
                _ = sweeps.tick() => self.sweep()?,
            }
        }
    }

    fn react(&self, event: &Event) -> Result<(), KernelError> {
        match EventKind::from_u32(event.kind) {
            Some(EventKind::NewEdge) => {
                self.devices.look_at(event.process);
                if !self.state().workloads.knows(event.edge.workload) {
                    self.look_at_workloads();
                }
                debug!(
                    workload = self.state().workloads.name(event.edge.workload),
                    destination = report::destination(&event.edge),
                    "new edge"
                );
                self.assign(&[(event.edge, None)]);
            }
            Some(EventKind::NamedEdge) => {
                let host = self.kernel.edge(&event.edge)?.as_ref().and_then(report::host);
                self.assign(&[(event.edge, host)]);
            }
            Some(EventKind::Uncovered) => self.devices.look_at(event.process),
            None => {}
        }
        Ok(())
    }

    /// Names the cgroups that are there now, and assigns the policies that are certain without a connection.
    fn look_at_workloads(&self) {
        let mut state = self.state();
        state.workloads.refresh();
        let mut fixed = Vec::new();
        for (id, rule) in self.settings.numbered_rules() {
            let address = match &rule.destination {
                None => None,
                Some(Destination::Address(pattern)) => match pattern.literal().and_then(report::address) {
                    Some(address) => Some(address),
                    None => continue,
                },
                Some(Destination::Name(_)) => continue,
            };
            let key = |workload| match address {
                None => EdgeKey::any_of(workload),
                Some(address) => EdgeKey { workload, ..address },
            };
            match &rule.workload {
                None => fixed.push((key(0), id)),
                Some(pattern) => {
                    let matching = state.workloads.iter().filter(|(_, name)| pattern.matches(name));
                    fixed.extend(matching.map(|(workload, _)| (key(workload), id)));
                }
            }
        }
        self.write(&mut state, fixed);
    }

    /// Assigns their policies to edges of which the kernel does not know it by workload or address alone.
    fn assign(&self, edges: &[(EdgeKey, Option<String>)]) {
        let mut state = self.state();
        let mut changed = Vec::new();
        for (edge, host) in edges {
            let policy = self.policy(&state, edge, host.as_deref());
            if policy != assigned(&state, edge) {
                changed.push((*edge, policy));
            }
        }
        self.write(&mut state, changed);
    }

    /// Id of the policy of an edge: rules by address go before rules by name.
    fn policy(&self, state: &State, edge: &EdgeKey, host: Option<&str>) -> u32 {
        let workload = state.workloads.name(edge.workload);
        let address = report::destination(edge);
        let by = |host: Option<&str>| {
            let mut rules = self.settings.numbered_rules();
            rules.find(|(_, rule)| rule.matches(&workload, &address, host)).map(|(id, _)| id)
        };
        by(None).or_else(|| by(host)).unwrap_or(0)
    }

    fn write(&self, state: &mut State, policies: Vec<(EdgeKey, u32)>) {
        let fresh: Vec<(EdgeKey, u32)> =
            policies.into_iter().filter(|(key, policy)| state.assigned.get(key) != Some(policy)).collect();
        if fresh.is_empty() {
            return;
        }
        match self.kernel.assign(&fresh) {
            Ok(()) => state.assigned.extend(fresh),
            // Such edges go by the default until the next sweep.
            Err(error) => warn!("{error}"),
        }
    }

    /// Catches up on events that were lost, and forgets edges that are unused.
    fn sweep(&self) -> Result<(), KernelError> {
        self.look_at_workloads();
        let edges = self.kernel.edges()?;
        let named: Vec<_> = edges.iter().map(|(key, edge)| (*key, report::host(edge))).collect();
        self.assign(&named);
        self.forget_idle(&edges)
    }

    fn forget_idle(&self, edges: &[(EdgeKey, Edge)]) -> Result<(), KernelError> {
        let (now_ms, window_ms) = (now_ms(), millis(self.settings.window));
        let mut state = self.state();
        let (mut idle, mut live) = (Vec::new(), HashSet::new());
        for (key, edge) in edges {
            let unused_ms = now_ms.saturating_sub(edge.last_used_ms);
            let gone = !state.workloads.is_alive(key.workload);
            if key.workload != 0
                && edge.last_used_ms != 0
                && unused_ms > window_ms
                && (gone || unused_ms > IDLE_MS)
            {
                idle.push((key, edge));
            } else {
                live.insert(*key);
            }
        }
        for (key, edge) in &idle {
            for row in self.rows_of(&state, key, edge) {
                state.retired.add(row);
            }
            self.kernel.forget(key)?;
            state.assigned.remove(key);
        }
        if !idle.is_empty() {
            info!(count = idle.len(), "forgot unused edges");
        }
        let in_use: HashSet<u64> = live.iter().map(|key| key.workload).collect();
        let State { workloads, assigned, retired } = &mut *state;
        let dead = workloads.forget(&in_use);
        for key in assigned
            .extract_if(|key, _| key.workload != 0 && dead.contains(&key.workload))
            .map(|(key, _)| key)
        {
            self.kernel.forget(&key)?;
        }
        let names: HashSet<(String, String)> =
            live.iter().map(|key| (workloads.name(key.workload), report::destination(key))).collect();
        retired.retain(|row| names.contains(&(row.workload.clone(), row.destination.clone())));
        Ok(())
    }

    fn rows_of(&self, state: &State, key: &EdgeKey, edge: &Edge) -> Vec<Row> {
        let policy = if key.workload == 0 { OVERFLOW_POLICY } else { assigned(state, key) };
        let treatment = self.settings.treatment(policy).copied().unwrap_or_default();
        report::rows(key, edge, &self.config, &state.workloads, &treatment, now_ms())
    }

    /// What was counted until now.
    ///
    /// # Errors
    /// When the kernel refuses the read.
    pub fn snapshot(&self) -> Result<Snapshot, KernelError> {
        let edges = self.kernel.edges()?;
        let mut state = self.state();
        if edges.iter().any(|(key, _)| !state.workloads.knows(key.workload)) {
            state.workloads.refresh();
        }
        let mut rows = state.retired.clone();
        for (key, edge) in &edges {
            for row in self.rows_of(&state, key, edge) {
                rows.add(row);
            }
        }
        Ok(Snapshot {
            rows,
            fails: self.kernel.fails()?,
            fills: vec![self.kernel.fill(&edges)],
            beat_age: Duration::from_millis(self.beat_age_ms()),
        })
    }

    /// Time since the last sign of life, ms.
    pub fn beat_age_ms(&self) -> u64 {
        now_ms().saturating_sub(self.beat_ms.load(Ordering::Relaxed))
    }

    /// What could not be covered since the last call.
    pub fn problems(&self) -> Vec<String> {
        self.devices.problems()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The policy by which the kernel goes: that of the edge, of its workload, of its destination, the default.
fn assigned(state: &State, edge: &EdgeKey) -> u32 {
    let keys = [*edge, EdgeKey::any_of(edge.workload), EdgeKey { workload: 0, ..*edge }];
    keys.iter().find_map(|key| state.assigned.get(key)).copied().unwrap_or(0)
}

/// Everything that was counted until one moment.
pub struct Snapshot {
    /// Per edge and protocol.
    pub rows: Rows,
    /// By [`Fail`].
    pub fails: [u64; Fail::COUNT],
    /// How full the maps are.
    pub fills: Vec<Fill>,
    /// Time since the last sign of life.
    pub beat_age: Duration,
}
