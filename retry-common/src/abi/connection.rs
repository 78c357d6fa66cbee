//! What is kept in the storage of one socket.
use super::edge::{EdgeKey, HOST_LEN};
use crate::http1::Machine;

/// Bytes that one step may leave for the next packet at most.
pub const CARRY_LEN: usize = 8;
/// Bytes read from a packet at a time.
pub const WINDOW_LEN: usize = 256;
/// A window with the bytes carried over before it and room for whole words behind it.
pub const BUFFER_LEN: usize = CARRY_LEN + WINDOW_LEN + 56;

/// How far a connection has come.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// `connect()` was called.
    #[default]
    Connecting = 0,
    /// Established, and read as HTTP/1.
    Reading = 1,
    /// Something else than HTTP/1, or lost: passed unread.
    Opaque = 2,
    /// Its current request is being denied.
    Denied = 3,
}

/// One direction of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// The parser.
    pub machine: Machine,
    /// Sequence number of the next byte that was not read yet.
    pub next: u32,
    /// Bytes of `carry` in use.
    pub carry_len: u32,
    /// Bytes of the packet before that did not make a whole word.
    pub carry: u64,
    /// Window on the packet being read.
    pub buffer: [u8; BUFFER_LEN],
}

/// A followed connection.
///
/// `request` is written by the egress program, `answer` by the ingress program; one-byte fields are written
/// by both, hence not packed into bits.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The edge its attempts belong to.
    pub edge: EdgeKey,
    /// [`EdgeKey::hash`] of the true edge, also when `edge` is the overflow edge.
    pub edge_hash: u64,
    /// Fingerprint of the request that waits for an answer.
    pub fingerprint: u64,
    /// Time of that request, ms.
    pub asked_ms: u64,
    /// Policy id, valid for `generation`.
    pub policy: u32,
    /// [`super::Config::generation`] at the time `policy` was looked up.
    pub generation: u32,
    /// Process (tgid) that connected.
    pub process: u32,
    /// A [`Phase`].
    pub phase: u8,
    /// 1 while a request waits for its answer.
    pub awaiting: u8,
    /// 1 once the answers to all requests so far were seen to their ends (also before the first).
    pub settled: u8,
    /// 1 once a request was sent before the answer to the one before it was complete.
    pub pipelined: u8,
    /// 1 once the tc program of its device saw the SYN.
    pub covered: u8,
    /// 1 once a RST from the server was seen.
    pub saw_reset: u8,
    /// 1 once a FIN from the server was seen.
    pub saw_fin: u8,
    /// 1 once any byte from the server was seen.
    pub received: u8,
    /// Evidence that this connect is a retry, 0 once it was counted.
    pub connect_evidence: u8,
    /// 1 if that evidence was already charged to the budget.
    pub connect_charged: u8,
    /// 1 once the connection was counted as an attempt or carried a request.
    pub counted: u8,
    /// 1 once the connection was established.
    pub established: u8,
    /// 1 when the outstanding request was HEAD: its answer has no body.
    pub head_only: u8,
    /// Zero.
    pub reserved: [u8; 7],
    /// `Host` line of the current request: length so far, then words.
    pub host_len: u64,
    /// The `Host` value as it came.
    pub host: [u64; HOST_LEN / 8],
    /// What the client sends.
    pub request: Stream,
    /// What the server sends.
    pub answer: Stream,
}
