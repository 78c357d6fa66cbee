//! TCP (RFC 9293) as far as it is needed: where a segment lies in its stream, how a connection ended, and how
//! the packets of a denied request are turned round.

pub mod outcome;
pub mod reflect;

/// `SOL_TCP` flags as on the wire (RFC 9293, 3.1).
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Hand the data to the application at once.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
}

/// What the rules below need of a segment. Numbers in host byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bytes of data.
    pub len: u32,
    /// Set of [`flag`]s.
    pub flags: u8,
}

impl Segment {
    /// Whether one of these flags is set.
    #[inline(always)]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Number behind all that this segment takes up in the stream.
    #[inline(always)]
    pub const fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len).wrapping_add(self.has(flag::FIN) as u32)
    }

    /// Neither data nor FIN: only an acknowledgement.
    #[inline(always)]
    pub const fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.has(flag::FIN)
    }
}

/// Whether sequence number `a` lies before `b` (RFC 9293, 3.4: modulo 2^32).
#[inline(always)]
pub const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Where the data of a segment lies relative to what was read already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All of it was read before.
    Old,
    /// New behind so many bytes that were read before.
    New {
        /// Bytes to skip.
        skip: u32,
    },
    /// So many bytes before it were not seen.
    Gap(u32),
}

/// Places `len` bytes at `seq` in a stream of which everything before `next` was read.
#[inline(always)]
pub const fn place(next: u32, seq: u32, len: u32) -> Place {
    if before(next, seq) {
        return Place::Gap(seq.wrapping_sub(next));
    }
    let skip = next.wrapping_sub(seq);
    if skip >= len { Place::Old } else { Place::New { skip } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places() {
        let rows = [
            ("the next bytes", place(100, 100, 5), Place::New { skip: 0 }),
            ("sent again", place(105, 100, 5), Place::Old),
            ("sent again with more", place(103, 100, 5), Place::New { skip: 3 }),
            ("something is missing", place(100, 104, 5), Place::Gap(4)),
            ("over the end of the numbers", place(u32::MAX, u32::MAX - 2, 5), Place::New { skip: 2 }),
            ("a gap over the end", place(u32::MAX, 1, 5), Place::Gap(2)),
        ];
        for (sentence, is, expected) in rows {
            assert_eq!(is, expected, "{sentence}");
        }
    }

    proptest! {
        #[test]
        fn the_stream_may_begin_anywhere(base: u32, next in 0_u32..5_000, seq in 0_u32..5_000, len in 1_u32..2_000) {
            prop_assert_eq!(
                place(base.wrapping_add(next), base.wrapping_add(seq), len),
                place(next, seq, len)
            );
        }
    }
}
