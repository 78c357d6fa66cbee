//! HTTP/1.0 and 1.1 (RFC 9112) as step machines over words, for both directions of a connection.
//!
//! A machine reads a byte stream in steps. Each step is shown the next 32 bytes (or all there are), takes
//! some of them and may report [`Events`]. It keeps a few words of state and no text. Words are counted from
//! the beginning of each line, so that a stream gives the same events and fingerprint however it is cut.
//!
//! ```text
//!  request: START → LINE → HEADER ⇄ {PLAIN, NAME → value} → (BODY_HEAD → BODY | CHUNK_SIZE … TRAILER) → START
//!  answer:  START → STATUS → HEADER ⇄ {SKIP, NAME → value} → (BODY | CHUNK_SIZE … | UNTIL_CLOSE)     → START
//! ```
//! What does not look like HTTP/1, or frames a message ambiguously (two lengths, a length and a coding),
//! ends in OPAQUE: the connection is passed unread from there on.

mod answer;
mod header;
mod lines;
mod request;
#[cfg(test)]
mod tests;
mod word;

pub use header::{FILTER_WORDS, HeaderClass, VOLATILE, filter, name_hash};

use crate::hash::mix;

/// Bytes that a step looks at: the caller shows so many, or all there are.
pub const STEP_LEN: u32 = 32;
/// Most bytes of a body that belong to the fingerprint.
const BODY_HEAD_LEN: u64 = 32;
/// A length above this is taken for nonsense: 2^56 bytes.
const MOST_LEFT: u64 = 1 << 56;

/// Where a machine stands in its message.
mod state {
    pub const START: u8 = 0;
    pub const LINE: u8 = 1;
    pub const STATUS: u8 = 2;
    pub const HEADER: u8 = 3;
    pub const PLAIN: u8 = 4;
    pub const SKIP: u8 = 5;
    pub const NAME: u8 = 6;
    pub const LENGTH: u8 = 7;
    pub const CODING: u8 = 8;
    pub const HOST: u8 = 9;
    pub const BODY_HEAD: u8 = 10;
    pub const BODY: u8 = 11;
    pub const CHUNK_SIZE: u8 = 12;
    pub const CHUNK_EXT: u8 = 13;
    pub const CHUNK_DATA: u8 = 14;
    pub const CHUNK_END: u8 = 15;
    pub const TRAILER: u8 = 16;
    pub const TRAILER_LINE: u8 = 17;
    pub const UNTIL_CLOSE: u8 = 18;
    pub const OPAQUE: u8 = 19;
}

/// What was learnt of the current message.
mod fact {
    pub const HAS_LENGTH: u32 = 1;
    pub const CHUNKED: u32 = 2;
    pub const EXPECT: u32 = 4;
    pub const UPGRADE: u32 = 8;
    pub const HEAD: u32 = 16;
    pub const CONNECT: u32 = 32;
    /// A blank followed the digits of the length: no further digit may.
    pub const LENGTH_ENDED: u32 = 64;
    pub const HAS_HOST: u32 = 128;
}

/// What a step reports, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events(u32);

impl Events {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Request: the head is complete and [`Machine::fingerprint`] is final. Answer: the head is complete.
    pub const HEAD: Self = Self(1);
    /// The message is complete.
    pub const END: Self = Self(2);
    /// Answer: [`Machine::status`] is known.
    pub const STATUS: Self = Self(4);
    /// Request: the bytes taken by this step belong to the value of `Host`.
    pub const HOST: Self = Self(8);
    /// Request: a name was read that is in no built-in list; the caller looks [`Machine::name`] up and calls
    /// [`Machine::omit_line`] if it is volatile.
    pub const NAME: Self = Self(16);
    /// The stream is not (or no longer) HTTP/1; nothing more will be read.
    pub const OPAQUE: Self = Self(32);
    /// With OPAQUE: it broke the rules after it had looked like HTTP/1.
    pub const MALFORMED: Self = Self(64);
    /// With OPAQUE: it switched to another protocol (101, CONNECT).
    pub const UPGRADED: Self = Self(128);

    /// Both sets.
    #[inline(always)]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether one of `other` is among these.
    #[inline(always)]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// One step's result. `consumed` of 0 with no events asks for more bytes than there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Bytes taken from the front; may reach beyond the bytes shown, never beyond those available.
    pub consumed: u32,
    /// What was found.
    pub events: Events,
}

