//! Every map. Names, keys, values and writers: `retry_common::abi::names`.
use aya_ebpf::btf_maps::{Array, HashMap, LruHashMap, PerCpuArray, RingBuf, SkStorage};
use aya_ebpf::macros::btf_map;
use retry_common::abi::{
    Answer, Config, Connection, Edge, EdgeKey, Event, Fail, Flow, FlowKey, MAX_POLICIES, Policy,
};

/// Edges at most; the loader may change it. 16,384 edges take about 13 MiB.
const EDGES_LEN: usize = 16_384;
/// Fingerprints with failures at most; the loader may change it.
const FAILURES_LEN: usize = 65_536;
/// Connections that are being denied at most: each lasts until its client has read the answer.
const DENIED_LEN: usize = 65_536;

/// An edge of zeros, without the lock, which no program may copy.
#[repr(C)]
pub struct Blank([u64; size_of::<Edge>() / 8]);

#[btf_map]
pub static CONFIG: Array<Config, 1> = Array::new();
#[btf_map]
pub static POLICIES: Array<Policy, { MAX_POLICIES as usize }> = Array::new();
#[btf_map]
pub static ANSWERS: Array<Answer, { MAX_POLICIES as usize }> = Array::new();
#[btf_map]
pub static ASSIGNMENTS: HashMap<EdgeKey, u32, EDGES_LEN> = HashMap::new();
#[btf_map]
pub static EDGES: HashMap<EdgeKey, Edge, EDGES_LEN> = HashMap::new();
#[btf_map]
pub static BLANK_EDGE: Array<Blank, 1> = Array::new();
#[btf_map]
pub static FAILURES: LruHashMap<u64, u64, FAILURES_LEN> = LruHashMap::new();
#[btf_map]
pub static DENIED: LruHashMap<FlowKey, Flow, DENIED_LEN> = LruHashMap::new();
#[btf_map]
pub static LAST_DENIAL: Array<u64, 1> = Array::new();
#[btf_map]
pub static HEADERS: HashMap<u64, u32, 256> = HashMap::new();
#[btf_map]
pub static FAILS: PerCpuArray<u64, { Fail::COUNT }> = PerCpuArray::new();
#[btf_map]
pub static EVENTS: RingBuf<Event, 262_144> = RingBuf::new();
/// Per socket; freed by the kernel with it.
#[btf_map]
pub static CONNECTIONS: SkStorage<Connection> = SkStorage::new();

/// Byte offset of `sk_shutdown` in `struct sock`; the loader reads it from the kernel's type information.
#[unsafe(no_mangle)]
static SHUTDOWN_OFFSET: u32 = 0;
/// Random start of every hash; set by the loader.
#[unsafe(no_mangle)]
static SEED: u64 = 0;

/// See [`SHUTDOWN_OFFSET`].
#[inline(always)]
pub fn shutdown_offset() -> u32 {
    // SAFETY: a static; volatile, since the loader changes it after compilation.
    unsafe { core::ptr::read_volatile(&raw const SHUTDOWN_OFFSET) }
}

/// See [`SEED`].
#[inline(always)]
pub fn seed() -> u64 {
    // SAFETY: as above.
    unsafe { core::ptr::read_volatile(&raw const SEED) }
}
