//! An edge: one workload calling one destination, with everything counted about it.
use super::counter::{EdgeCounter, FAILURE_STATUSES};
use crate::budget::Budget;

/// Bytes of the `Host` header kept per edge, the leading blank included.
pub const HOST_LEN: usize = 64;

/// Workload → destination, the key of everything that is kept per edge.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct EdgeKey {
    /// Id of the cgroup v2 of the process that called `connect()`. 0 = the overflow edge.
    pub workload: u64,
    /// Destination as the application asked for it (before NAT), network byte order; IPv4 as `::ffff:a.b.c.d`.
    pub address: [u32; 4],
    /// Destination port, host byte order.
    pub port: u16,
    /// Zero.
    pub reserved: [u16; 3],
}
const _: () = assert!(size_of::<EdgeKey>() == 32);

impl EdgeKey {
    /// The edge that takes all new edges when the table is full.
    pub const OVERFLOW: Self = Self { workload: 0, address: [0; 4], port: 0, reserved: [0; 3] };

    /// Key for an IPv4 destination; `address` in network byte order, `port` in host byte order.
    #[inline(always)]
    pub const fn v4(workload: u64, address: u32, port: u16) -> Self {
        Self { workload, address: [0, 0, 0xffff_u32.to_be(), address], port, reserved: [0; 3] }
    }

    /// Key for an IPv6 destination; `address` in network byte order, `port` in host byte order.
    #[inline(always)]
    pub const fn v6(workload: u64, address: [u32; 4], port: u16) -> Self {
        Self { workload, address, port, reserved: [0; 3] }
    }

    /// Key that stands for all destinations of a workload among the assignments of policies. With a destination
    /// and workload 0 a key stands for all workloads that call it.
    #[inline(always)]
    pub const fn any_of(workload: u64) -> Self {
        Self { workload, address: [0; 4], port: 0, reserved: [0; 3] }
    }

    /// Start value for the fingerprints of this edge.
    #[inline(always)]
    pub fn hash(&self, seed: u64) -> u64 {
        let low = ((self.address[1] as u64) << 32) | self.address[0] as u64;
        let high = ((self.address[3] as u64) << 32) | self.address[2] as u64;
        let hash = crate::hash::mix(crate::hash::mix(seed, self.workload), low);
        crate::hash::mix(crate::hash::mix(hash, high), self.port as u64)
    }
}

/// The kernel's lock, known to it by this name in the type information of a map's value. Reads as 0 in user
/// space.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct bpf_spin_lock {
    val: u32,
}

/// What is known and counted of an edge.
///
/// Counters are touched by atomic adds only, `budget` only under `lock`; the other fields are single words
/// whose last writer wins.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// Guards `budget`.
    pub lock: bpf_spin_lock,
    /// Bytes of `host` in use; 0 until the first request was read.
    pub host_len: u32,
    /// Balance and history of the edge's budget.
    pub budget: Budget,
    /// Counts by [`EdgeCounter`].
    pub counters: [u64; EdgeCounter::COUNT],
    /// Failures by position of the status in [`super::Config::failure_statuses`].
    pub statuses: [u64; FAILURE_STATUSES],
    /// Time of the last failure, in ms of the monotonic clock; 0 = never.
    pub last_failure_ms: u64,
    /// Time of the last attempt, in ms of the monotonic clock; for the agent's sweep of idle edges.
    pub last_used_ms: u64,
    /// Hash of the first `Host` line seen.
    pub host_hash: u64,
    /// 1 when requests with different `Host` lines went to this destination.
    pub host_mixed: u32,
    /// Zero.
    pub reserved: u32,
    /// Value of the first `Host` header seen, as it came (leading blank, maybe a CR at its end).
    pub host: [u64; HOST_LEN / 8],
}
const _: () = assert!(size_of::<Edge>().is_multiple_of(8));

impl Edge {
    /// An edge of which nothing is known.
    pub const BLANK: Self = Self {
        lock: bpf_spin_lock { val: 0 },
        host_len: 0,
        budget: Budget::EMPTY,
        counters: [0; EdgeCounter::COUNT],
        statuses: [0; FAILURE_STATUSES],
        last_failure_ms: 0,
        last_used_ms: 0,
        host_hash: 0,
        host_mixed: 0,
        reserved: 0,
        host: [0; HOST_LEN / 8],
    };

    /// One of the counters.
    pub fn count(&self, counter: EdgeCounter) -> u64 {
        self.counters[counter as usize]
    }
}