impl Step {
    const MORE: Self = Self::took(0);

    #[inline(always)]
    const fn took(consumed: u32) -> Self {
        Self { consumed, events: Events::NONE }
    }

    #[inline(always)]
    const fn found(consumed: u32, events: Events) -> Self {
        Self { consumed, events }
    }
}

/// The bytes shown to a step.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// The next bytes as little-endian words; what lies beyond `available` is ignored.
    pub words: [u64; 4],
    /// Bytes from here to the end of what has arrived.
    pub available: u32,
}

/// State of one direction.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Hash of the line so far.
    hash: u64,
    /// Sum of the hashes of the lines: their order does not matter.
    lines: u64,
    /// The word before this one in the line.
    previous: u64,
    /// Bytes of the body or chunk still to come; while the head is read, the value of `Content-Length`.
    left: u64,
    /// [`fact`]s of the message.
    facts: u32,
    /// Bytes of the current number, for lengths and chunk sizes.
    count: u16,
    /// Status of the answer.
    status: u16,
    /// A [`state`].
    state: u8,
    reserved: [u8; 7],
}
const _: () = assert!(size_of::<Machine>() == 48);

impl Machine {
    /// A machine at the beginning of a message.
    pub const START: Self = Self {
        hash: 0,
        lines: 0,
        previous: 0,
        left: 0,
        facts: 0,
        count: 0,
        status: 0,
        state: state::START,
        reserved: [0; 7],
    };

    /// Gets ready for the next message.
    #[inline(always)]
    pub fn restart(&mut self) {
        self.hash = 0;
        self.lines = 0;
        self.previous = 0;
        self.left = 0;
        self.facts = 0;
        self.count = 0;
        self.state = state::START;
    }

    /// Status of the answer whose [`Events::STATUS`] was reported last.
    #[inline(always)]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Hash of the header name that [`Events::NAME`] reported, as by [`name_hash`].
    #[inline(always)]
    pub const fn name(&self) -> u64 {
        self.hash
    }

    /// Leaves the current header line out of the fingerprint.
    #[inline(always)]
    pub fn omit_line(&mut self) {
        self.state = state::SKIP;
    }

    /// Whether the request waits for `100 Continue` before it sends its body.
    #[inline(always)]
    pub const fn expects(&self) -> bool {
        self.facts & fact::EXPECT != 0
    }

    /// Whether the request is HEAD: its answer has no body (RFC 9112, 6.3).
    #[inline(always)]
    pub const fn is_head(&self) -> bool {
        self.facts & fact::HEAD != 0
    }

    /// Whether nothing of the next message was taken yet.
    #[inline(always)]
    pub const fn is_between(&self) -> bool {
        self.state == state::START
    }

    /// Whether the stream is passed unread.
    #[inline(always)]
    pub const fn is_opaque(&self) -> bool {
        self.state == state::OPAQUE
    }

    /// Fingerprint of the request whose [`Events::HEAD`] was just reported, on an edge with this hash.
    #[inline(always)]
    pub const fn fingerprint(&self, edge: u64) -> u64 {
        mix(edge, self.lines)
    }

    /// Bytes of the body that can be passed over unseen.
    #[inline(always)]
    const fn is_bulk(&self) -> bool {
        matches!(self.state, state::BODY | state::CHUNK_DATA | state::UNTIL_CLOSE)
    }

    /// Jumps over `count` bytes that were not seen; false if they cannot be all body.
    #[inline(always)]
    pub fn pass_over(&mut self, count: u32) -> bool {
        if self.state == state::UNTIL_CLOSE {
            return true;
        }
        // Strictly more: the end of a message must be seen, for its event.
        if !self.is_bulk() || self.left <= count as u64 {
            return false;
        }
        self.left -= count as u64;
        true
    }

    /// Gives up on the stream.
    #[inline(always)]
    fn give_up(&mut self, reason: Events) -> Step {
        self.state = state::OPAQUE;
        Step::found(0, Events::OPAQUE.and(reason))
    }

    /// A length and a coding, or two lengths, are two opinions on where the message ends.
    #[inline(always)]
    const fn is_ambiguous(&self) -> bool {
        self.facts & (fact::HAS_LENGTH | fact::CHUNKED) == fact::HAS_LENGTH | fact::CHUNKED
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::START
    }
}
