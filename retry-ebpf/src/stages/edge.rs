//! Edges and their policies.
use crate::atomic::increment;
use crate::fail::count;
use crate::maps::{ASSIGNMENTS, BLANK_EDGE, CONFIG, EDGES, EVENTS, POLICIES};
use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::helpers::generated::{bpf_map_update_elem, bpf_spin_lock, bpf_spin_unlock};
use core::ptr::{NonNull, addr_of};
use retry_common::abi::{
    Config, Connection, Edge, EdgeCounter, EdgeKey, Event, EventKind, Fail, Mode, OVERFLOW_POLICY, Policy,
};
use retry_common::budget::{Algorithm, Budget, Rules};

/// The settings; none before the agent wrote them.
#[inline(always)]
pub fn config() -> Option<&'static Config> {
    CONFIG.get(0)
}

/// An edge in the table, alive for the rest of the run.
#[derive(Clone, Copy)]
pub struct EdgeRef(NonNull<Edge>);

impl EdgeRef {
    /// The edge, made if it is new. A full table gives the overflow edge; `key` becomes its key then.
    #[inline(always)]
    pub fn find(key: &mut EdgeKey, now_ms: u64, process: u32) -> Option<Self> {
        match EDGES.get_ptr_mut(&*key) {
            Some(edge) => NonNull::new(edge).map(Self),
            None => create(key, now_ms, process),
        }
    }

    #[inline(always)]
    fn raw(self) -> *mut Edge {
        self.0.as_ptr()
    }

    /// Counts one.
    #[inline(always)]
    pub fn count(self, counter: EdgeCounter) {
        // SAFETY: inside the map value.
        unsafe { increment(&raw mut (*self.raw()).counters[counter as usize]) };
    }

    /// Counts one failure by the position of its status.
    #[inline(always)]
    pub fn count_status(self, position: usize) {
        // SAFETY: as above; the mask keeps the index inside the array of 16.
        unsafe { increment(&raw mut (*self.raw()).statuses[position & 15]) };
    }

    /// Whether anything failed within the window before `now`.
    #[inline(always)]
    pub fn has_failed(self, now_ms: u64, window_ms: u64) -> bool {
        // SAFETY: one load inside the map value.
        let failed_ms = unsafe { (*self.raw()).last_failure_ms };
        failed_ms != 0 && now_ms.saturating_sub(failed_ms) <= window_ms
    }

    /// Notes the time of a failure.
    #[inline(always)]
    pub fn fail(self, now_ms: u64) {
        // SAFETY: one store inside the map value; the last writer wins.
        unsafe { (*self.raw()).last_failure_ms = now_ms };
    }

    /// Notes the time of an attempt, if that says anything new.
    #[inline(always)]
    pub fn touch(self, now_ms: u64) {
        // SAFETY: one load and store; a shared line is not written for every request.
        unsafe {
            if (*self.raw()).last_used_ms.wrapping_add(1000) < now_ms || (*self.raw()).last_used_ms == 0 {
                (*self.raw()).last_used_ms = now_ms;
            }
        }
    }

    /// A first attempt goes out.
    #[inline(always)]
    pub fn original(self, rules: &Rules, now_ms: u64) {
        let budget = self.lock();
        budget.original(rules, now_ms);
        self.unlock();
    }

    /// An attempt succeeded.
    #[inline(always)]
    pub fn success(self, rules: &Rules, now_ms: u64) {
        let budget = self.lock();
        budget.success(rules, now_ms);
        self.unlock();
    }

    /// Whether the budget covers one more retry; if so, it is charged.
    #[inline(always)]
    pub fn retry(self, rules: &Rules, now_ms: u64) -> bool {
        let budget = self.lock();
        let covered = budget.retry(rules, now_ms);
        self.unlock();
        covered
    }

