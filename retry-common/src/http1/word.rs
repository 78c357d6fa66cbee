//! Eight bytes at a time: the arithmetic that finds, folds and reads bytes inside a word.
//!
//! Words are little endian: the first byte of the text is the lowest. BPF has no instruction that counts
//! trailing zeros, hence [`first`].
use crate::hash::low_bytes;

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;
const ZEROES: u64 = 0x3030_3030_3030_3030;

/// The top bit of each byte that equals `byte`. Bytes above the first match may be marked wrongly (the
/// subtraction borrows), so only [`first`] of it means anything.
#[inline(always)]
pub const fn find(word: u64, byte: u8) -> u64 {
    let differing = word ^ (ONES * byte as u64);
    differing.wrapping_sub(ONES) & !differing & TOPS
}

/// Index (0..=7) of the lowest marked byte; `marks` is not 0. The lowest mark alone is a power of 256, and a
/// product with it moves one byte of the table to the top: no branch for the verifier to walk.
#[inline(always)]
pub const fn first(marks: u64) -> u32 {
    const TABLE: u64 = 0x0001_0203_0405_0607;
    let lowest = (marks & marks.wrapping_neg()) >> 7;
    (lowest.wrapping_mul(TABLE) >> 56) as u32 & 7
}

/// The word with the case bit of every byte set: good for comparing with lower-case text, whose bytes all
/// have it (letters, `-`, digits), not for printing.
#[inline(always)]
pub const fn fold(word: u64) -> u64 {
    word | (ONES * 0x20)
}

/// The eight bytes that end `count` (0..=7) bytes into `word`, when `previous` came before it.
#[inline(always)]
pub const fn tail(previous: u64, word: u64, count: u32) -> u64 {
    if count == 0 { previous } else { (previous >> (count * 8)) | (word << (64 - count * 8)) }
}

/// The decimal number in the first `count` (1..=7) bytes, if they are digits only.
#[inline(always)]
pub const fn digits(word: u64, count: u32) -> Option<u64> {
    let blank = 64 - count * 8;
    // Leading zeroes fill the bytes that the shift left empty.
    let text = (low_bytes(word, count) << blank) | low_bytes(ZEROES, 8 - count);
    if (text.wrapping_add(ONES * 0x46) | text.wrapping_sub(ZEROES)) & TOPS != 0 {
        return None;
    }
    // Eight digits at once: pairs, then fours, then all (Lemire, "Quickly parsing eight digits", 2018).
    let pairs = (text & (ONES * 0x0f)).wrapping_mul(2561) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    Some((fours & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32)
}

/// The first eight bytes of a text, zeros behind it.
pub const fn of(text: &[u8]) -> u64 {
    let (mut word, mut at) = (0, 0);
    while at < 8 && at < text.len() {
        word |= (text[at] as u64) << (at * 8);
        at += 1;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tails_reach_over_two_words() {
        let (previous, word) = (of(b"abcdefgh"), of(b"ijklmnop"));
        assert_eq!(tail(previous, word, 0), of(b"abcdefgh"));
        assert_eq!(tail(previous, word, 3), of(b"defghijk"));
        assert_eq!(tail(previous, word, 7), of(b"hijklmno"));
    }

    proptest! {
        #[test]
        fn find_and_first_agree_with_a_plain_search(bytes: [u8; 8], byte: u8) {
            let marks = find(u64::from_le_bytes(bytes), byte);
            let expected = bytes.iter().position(|candidate| *candidate == byte);
            prop_assert_eq!((marks != 0).then(|| first(marks) as usize), expected);
        }

        #[test]
        fn digits_agree_with_the_standard_library(bytes in proptest::collection::vec(0x2e_u8..0x3c, 1..=7), rest: u64) {
            let count = bytes.len() as u32;
            let word = of(&bytes) | (rest & !low_bytes(u64::MAX, count));
            let expected = core::str::from_utf8(&bytes).ok().and_then(|text| text.parse::<u64>().ok());
            prop_assert_eq!(digits(word, count), expected);
        }
    }
}
