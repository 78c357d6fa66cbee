//! Shows a packet's data to a machine, 256 bytes at a time.
//!
//! ```text
//!   buffer:   | carry (8) |        window (256)          | room |
//!   packet:        …      ^ `offset`                ^ `filled`
//!                    ^ `at`: the next byte to read
//! ```
//! Bytes that a step could not use yet (fewer than 8) are kept for the next packet and shown in front of it.
use crate::words::{load64, one_to_256};
use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;
use retry_common::abi::{CARRY_LEN, Stream, WINDOW_LEN};
use retry_common::hash::low_bytes;
use retry_common::http1::{Input, STEP_LEN};

const CARRY: u32 = CARRY_LEN as u32;
/// Highest index at which a step begins.
const LAST: u32 = CARRY + WINDOW_LEN as u32;
const _: () = assert!(LAST as usize + STEP_LEN as usize <= retry_common::abi::BUFFER_LEN);

/// Steps for one packet at most: 64 KiB in steps of 8 bytes would be 8,192, but bodies are jumped over and
/// lines are read by 32 bytes. A packet that needs more ends in an opaque connection.
pub const MOST_STEPS: u32 = 4_096;

/// A window over a packet. Where it stands is kept in the socket's storage: on the stack the verifier would
/// follow every value it can have.
pub struct Window {
    skb: *mut __sk_buff,
    stream: *mut Stream,
}

/// What the window shows.
pub enum Shown {
    /// The next bytes.
    Bytes(Input),
    /// Everything was read.
    Done,
    /// The kernel could not hand out the bytes.
    Failed,
}

impl Window {
    /// A window over the packet's bytes from `offset` to `end`.
    #[inline(always)]
    pub fn new(skb: *mut __sk_buff, stream: &mut Stream, offset: u32, end: u32) -> Self {
        let carried = if stream.carry_len > CARRY { 0 } else { stream.carry_len };
        if carried != 0 {
            let text = stream.carry << ((CARRY - carried) * 8);
            let mut at = 0;
            while at < CARRY_LEN {
                stream.buffer[at] = (text >> (at * 8)) as u8;
                at += 1;
            }
            stream.carry_len = 0;
        }
        stream.offset = offset;
        stream.end = end;
        stream.at = CARRY - carried;
        stream.filled = CARRY;
        stream.stopped = 0;
        stream.complete = 0;
        Self { skb, stream }
    }

    #[inline(always)]
    fn stream(&mut self) -> &mut Stream {
        // SAFETY: socket storage, of which this direction is ours.
        unsafe { &mut *self.stream }
    }

    /// The next bytes: at least [`STEP_LEN`], or all there are.
    #[inline(always)]
    pub fn show(&mut self) -> Shown {
        let stream = self.stream();
        if stream.at > LAST || stream.filled > LAST {
            return Shown::Failed;
        }
        let unread = stream.filled.wrapping_sub(stream.at);
        if unread < STEP_LEN && stream.offset + (stream.filled - CARRY) < stream.end && !self.load() {
            return Shown::Failed;
        }
        let stream = self.stream();
        let at = stream.at;
        if at > LAST {
            return Shown::Failed;
        }
        let available = stream.end.wrapping_sub(stream.offset + at - CARRY);
        if available == 0 || available > u32::MAX / 2 {
            return Shown::Done;
        }
        // SAFETY: `at + 32` lies inside the buffer by the checks above.
        let words = unsafe {
            let from = stream.buffer.as_ptr().add(at as usize);
            [load64::<0>(from), load64::<8>(from), load64::<16>(from), load64::<24>(from)]
        };
        Shown::Bytes(Input { words, available })
    }

    /// Loads what follows the bytes read so far. Carried bytes stay in front of the first load.
    #[inline(always)]
    fn load(&mut self) -> bool {
        let skb = self.skb;
        let stream = self.stream();
        if stream.at >= CARRY {
            stream.offset += stream.at - CARRY;
            stream.at = CARRY;
        }
        let len = one_to_256(stream.end - stream.offset);
        stream.filled = CARRY + len;
        // SAFETY: at most 256 bytes into the window.
        let failed = unsafe {
            let to = stream.buffer.as_mut_ptr().add(CARRY_LEN);
            bpf_skb_load_bytes(skb.cast(), stream.offset, to.cast(), len)
        };
        failed == 0
    }

    /// Goes on behind `count` bytes.
    #[inline(always)]
    pub fn take(&mut self, count: u32) {
        let stream = self.stream();
        let at = stream.at + count;
        if at <= stream.filled {
            stream.at = at;
            return;
        }
        // Jumped out of the window: the next bytes are loaded when they are asked for.
        stream.offset = stream.offset + at - CARRY;
        stream.at = CARRY;
        stream.filled = CARRY;
    }

    /// Keeps the rest of the packet for the next one.
    #[inline(always)]
    pub fn carry(&mut self, input: &Input) {
        let stream = self.stream();
        stream.carry = low_bytes(input.words[0], input.available);
        stream.carry_len = input.available;
    }
}