    /// The budget, for this CPU alone until [`Self::unlock`]. The verifier allows no call in between, so all
    /// of the budget's code is inlined here; a guard or closure would not be.
    #[inline(always)]
    fn lock(self) -> &'static mut Budget {
        // SAFETY: the edge's own lock, taken once.
        unsafe { bpf_spin_lock((&raw mut (*self.raw()).lock).cast()) };
        // SAFETY: inside the map value, and ours while the lock is held.
        unsafe { &mut (*self.raw()).budget }
    }

    #[inline(always)]
    fn unlock(self) {
        // SAFETY: the lock that `lock` took.
        unsafe { bpf_spin_unlock((&raw mut (*self.raw()).lock).cast()) };
    }

    /// Keeps the first `Host` seen on the edge, and notes that there are several.
    #[inline(always)]
    pub fn note_host(self, connection: &Connection, now_ms: u64) {
        if connection.host_len == 0 {
            return;
        }
        // SAFETY: loads and stores inside the map value; the last writer wins.
        unsafe {
            let edge = self.raw();
            let mut hash = connection.host_len;
            let mut at = 0;
            while at < connection.host.len() {
                hash = retry_common::hash::mix(hash, connection.host[at]);
                at += 1;
            }
            if (*edge).host_len == 0 {
                let mut at = 0;
                while at < connection.host.len() {
                    // Volatile, or the copy would become a call of a byte loop.
                    core::ptr::write_volatile(&raw mut (*edge).host[at], connection.host[at]);
                    at += 1;
                }
                (*edge).host_hash = hash;
                (*edge).host_len = connection.host_len as u32;
                emit(&connection.edge, EventKind::NamedEdge, now_ms, connection.process);
            } else if (*edge).host_hash != hash {
                (*edge).host_mixed = 1;
            }
        }
    }
}

/// Makes a new edge. Not inlined: rare, and its stack is needed elsewhere.
#[inline(never)]
fn create(key: &mut EdgeKey, now_ms: u64, process: u32) -> Option<EdgeRef> {
    if insert(key) {
        emit(key, EventKind::NewEdge, now_ms, process);
    } else if EDGES.get_ptr(&*key).is_none() {
        count(Fail::EdgesFull);
        *key = EdgeKey::OVERFLOW;
    }
    EDGES.get_ptr_mut(&*key).and_then(NonNull::new).map(EdgeRef)
}

#[inline(always)]
fn insert(key: &EdgeKey) -> bool {
    let Some(blank) = BLANK_EDGE.get_ptr(0) else { return false };
    // SAFETY: `blank` has the size of an edge; the kernel leaves the lock out of the copy.
    unsafe {
        bpf_map_update_elem(
            addr_of!(EDGES) as *mut _,
            core::ptr::from_ref(key).cast_mut().cast(),
            blank.cast_mut().cast(),
            u64::from(BPF_NOEXIST),
        ) == 0
    }
}

/// Tells the agent.
#[inline(never)]
pub fn emit(edge: &EdgeKey, kind: EventKind, time_ms: u64, process: u32) {
    match EVENTS.reserve(0) {
        Some(mut entry) => {
            entry.write(Event { edge: *edge, time_ms, kind: kind as u32, process });
            entry.submit(0);
        }
        None => count(Fail::EventsLost),
    }
}

/// The policy of a connection, looked up anew when the agent has changed assignments.
#[inline(always)]
pub fn policy(connection: &mut Connection, config: &Config) -> Option<&'static Policy> {
    if connection.generation == config.generation {
        return POLICIES.get(connection.policy);
    }
    connection.policy = assigned(&connection.edge);
    connection.generation = config.generation;
    let policy = POLICIES.get(connection.policy)?;
    let limited = !matches!(policy.rules.algorithm(), Algorithm::Unlimited);
    connection.limited = limited as u8;
    connection.tracking = (limited && Mode::from_u8(policy.mode) != Mode::Observe) as u8;
    Some(policy)
}

/// The policy assigned to an edge: its own, else its workload's, else its destination's, else the default. Not
/// inlined: rare, and its stack is needed elsewhere.
#[inline(never)]
fn assigned(edge: &EdgeKey) -> u32 {
    if edge.workload == EdgeKey::OVERFLOW.workload {
        return OVERFLOW_POLICY;
    }
    // SAFETY: copied at once.
    if let Some(policy) = unsafe { ASSIGNMENTS.get(edge) } {
        return *policy;
    }
    // SAFETY: as above.
    if let Some(policy) = unsafe { ASSIGNMENTS.get(&EdgeKey::any_of(edge.workload)) } {
        return *policy;
    }
    let key = EdgeKey { workload: 0, ..*edge };
    // SAFETY: as above.
    unsafe { ASSIGNMENTS.get(&key) }.copied().unwrap_or(0)
}
