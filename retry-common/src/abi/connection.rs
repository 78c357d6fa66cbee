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
    /// Packet offset of the first byte of the window.
    pub offset: u32,
    /// Packet offset behind the data.
    pub end: u32,
    /// Index in `buffer` of the next byte to read.
    pub at: u32,
    /// Index in `buffer` behind the bytes that were loaded.
    pub filled: u32,
    /// 1 once there is nothing more to read in this packet.
    pub stopped: u32,
    /// 1 once the request that is being denied is complete.
    pub complete: u32,
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
    /// Policy id, valid for `generation`.
    pub policy: u32,
    /// [`super::Config::generation`] at the time `policy` was looked up.
    pub generation: u32,
    /// Process (tgid) that connected.
    pub process: u32,
    /// What the client had acknowledged when it sent its latest request.
    pub asked_ack: u32,
    /// A [`Phase`].
    pub phase: u8,
    /// 1 while a request waits for the status of its answer.
    pub awaiting: u8,
    /// 1 once the answers to all requests so far were seen to their ends (also before the first).
    pub settled: u8,
    /// 1 once the answers can no longer be told apart: a request was sent before the answer to the one before it,
    /// or what should be an answer is none. Requests are counted on, their outcomes are not, nothing is denied.
    pub pipelined: u8,
    /// 1 once the tc program of its device saw the SYN.
    pub covered: u8,
    /// 1 once a RST from the server was seen.
    pub saw_reset: u8,
    /// 1 once a FIN from the server was seen.
    pub saw_fin: u8,
    /// 1 once any byte from the server was seen.
    pub received: u8,
    /// [`crate::recogniser::Evidence`] that this connect is a retry; none once it was counted.
    pub connect_evidence: u8,
    /// 1 if that evidence was charged to the budget (or found it spent) already.
    pub connect_charged: u8,
    /// 1 once the connection was counted as an attempt or carried a request.
    pub counted: u8,
    /// 1 once the connection was established.
    pub established: u8,
    /// 1 while the whole answer is read, because a denial may follow it.
    pub tracking: u8,
    /// 1 if the budget of its policy keeps a balance.
    pub limited: u8,
    /// 1 once the end of the connection was counted as a failure.
    pub failed: u8,
    /// Zero.
    pub reserved: u8,
    /// Bytes of `host` in use.
    pub host_len: u64,
    /// The `Host` value of the current request as it came.
    pub host: [u64; HOST_LEN / 8],
    /// What the client sends.
    pub request: Stream,
    /// What the server sends.
    pub answer: Stream,
}

impl Connection {
    /// Starts over for a `connect()` on this socket, whatever it was used for before.
    #[inline(always)]
    pub fn begin(&mut self, edge: EdgeKey, edge_hash: u64, process: u32) {
        self.edge = edge;
        self.edge_hash = edge_hash;
        self.process = process;
        self.phase = Phase::Connecting as u8;
        self.generation = 0;
        self.awaiting = 0;
        self.settled = 1;
        self.pipelined = 0;
        self.covered = 0;
        self.saw_reset = 0;
        self.saw_fin = 0;
        self.received = 0;
        self.connect_evidence = 0;
        self.connect_charged = 0;
        self.counted = 0;
        self.established = 0;
        self.tracking = 0;
        self.limited = 0;
        self.failed = 0;
        self.host_len = 0;
        self.request.machine.restart();
        self.request.carry_len = 0;
        self.answer.machine.restart();
        self.answer.carry_len = 0;
    }

    /// Whether the connection is in this phase.
    #[inline(always)]
    pub const fn is(&self, phase: Phase) -> bool {
        self.phase == phase as u8
    }

    /// Whether bytes of the server are read now.
    #[inline(always)]
    pub const fn reads_answer(&self) -> bool {
        self.pipelined == 0 && (self.awaiting != 0 || (self.tracking != 0 && self.settled == 0))
    }

    /// A request's head is complete, sent with `ack`: whether its answer can be told from those before it.
    #[inline(always)]
    pub fn ask(&mut self, ack: u32) -> Turn {
        if self.pipelined != 0 {
            return Turn::Pipelined;
        }
        if self.awaiting == 0 {
            return Turn::Own;
        }
        self.awaiting = 0;
        self.settled = 0;
        if self.asked_ack == ack {
            self.pipelined = 1;
            return Turn::Pipelined;
        }
        Turn::Lost
    }

