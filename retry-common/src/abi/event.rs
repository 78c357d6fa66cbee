//! What the kernel tells the agent at once. Events are for speed and for people, never for counting.
use super::edge::EdgeKey;

/// What happened.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// An edge was seen for the first time: the agent may assign a policy to it.
    NewEdge = 1,
    /// An excess retry passed because its device has no reflector: the agent looks for new devices.
    Uncovered = 2,
    /// The first `Host` was read on an edge: a rule may name it.
    NamedEdge = 3,
}

impl EventKind {
    /// The kind with this number, if it is one.
    pub const fn from_u32(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::NewEdge),
            2 => Some(Self::Uncovered),
            3 => Some(Self::NamedEdge),
            _ => None,
        }
    }
}

/// One event, as it lies in the ring.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The edge it is about.
    pub edge: EdgeKey,
    /// Monotonic clock, ms.
    pub time_ms: u64,
    /// An [`EventKind`].
    pub kind: u32,
    /// Process (tgid) that called `connect()`, 0 when it is not known here.
    pub process: u32,
}
/// Bytes of an event.
const EVENT_LEN: usize = 48;
const _: () = assert!(size_of::<Event>() == EVENT_LEN);

impl Event {
    /// The event in `bytes`, or nothing if they are too few or of an unknown kind.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; EVENT_LEN] = bytes.get(..EVENT_LEN)?.try_into().ok()?;
        let word = |at: usize| {
            let mut out = [0; 4];
            out.copy_from_slice(&bytes[at..at + 4]);
            u32::from_ne_bytes(out)
        };
        let long = |at: usize| {
            let mut out = [0; 8];
            out.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(out)
        };
        let kind = EventKind::from_u32(word(40))? as u32;
        let edge = EdgeKey {
            workload: long(0),
            address: [word(8), word(12), word(16), word(20)],
            port: word(24) as u16,
            reserved: [0; 3],
        };
        Some(Self { edge, time_ms: long(32), kind, process: word(44) })
    }
}
