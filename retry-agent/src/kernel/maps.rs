//! Every map that the agent reads or writes, behind typed functions.
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, RingBuf};
use aya_log::EbpfLogger;
use log::Log;
use retry_common::abi::{Answer, Config, Edge, EdgeKey, Event, Fail, Policy, names};
use retry_common::http1::{VOLATILE, name_hash};
use tokio::io::unix::AsyncFd;

use super::{Kernel, KernelError};
use crate::config::Limits;

/// `BPF_F_LOCK`: the kernel copies a value under its lock.
const LOCKED: u64 = 4;

/// How full a map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Its name.
    pub map: &'static str,
    /// Entries in use.
    pub used: u32,
    /// Most entries.
    pub most: u32,
}

pub(super) struct Maps {
    config: Mutex<(Array<MapData, Config>, Config)>,
    policies: Mutex<Array<MapData, Policy>>,
    answers: Mutex<Array<MapData, Answer>>,
    assignments: Mutex<HashMap<MapData, EdgeKey, u32>>,
    edges: Mutex<HashMap<MapData, EdgeKey, Edge>>,
    edges_most: u32,
    fails: PerCpuArray<MapData, u64>,
    events: Mutex<Option<RingBuf<MapData>>>,
    log: Mutex<EbpfLogger<&'static dyn Log>>,
}

impl Maps {
    pub(super) fn take(ebpf: &mut Ebpf, limits: &Limits, config: Config) -> Result<Self, KernelError> {
        let mut headers: HashMap<MapData, u64, u32> = map(ebpf, names::HEADERS)?;
        for name in VOLATILE {
            headers.insert(name_hash(name), 1, 0).map_err(KernelError::map(names::HEADERS))?;
        }
        let mut array = map::<Array<MapData, Config>>(ebpf, names::CONFIG)?;
        let mut edges: HashMap<MapData, EdgeKey, Edge> = map(ebpf, names::EDGES)?;
        // It has its place before the table can be full.
        edges.insert(EdgeKey::OVERFLOW, Edge::BLANK, 0).map_err(KernelError::map(names::EDGES))?;
        // Connections begin with generation 0: the first look-up of a policy must not be skipped.
        let config = Config { generation: 1, heartbeat_ms: super::now_ms(), ..config };
        array.set(0, config, 0).map_err(KernelError::map(names::CONFIG))?;
        Ok(Self {
            config: Mutex::new((array, config)),
            policies: Mutex::new(map(ebpf, names::POLICIES)?),
            answers: Mutex::new(map(ebpf, names::ANSWERS)?),
            assignments: Mutex::new(map(ebpf, names::ASSIGNMENTS)?),
            edges: Mutex::new(edges),
            edges_most: limits.edges,
            fails: map(ebpf, names::FAILS)?,
            events: Mutex::new(Some(map(ebpf, names::EVENTS)?)),
            log: Mutex::new(EbpfLogger::init(ebpf).map_err(|_| KernelError::Missing("log"))?),
        })
    }
}