    /// What came is no answer: where the next one begins is not known any more.
    #[inline(always)]
    pub fn lose_answers(&mut self) {
        self.pipelined = 1;
        self.awaiting = 0;
        self.settled = 0;
    }

    /// The request asked for with `ack` goes out; its answer begins at `ack`.
    #[inline(always)]
    pub fn await_answer(&mut self, ack: u32, fingerprint: u64) {
        self.fingerprint = fingerprint;
        self.asked_ack = ack;
        self.settled = 0;
        self.answer.next = ack;
        self.answer.carry_len = 0;
        self.answer.machine.await_answer(self.request.machine.is_head());
        self.awaiting = 1;
    }

    /// Whether a denial now would reach the application as an ordinary answer to its request: every answer
    /// before it was read to its end, and the server has not closed.
    #[inline(always)]
    pub const fn is_clean(&self, turn: Turn) -> bool {
        matches!(turn, Turn::Own) && self.settled != 0 && self.saw_fin == 0 && self.saw_reset == 0
    }
}

/// How a request stands to the answers before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The answers before it have begun: the next one is its own.
    Own,
    /// It was sent before the answer to the one before it.
    Pipelined,
    /// The client has received an answer that was not seen here.
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> std::boxed::Box<Connection> {
        // As the zeroed storage that the kernel hands out.
        let stream = Stream {
            machine: Machine::START,
            next: 0,
            carry_len: 0,
            carry: 0,
            offset: 0,
            end: 0,
            at: 0,
            filled: 0,
            stopped: 0,
            complete: 0,
            buffer: [0; BUFFER_LEN],
        };
        let mut connection = std::boxed::Box::new(Connection {
            edge: EdgeKey::default(),
            edge_hash: 0,
            fingerprint: 0,
            policy: 0,
            generation: 0,
            process: 0,
            asked_ack: 0,
            phase: 0,
            awaiting: 0,
            settled: 0,
            pipelined: 0,
            covered: 0,
            saw_reset: 0,
            saw_fin: 0,
            received: 0,
            connect_evidence: 0,
            connect_charged: 0,
            counted: 0,
            established: 0,
            tracking: 0,
            limited: 0,
            failed: 0,
            reserved: 0,
            host_len: 0,
            host: [0; HOST_LEN / 8],
            request: stream,
            answer: stream,
        });
        connection.begin(EdgeKey::default(), 1, 2);
        connection
    }

    #[test]
    fn after_something_that_is_no_answer_nothing_is_read_or_denied() {
        let mut connection = connection();
        connection.tracking = 1;
        let turn = connection.ask(100);
        assert!(connection.is_clean(turn));
        connection.await_answer(100, 7);
        assert!(connection.reads_answer());
        connection.lose_answers();
        assert!(!connection.reads_answer());
        let turn = connection.ask(200);
        assert!(matches!(turn, Turn::Pipelined) && !connection.is_clean(turn));
    }

    #[test]
    fn the_first_request_may_be_denied() {
        let mut connection = connection();
        let turn = connection.ask(100);
        assert!(connection.is_clean(turn));
    }

    #[test]
    fn a_request_behind_a_finished_answer_may_be_denied_and_behind_an_unfinished_one_not() {
        let mut connection = connection();
        connection.await_answer(100, 7);
        assert!(connection.reads_answer());
        connection.awaiting = 0;
        let turn = connection.ask(200);
        assert!(!connection.is_clean(turn), "the rest of the answer would come behind the denial");
        connection.settled = 1;
        let turn = connection.ask(200);
        assert!(connection.is_clean(turn));
    }

    #[test]
    fn pipelining_lasts() {
        let mut connection = connection();
        connection.await_answer(100, 7);
        assert_eq!(connection.ask(100), Turn::Pipelined);
        assert_eq!(connection.ask(500), Turn::Pipelined);
    }

    #[test]
    fn an_answer_that_was_not_seen_is_no_pipelining() {
        let mut connection = connection();
        connection.await_answer(100, 7);
        let turn = connection.ask(300);
        assert_eq!(turn, Turn::Lost);
        assert!(!connection.is_clean(turn));
        connection.await_answer(300, 8);
        connection.awaiting = 0;
        connection.settled = 1;
        let turn = connection.ask(400);
        assert!(connection.is_clean(turn), "it found its place again");
    }
}