fn map<M>(ebpf: &mut Ebpf, name: &'static str) -> Result<M, KernelError>
where
    M: TryFrom<aya::maps::Map, Error = aya::maps::MapError>,
{
    let map = ebpf.take_map(name).ok_or(KernelError::Missing(name))?;
    M::try_from(map).map_err(KernelError::map(name))
}

/// The result of a look-up in which it is no error that the key is not there.
fn found<T>(result: Result<T, MapError>) -> Result<Option<T>, MapError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(MapError::SyscallError(error)) if error.io_error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves these values whole: each is changed by one system call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kernel {
    /// Writes a policy and its answer under `id` (below [`retry_common::abi::MAX_POLICIES`]; 0 is the default).
    ///
    /// # Errors
    /// When the kernel refuses the write.
    pub fn set_policy(&self, id: u32, policy: &Policy, answer: &Answer) -> Result<(), KernelError> {
        lock(&self.maps.answers).set(id, answer, 0).map_err(KernelError::map(names::ANSWERS))?;
        lock(&self.maps.policies).set(id, policy, 0).map_err(KernelError::map(names::POLICIES))
    }

    /// Changes window and failure statuses, and has every connection look its policy up anew.
    ///
    /// # Errors
    /// When the kernel refuses the write.
    pub fn set_config(&self, config: &Config) -> Result<(), KernelError> {
        let mut guard = lock(&self.maps.config);
        let generation = guard.1.generation.wrapping_add(1).max(1);
        guard.1 = Config { generation, heartbeat_ms: super::now_ms(), ..*config };
        let config = guard.1;
        guard.0.set(0, config, 0).map_err(KernelError::map(names::CONFIG))
    }

    /// Assigns policies to edges; connections look theirs up at the next request.
    ///
    /// # Errors
    /// When the kernel refuses a write; those before it hold.
    pub fn assign(&self, assignments: &[(EdgeKey, u32)]) -> Result<(), KernelError> {
        let mut map = lock(&self.maps.assignments);
        let mut inserts = assignments.iter().map(|(edge, policy)| map.insert(edge, policy, 0));
        let inserted = inserts.try_for_each(|result| result.map_err(KernelError::map(names::ASSIGNMENTS)));
        drop(map);
        let config = lock(&self.maps.config).1;
        self.set_config(&config).and(inserted)
    }

    /// A sign of life: without one for [`retry_common::judge::HEARTBEAT_MS`] nothing new is denied.
    ///
    /// # Errors
    /// When the kernel refuses the write.
    pub fn beat(&self) -> Result<(), KernelError> {
        let mut guard = lock(&self.maps.config);
        guard.1.heartbeat_ms = super::now_ms();
        let config = guard.1;
        guard.0.set(0, config, 0).map_err(KernelError::map(names::CONFIG))
    }

    /// All edges as they are now, in no order.
    ///
    /// # Errors
    /// When the kernel refuses to list them.
    pub fn edges(&self) -> Result<Vec<(EdgeKey, Edge)>, KernelError> {
        let map = lock(&self.maps.edges);
        let mut edges = Vec::new();
        for key in map.keys() {
            let key = key.map_err(KernelError::map(names::EDGES))?;
            // One that was deleted in between is no error.
            if let Ok(edge) = map.get(&key, LOCKED) {
                edges.push((key, edge));
            }
        }
        Ok(edges)
    }

    /// Deletes an edge and its assignment.
    ///
    /// # Errors
    /// When the kernel refuses; an edge that is gone already is no error.
    pub fn forget(&self, edge: &EdgeKey) -> Result<(), KernelError> {
        found(lock(&self.maps.assignments).remove(edge)).map_err(KernelError::map(names::ASSIGNMENTS))?;
        found(lock(&self.maps.edges).remove(edge)).map_err(KernelError::map(names::EDGES)).map(drop)
    }

    /// Counts by [`Fail`], summed over the CPUs.
    ///
    /// # Errors
    /// When the kernel refuses the read.
    pub fn fails(&self) -> Result<[u64; Fail::COUNT], KernelError> {
        let mut counts = [0; Fail::COUNT];
        for (index, count) in (0..).zip(&mut counts) {
            let values = self.maps.fails.get(&index, 0).map_err(KernelError::map(names::FAILS))?;
            *count = values.iter().sum();
        }
        Ok(counts)
    }

    /// One edge, if it is there.
    ///
    /// # Errors
    /// When the kernel refuses the read.
    pub fn edge(&self, key: &EdgeKey) -> Result<Option<Edge>, KernelError> {
        found(lock(&self.maps.edges).get(key, LOCKED)).map_err(KernelError::map(names::EDGES))
    }

    /// How full the table of edges is, of which these were just listed.
    pub fn fill(&self, edges: &[(EdgeKey, Edge)]) -> Fill {
        let used = u32::try_from(edges.len()).unwrap_or(u32::MAX);
        Fill { map: names::EDGES, used, most: self.maps.edges_most }
    }

    /// Writes what the kernel side has said since the last call to the log.
    pub fn flush_log(&self) {
        lock(&self.maps.log).flush();
    }

    /// The stream of events; may be taken once.
    ///
    /// # Errors
    /// When the runtime cannot watch the ring.
    pub fn events(&self) -> Result<Events, KernelError> {
        let ring = lock(&self.maps.events).take().ok_or(KernelError::Missing(names::EVENTS))?;
        // SAFETY: the ring owns its descriptor and keeps it until it is dropped.
        #[expect(unsafe_code, reason = "tokio has no safe way for a type that is not an owned descriptor")]
        let ring = unsafe { AsyncFd::register(ring) }.map_err(|error| KernelError::Network(error.into()))?;
        Ok(Events { ring })
    }
}

/// What the kernel tells at once.
pub struct Events {
    ring: AsyncFd<RingBuf<MapData>>,
}

impl Events {
    /// The next events; waits until there is one. Bytes that are no event are passed over.
    ///
    /// # Errors
    /// When the runtime cannot watch the ring.
    pub async fn next(&mut self) -> Result<Vec<Event>, KernelError> {
        loop {
            let mut guard = self.ring.readable_mut().await.map_err(KernelError::Network)?;
            let ring = guard.get_inner_mut();
            let mut events = Vec::new();
            while let Some(item) = ring.next() {
                events.extend(Event::decode(&item));
            }
            guard.clear_ready();
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }
}
